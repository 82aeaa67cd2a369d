"""Things with a name, looked up together: what is asked while a look-up runs shares the next one.

A trip to a reading thread and back costs ten times what the look-up itself does, and every request
that carries a key or an id of its own makes one.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import apsw

from moot.store.sqlite.read.readers import Readers
from moot.store.sqlite.write.bulk import LARGEST

Name = tuple[str, str, str]
T = TypeVar("T")


class Together(Generic[T]):
    """Only the loop touches it."""

    def __init__(
        self, readers: Readers, find: Callable[[apsw.Connection, list[Name]], dict[Name, T]]
    ) -> None:
        """``find`` is asked for at most LARGEST names."""
        self._readers, self._find = readers, find
        self._asked: list[tuple[Name, asyncio.Future[T | None]]] = []
        self._under_way = False

    async def find(self, name: Name) -> T | None:
        loop = asyncio.get_running_loop()
        if not self._asked and not self._under_way:
            loop.call_soon(self._look)  # once the loop has gone round: others may ask, too
        found: asyncio.Future[T | None] = loop.create_future()
        self._asked.append((name, found))
        return await found

    def _look(self) -> None:
        asked, self._asked = self._asked[:LARGEST], self._asked[LARGEST:]
        self._under_way = True
        try:
            looking = self._readers.begin(lambda db: self._find(db, [name for name, _ in asked]))
        except Exception as refusal:
            self._under_way = False
            _fail(asked, refusal)
        else:
            looking.add_done_callback(lambda done: self._found(asked, done))

    def _found(
        self,
        asked: list[tuple[Name, asyncio.Future[T | None]]],
        done: "asyncio.Future[dict[Name, T]]",
    ) -> None:
        self._under_way = False
        if self._asked:
            self._look()
        failure = done.exception()
        if failure is not None:
            _fail(asked, failure)
            return
        known = done.result()
        for name, found in asked:
            if not found.done():  # else who asked is gone
                found.set_result(known.get(name))


def _fail(asked: list[tuple[Name, asyncio.Future[T | None]]], failure: BaseException) -> None:
    for _, found in asked:
        if not found.done():
            found.set_exception(failure)
