"""Where each log stands, as the writer knows it: a bounded cache over the table ``heads``."""

from collections.abc import Iterable

import apsw
import msgspec

LAST_NUMBER = "SELECT ifnull(max(n), 0) FROM heads"
FIND = """
SELECT h.run_id, h.n, h.tenant, h.next_sequence, h.hash, w.due_at
FROM json_each(?) AS asked
CROSS JOIN heads AS h ON h.run_id = asked.value
LEFT JOIN work AS w ON w.n = h.n
"""

_encode = msgspec.json.Encoder().encode


class Head:
    """One log: its number, its owner, its length, its last hash, and when its work is due."""

    __slots__ = ("due_at", "hash", "n", "next_sequence", "tenant")

    def __init__(
        self,
        n: int,
        tenant: str,
        next_sequence: int = 0,
        hash_: bytes = b"",
        due_at: int | None = None,
    ) -> None:
        self.n = n
        self.tenant = tenant
        self.next_sequence = next_sequence
        self.hash = hash_
        self.due_at = due_at


class Heads:
    """Least recently used out. Only the writer thread touches it."""

    def __init__(self, db: apsw.Connection, limit: int) -> None:
        self._db = db
        self._limit = limit
        self._known: dict[str, Head] = {}
        self.last_number: int = db.execute(LAST_NUMBER).get

    def load(self, run_ids: Iterable[str]) -> None:
        """Looks up those that are not known, in one query; what is then unknown does not exist."""
        asked = {run_id for run_id in run_ids if run_id not in self._known}
        if asked:
            for run_id, *columns in self._db.execute(FIND, (_encode(asked).decode(),)):
                self._known[run_id] = Head(*columns)

    def get(self, run_id: str) -> Head | None:
        head = self._known.pop(run_id, None)
        if head is not None:
            self._known[run_id] = head
        return head

    def create(self, run_id: str, tenant: str) -> Head:
        self.last_number += 1
        head = self._known[run_id] = Head(self.last_number, tenant)
        return head

    def forget(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self._known.pop(run_id, None)

    def clear(self) -> None:
        self._known.clear()

    def trim(self) -> None:
        excess = len(self._known) - self._limit
        if excess > 0:
            self.forget([run_id for run_id, _ in zip(self._known, range(excess), strict=False)])
