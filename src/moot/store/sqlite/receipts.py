"""Remembered answers, looked up together: what is asked while a look-up runs shares the next one.

A trip to a reading thread and back costs ten times what the look-up itself does, and every request
that carries a key makes one.
"""

import asyncio
from typing import Any

import apsw
import msgspec

from moot.store.protocol import Receipt
from moot.store.sqlite.bulk import LARGEST, Bulk
from moot.store.sqlite.readers import Readers

Name = tuple[str, str, str]
Asked = list[tuple[Name, asyncio.Future[Receipt | None]]]

FIND = Bulk(
    """
    SELECT r.tenant, r.operation, r.key, r.digest, r.status, r.headers, r.body, r.created_at
    FROM (VALUES {rows}) AS asked CROSS JOIN receipts AS r
    ON r.tenant = asked.column1 AND r.operation = asked.column2 AND r.key = asked.column3
    """,
    3,
)

_headers = msgspec.json.Decoder(dict[str, str]).decode


class Receipts:
    """Only the loop touches it."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._asked: Asked = []
        self._under_way = False

    async def find(self, name: Name) -> Receipt | None:
        loop = asyncio.get_running_loop()
        if not self._asked and not self._under_way:
            loop.call_soon(self._look)  # once the loop has gone round: others may ask, too
        found: asyncio.Future[Receipt | None] = loop.create_future()
        self._asked.append((name, found))
        return await found

    def _look(self) -> None:
        asked, self._asked = self._asked[:LARGEST], self._asked[LARGEST:]
        self._under_way = True
        try:
            looking = self._readers.begin(lambda db: _find(db, [name for name, _ in asked]))
        except Exception as refusal:
            self._under_way = False
            _fail(asked, refusal)
        else:
            looking.add_done_callback(lambda done: self._found(asked, done))

    def _found(self, asked: Asked, done: "asyncio.Future[dict[Name, Receipt]]") -> None:
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


def _fail(asked: Asked, failure: BaseException) -> None:
    for _, found in asked:
        if not found.done():
            found.set_exception(failure)


def _find(db: apsw.Connection, names: list[Name]) -> dict[Name, Receipt]:
    values = [part for name in names for part in name]
    return {(row[0], row[1], row[2]): _receipt(*row) for row in FIND.rows(db, values)}


def _receipt(tenant: str, operation: str, key: str, *kept: Any) -> Receipt:
    digest, status, headers, body, created_at = kept
    return Receipt(
        tenant=tenant,
        operation=operation,
        key=key,
        digest=digest,
        status=status,
        headers=_headers(headers),
        body=body,
        created_at=created_at,
    )
