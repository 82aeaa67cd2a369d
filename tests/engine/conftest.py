"""The engine's tests run on the real parts: every store, a real host, real time in small doses."""

import pytest

from moot.engine.recovery import Recovery


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that was away is back at once here."""
    monkeypatch.setattr(Recovery, "pause_s", 0.05)
