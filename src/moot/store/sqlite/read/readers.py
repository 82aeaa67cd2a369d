"""The reader threads. Each has a connection and sees committed data only."""

import queue
from asyncio import Future, get_running_loop
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from moot.core.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")

Bindings = Sequence[Any] | Mapping[str, object]

THREADS = 2
BUSY_MS = 5000


def connect_reader(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    db.set_busy_timeout(BUSY_MS)
    return db


class Readers:
    """A few threads with a read-only connection each."""

    def __init__(self, path: Path, threads: int = THREADS) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="moot-reader")
        self._free: queue.SimpleQueue[apsw.Connection] = queue.SimpleQueue()
        for _ in range(threads):
            self._free.put(connect_reader(path))
        self._closed = False

    def run(
        self, query: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> "Future[T]":
        """Start a query and return its future."""
        self._refuse_closed()

        def work() -> T:
            db = self._free.get()
            try:
                return query(db, *args, **kwargs)
            finally:
                self._free.put(db)

        return get_running_loop().run_in_executor(self._threads, work)

    async def run_alone(self, query: Callable[[apsw.Connection], T]) -> T:
        """Run a query of minutes on a connection and a thread of its own."""

        def work() -> T:
            db = connect_reader(self._path)
            try:
                return query(db)
            finally:
                db.close()

        self._refuse_closed()
        return await get_running_loop().run_in_executor(None, work)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise Unavailable("The store is closed.")

    def close(self) -> None:
        """Close after all running queries have ended. Safe to call twice."""
        self._closed = True
        self._threads.shutdown(wait=True)
        while not self._free.empty():
            self._free.get().close()


class ReadSide:
    """The part of the store that looks rows up on the reader threads."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    def _all(
        self, decode: Callable[[Sequence[Any]], T], sql: str, values: Bindings = ()
    ) -> "Future[list[T]]":
        return self._readers.run(select_rows, decode, sql, values)

    def _first(
        self, decode: Callable[[Sequence[Any]], T], sql: str, values: Bindings = ()
    ) -> "Future[T | None]":
        return self._readers.run(select_first, decode, sql, values)


def select_rows(
    db: apsw.Connection, decode: Callable[[Sequence[Any]], T], sql: str, values: Bindings
) -> list[T]:
    return [decode(row) for row in db.execute(sql, values).fetchall()]


def select_first(
    db: apsw.Connection, decode: Callable[[Sequence[Any]], T], sql: str, values: Bindings
) -> T | None:
    rows = db.execute(sql, values).fetchall()
    return decode(rows[0]) if rows else None


def first_column(row: Sequence[Any]) -> Any:
    return row[0]
