"""Ways into the SQLite store for tests: to stop its writer for a moment, and to meddle."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw

from moot.store.sqlite import SqliteStore


@asynccontextmanager
async def writer_stopped(store: SqliteStore) -> AsyncIterator[None]:
    """Inside, whatever is committed waits; it is one group when the block ends."""
    reached, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait(*_: Any) -> None:
        loop.call_soon_threadsafe(reached.set)
        go_on.wait()

    stopped = loop.create_task(store._writer.call(wait))
    await reached.wait()
    try:
        yield
    finally:
        go_on.set()
        await stopped


async def handed_over(store: SqliteStore, count: int) -> None:
    """So many batches are with the writer, and none is on its way there."""
    while store._writer._waiting < count or store._writer._gathered:
        await asyncio.sleep(0)


async def in_one_group(store: SqliteStore, calls: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    async with writer_stopped(store):
        tasks = [asyncio.ensure_future(call) for call in calls]
        await handed_over(store, len(tasks))
    return await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def meddling(path: Path) -> Iterator[apsw.Connection]:
    """A second connection, as somebody with a SQLite shell would have."""
    db = apsw.Connection(str(path))
    try:
        yield db
    finally:
        db.close()
