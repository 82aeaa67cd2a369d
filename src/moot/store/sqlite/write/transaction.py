"""Transactions on a write connection."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


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
