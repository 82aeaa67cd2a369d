"""The engine's tests run on the real parts: every store, a real host, real time in small doses."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hosting import Place

from moot.engine.recovery import Recovery


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that was away is back at once here."""
    monkeypatch.setattr(Recovery, "pause_s", 0.05)


@pytest.fixture(params=["memory", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    found = Place(request.param, tmp_path)
    await found.open()
    yield found
    await found.aclose()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Place]:
    found = Place("memory", tmp_path)
    await found.open()
    yield found
    await found.aclose()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[Place]:
    found = Place("sqlite", tmp_path)
    await found.open()
    yield found
    await found.aclose()
