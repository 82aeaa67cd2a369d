"""What these tests share: a host in memory and its administrator's key."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moot.api.server import build_services, key_file
from moot.api.services import Services
from moot.clock import SystemClock
from moot.config.settings import Settings
from moot.store.memory.store import MemoryStore


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("MOOT_BOOTSTRAP_KEY", raising=False)
    return Settings(database=str(tmp_path / "moot.db"), rate_limit=5)


@pytest.fixture
async def services(settings: Settings) -> AsyncIterator[Services]:
    found = await build_services(settings, MemoryStore(), SystemClock())
    yield found
    await found.host.aclose()


@pytest.fixture
def bearer(services: Services) -> str:
    """The administrator's Authorization header."""
    return f"Bearer {key_file(services.settings).read_text().strip()}"
