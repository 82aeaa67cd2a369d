"""The writer's bounded cache of the table ``heads``: length and hash of each log."""

from collections.abc import Iterable

import apsw
import msgspec

from moot.store.sqlite.write.statements import SQL

_encode = msgspec.json.Encoder().encode


class LogHead(msgspec.Struct):
    """One log's number, tenant, length and last hash, and the due time of its work."""

    n: int
    tenant: str
    next_sequence: int = 0
    hash: bytes = b""
    due_at: int | None = None


class LogHeads:
    """A cache that drops the least recently used head. Only the writer thread uses it."""

    def __init__(self, db: apsw.Connection, limit: int) -> None:
        self._db = db
        self._limit = limit
        self._cached: dict[str, LogHead] = {}
        self.last_number: int = db.execute(SQL["LAST_NUMBER"]).get

    def load(self, run_ids: Iterable[str]) -> None:
        """Cache the heads of these runs with one query; a head still missing does not exist."""
        missing = {run_id for run_id in run_ids if run_id not in self._cached}
        if missing:
            for run_id, *columns in self._db.execute(
                SQL["FIND_HEADS"], (_encode(missing).decode(),)
            ):
                self._cached[run_id] = LogHead(*columns)

    def get(self, run_id: str) -> LogHead | None:
        head = self._cached.pop(run_id, None)
        if head is not None:
            self._cached[run_id] = head
        return head

    def create(self, run_id: str, tenant: str) -> LogHead:
        self.last_number += 1
        head = self._cached[run_id] = LogHead(self.last_number, tenant)
        return head

    def forget(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self._cached.pop(run_id, None)

    def clear(self) -> None:
        self._cached.clear()

    def trim(self) -> None:
        excess = len(self._cached) - self._limit
        if excess > 0:
            self.forget([run_id for run_id, _ in zip(self._cached, range(excess), strict=False)])
