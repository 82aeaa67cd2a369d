"""Batched look-ups: all keys requested during one query share the next query.

A round trip to a reader thread costs ten times as much as the look-up, and every request with an
idempotency key or a message id needs one.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import apsw

from moot.store.protocol import Receipt
from moot.store.sqlite.read.queries import SQL
from moot.store.sqlite.read.readers import Readers
from moot.store.sqlite.statements import MOST_ROWS, BulkStatement, row_decoder

LookupKey = tuple[str, str, str]
T = TypeVar("T")

RECEIPTS = BulkStatement(SQL["RECEIPTS"], 3)
MESSAGES = BulkStatement(SQL["MESSAGES"], 3)

_decode_receipt = row_decoder(Receipt)


class BatchedLookup(Generic[T]):
    """Looks up values by key. Only the loop uses it."""

    def __init__(
        self,
        readers: Readers,
        find: Callable[[apsw.Connection, list[LookupKey]], dict[LookupKey, T]],
    ) -> None:
        """``find`` gets at most MOST_ROWS keys at a time."""
        self._readers, self._find = readers, find
        self._requests: list[tuple[LookupKey, asyncio.Future[T | None]]] = []
        self._under_way = False

    async def find(self, key: LookupKey) -> T | None:
        loop = asyncio.get_running_loop()
        if not self._requests and not self._under_way:
            loop.call_soon(self._start)  # after one loop iteration, to collect more requests
        result: asyncio.Future[T | None] = loop.create_future()
        self._requests.append((key, result))
        return await result

    def _start(self) -> None:
        requests, self._requests = self._requests[:MOST_ROWS], self._requests[MOST_ROWS:]
        self._under_way = True
        try:
            query = self._readers.run(self._find, [key for key, _ in requests])
        except Exception as refusal:
            self._under_way = False
            _fail(requests, refusal)
        else:
            query.add_done_callback(lambda done: self._finish(requests, done))

    def _finish(
        self,
        requests: list[tuple[LookupKey, asyncio.Future[T | None]]],
        done: "asyncio.Future[dict[LookupKey, T]]",
    ) -> None:
        self._under_way = False
        if self._requests:
            self._start()
        failure = done.exception()
        if failure is not None:
            _fail(requests, failure)
            return
        values = done.result()
        for key, result in requests:
            if not result.done():  # done means that the caller was cancelled
                result.set_result(values.get(key))


def _fail(
    requests: list[tuple[LookupKey, asyncio.Future[T | None]]], failure: BaseException
) -> None:
    for _, result in requests:
        if not result.done():
            result.set_exception(failure)


def find_receipts(db: apsw.Connection, keys: list[LookupKey]) -> dict[LookupKey, Receipt]:
    """Return receipts by tenant, operation and key."""
    return {row[:3]: _decode_receipt(row) for row in RECEIPTS.select(db, keys)}


def find_messages(db: apsw.Connection, keys: list[LookupKey]) -> dict[LookupKey, int]:
    """Return the sequences of turns by tenant, run and message id."""
    return {row[:3]: row[3] for row in MESSAGES.select(db, keys)}
