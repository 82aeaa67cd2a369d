"""Statements that handle many rows in one step of SQLite.

Each step gives up the interpreter lock and must win it back from a busy event loop, so one
statement of 256 rows costs a hundredth of 256 statements of one row.
"""

from typing import Any

import apsw

MOST_ROWS = 512


class BulkStatement:
    """A statement with the placeholder ``{rows}``, run for many rows at once.

    There is one version for each power of two of rows, so that the statement cache holds all of
    them. Unused rows are bound to NULL, and the statement must ignore those.
    """

    def __init__(self, sql: str, columns: int) -> None:
        self._columns = columns
        row = f"({','.join('?' * columns)})"
        sizes = [1 << power for power in range(MOST_ROWS.bit_length())]
        self.sql = {size: sql.format(rows=",".join([row] * size)) for size in sizes}

    def run(self, db: apsw.Connection, values: list[Any]) -> None:
        """Run the statement for all rows. ``values`` is one flat list of their columns."""
        step = MOST_ROWS * self._columns
        for start in range(0, len(values), step):
            self._run(db, values[start : start + step])

    def rows(self, db: apsw.Connection, values: list[Any]) -> list[tuple[Any, ...]]:
        """Return the result for at most MOST_ROWS rows."""
        return list(db.execute(*self._sized(values)))

    def _run(self, db: apsw.Connection, values: list[Any]) -> None:
        db.execute(*self._sized(values))

    def _sized(self, values: list[Any]) -> tuple[str, list[Any]]:
        rows = len(values) // self._columns
        size = 1 << (rows - 1).bit_length()
        return self.sql[size], values + [None] * ((size - rows) * self._columns)
