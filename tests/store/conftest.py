"""Every store that exists, one fixture: a backend without the contract suite does not exist."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from moot.store.memory.store import MemoryStore
from moot.store.protocol import Store
from moot.store.sqlite import SqliteStore


async def _memory(_: Path) -> Store:
    return MemoryStore()


async def _sqlite(folder: Path) -> Store:
    return await SqliteStore.open(folder / "moot.db")


#: to add a store, add how it is opened
STORES: dict[str, Callable[[Path], Awaitable[Store]]] = {"memory": _memory, "sqlite": _sqlite}


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = await STORES[request.param](tmp_path)
    yield opened
    await opened.aclose()


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "moot.db")
    yield opened
    await opened.aclose()
