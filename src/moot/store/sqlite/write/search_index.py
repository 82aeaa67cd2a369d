"""The index of words, which trails the log: a commit only notes what is to be indexed.

An index that is written with every commit makes a lone turn three times as long; in larger pieces
it costs a fraction (bench/README.md). A search lets it catch up first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from moot.core.search.indexed_text import texts_of
from moot.core.text.words import plain
from moot.store.sqlite.read.search import marks
from moot.store.sqlite.write.bulk import Bulk
from moot.store.sqlite.write.transaction import transaction

#: events that are indexed at a time; nobody's commit waits for more
CHUNK = 256
#: texts of one millisecond that have places of their own
SLOTS = 64

WAITING = "SELECT count(*) FROM text_queue"
LAST = "SELECT max(id) FROM text_places"
TAKEN = "SELECT 1 FROM text_places WHERE id = ?"
NEXT = """
SELECT q.at, q.n, q.sequence, q.source, h.tenant, e.body
FROM text_queue AS q CROSS JOIN heads AS h ON h.n = q.n
LEFT JOIN events AS e ON e.n = q.n AND e.sequence = q.sequence
ORDER BY q.at, q.n, q.sequence LIMIT ?
"""
DONE = "DELETE FROM text_queue WHERE (at, n, sequence) <= (?, ?, ?)"
ADD_PLACES = Bulk(
    """
    INSERT INTO text_places (id, n, sequence, part, source)
    SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
    """,
    5,
)
ADD_TEXTS = Bulk(
    """
    INSERT INTO texts (rowid, text, marks)
    SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL
    """,
    3,
)


@contextmanager
def _unsynced(db: apsw.Connection) -> Iterator[None]:
    db.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        db.execute("PRAGMA synchronous = FULL")


#: time, log, sequence, source, tenant, event
Row = tuple[Any, ...]


class Indexer:
    """Only the writer thread touches it; ``waiting`` may be looked at from anywhere."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.waiting = 0
        #: the highest place that is taken
        self._last: int | None = None
        self.look()

    def look(self) -> None:
        """How things stand on disk."""
        self.waiting = self._db.execute(WAITING).get
        self._last = self._db.execute(LAST).get
        #: the time and the place of the text before
        self._before = (2**62, 0)

    def step(self) -> None:
        """The oldest of what waits, in a transaction of its own. It goes to disk with the next
        commit of the log, and until then a crash loses nothing that is not noted."""
        try:
            with _unsynced(self._db), transaction(self._db):
                rows: list[Row] = self._db.execute(NEXT, (CHUNK,)).fetchall()
                if rows:
                    self._add(rows)
                    self._db.execute(DONE, rows[-1][:3])
            self.waiting = self.waiting - len(rows) if rows else 0
        except BaseException:
            self.look()
            raise

    def _add(self, rows: list[Row]) -> None:
        places: list[object] = []
        words: list[object] = []
        for at, n, sequence, source, tenant, body in rows:
            for part, text in enumerate(texts_of(body) if body is not None else ()):
                place = self._place(at)
                places += (place, n, sequence, part, source)
                words += (place, plain(text.text), marks(tenant, n, text))
        ADD_PLACES.run(self._db, places)
        ADD_TEXTS.run(self._db, words)
        self._last = self._db.execute(LAST).get

    def _place(self, at: int) -> int:
        """The first free one of its time; texts come in the order of their time."""
        place = at * SLOTS
        if at >= self._before[0]:
            place = max(place, self._before[1] + 1)
        if self._last is not None:
            while place <= self._last and self._db.execute(TAKEN, (place,)).get:
                place += 1
        self._before = at, place
        return place
