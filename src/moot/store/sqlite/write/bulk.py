"""Many rows in one step of SQLite.

Each step gives up the interpreter lock and must win it back from a busy event loop, so one
statement of 256 rows costs a hundredth of 256 statements of one row.
"""

from typing import Any

import apsw

LARGEST = 512


class Bulk:
    """A statement with the mark ``{rows}``, run for many rows at once.

    It exists for each power of two of rows, so that the statement cache holds all of them; rows
    that are left over are bound to NULL, and the statement must ignore them.
    """

    def __init__(self, sql: str, columns: int) -> None:
        self._columns = columns
        row = f"({','.join('?' * columns)})"
        sizes = [1 << power for power in range(LARGEST.bit_length())]
        self.sql = {size: sql.format(rows=",".join([row] * size)) for size in sizes}

    def run(self, db: apsw.Connection, values: list[Any]) -> None:
        """``values`` holds the rows one after the other, without a bracket around each."""
        step = LARGEST * self._columns
        for start in range(0, len(values), step):
            self._run(db, values[start : start + step])

    def rows(self, db: apsw.Connection, values: list[Any]) -> list[tuple[Any, ...]]:
        """What the statement finds for at most LARGEST rows."""
        return list(db.execute(*self._sized(values)))

    def _run(self, db: apsw.Connection, values: list[Any]) -> None:
        db.execute(*self._sized(values))

    def _sized(self, values: list[Any]) -> tuple[str, list[Any]]:
        rows = len(values) // self._columns
        size = 1 << (rows - 1).bit_length()
        return self.sql[size], values + [None] * ((size - rows) * self._columns)
