"""Load SQL from files, run it in transactions or for many rows, decode rows."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from itertools import chain
from typing import Any, TypeVar, get_origin

import apsw
import msgspec

S = TypeVar("S", bound=msgspec.Struct)

MOST_ROWS = 512

_STATEMENT = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


def load_statements(name: str) -> dict[str, str]:
    """Return the statements of a file by their names. ``{part}`` stands for an earlier entry.

    ``{rows}`` stays, for ``BulkStatement``. Values never become part of a statement.
    """
    text = files("moot.store.sqlite").joinpath("queries", f"{name}.sql").read_text("utf-8")
    statements: dict[str, str] = {}
    for match in _STATEMENT.finditer(text):
        sql = _COMMENT.sub("", match[2]).strip()
        for part, replacement in statements.items():
            sql = sql.replace(f"{{{part}}}", replacement)
        statements[match[1]] = sql
    return statements


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Commit the whole block or nothing. The connection stays usable after a failure."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        # a full disk makes SQLite roll back by itself
        if db.in_transaction:
            db.execute("ROLLBACK")


class BulkStatement:
    """A statement with the placeholder ``{rows}``, run for many rows in one step of SQLite.

    Each step gives up the interpreter lock and must win it back from a busy event loop, so one
    statement of 256 rows costs a hundredth of 256 statements of one row. There is one version for
    each power of two of rows, so that the statement cache holds all of them. Unused rows are bound
    to NULL, and the statement must ignore those.
    """

    def __init__(self, sql: str, columns: int) -> None:
        self._columns = columns
        row = f"({','.join('?' * columns)})"
        sizes = [1 << power for power in range(MOST_ROWS.bit_length())]
        self.sql = {size: sql.format(rows=",".join([row] * size)) for size in sizes}

    def run(self, db: apsw.Connection, rows: Sequence[Sequence[Any]]) -> None:
        """Run the statement for all rows."""
        for start in range(0, len(rows), MOST_ROWS):
            db.execute(*self._sized(rows[start : start + MOST_ROWS]))

    def select(self, db: apsw.Connection, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Return the result for at most MOST_ROWS rows."""
        return list(db.execute(*self._sized(rows)))

    def _sized(self, rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
        size = 1 << (len(rows) - 1).bit_length()
        unused = (None,) * ((size - len(rows)) * self._columns)
        return self.sql[size], [*chain.from_iterable(rows), *unused]


def row_decoder(kind: type[S]) -> Callable[[Sequence[Any]], S]:
    """Return a function that builds the Struct from columns in the order of its fields.

    Lists and mappings are stored as JSON, flags as numbers. Columns may lack the last fields.
    """
    names = kind.__struct_fields__
    decoders: dict[str, Callable[[Any], Any]] = {}
    for field in msgspec.structs.fields(kind):
        if field.type is bool:
            decoders[field.name] = bool
        elif get_origin(field.type) in (list, dict):
            decoders[field.name] = msgspec.json.Decoder(field.type).decode

    def decode(columns: Sequence[Any]) -> S:
        values = dict(zip(names, columns, strict=False))
        for name, decoder in decoders.items():
            if name in values:
                values[name] = decoder(values[name])
        return kind(**values)

    return decode
