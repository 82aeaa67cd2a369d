"""Update the search index in chunks, after the commits that queued its texts.

Indexing within each commit would make a lone turn three times as slow; chunks cost a fraction of
that (bench/README.md). A search waits until the index has caught up.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from moot.core.search.indexed_text import texts_from_bytes
from moot.core.text.words import index_text
from moot.store.sqlite.read.search import SQL, index_marks
from moot.store.sqlite.statements import BulkStatement, transaction

#: events that are indexed at a time; a commit waits for one chunk at most
CHUNK = 256
#: row ids that are reserved for the texts of one millisecond
SLOTS = 64

ADD_PLACES = BulkStatement(SQL["ADD_PLACES"], 5)
ADD_TEXTS = BulkStatement(SQL["ADD_TEXTS"], 3)


@contextmanager
def _unsynced(db: apsw.Connection) -> Iterator[None]:
    db.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        db.execute("PRAGMA synchronous = FULL")


#: time, log, sequence, source, tenant, event
QueuedText = tuple[Any, ...]


class SearchIndexer:
    """Writes the index. Only the writer thread uses it; any thread may read ``waiting``."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.waiting = 0
        #: the highest place in use
        self._last: int | None = None
        self.reload()

    def reload(self) -> None:
        """Read the number of queued texts and the highest place from disk."""
        self.waiting = self._db.execute(SQL["WAITING"]).get
        self._last = self._db.execute(SQL["LAST"]).get
        #: time and place of the previous text
        self._before = (2**62, 0)

    def index_chunk(self) -> None:
        """Index the oldest queued texts in a transaction of their own.

        The next commit of the log syncs it. A crash before that loses nothing, because the texts
        are still queued.
        """
        try:
            with _unsynced(self._db), transaction(self._db):
                rows: list[QueuedText] = self._db.execute(SQL["NEXT"], (CHUNK,)).fetchall()
                if rows:
                    self._add(rows)
                    self._db.execute(SQL["DONE"], rows[-1][:3])
            self.waiting = self.waiting - len(rows) if rows else 0
        except BaseException:
            self.reload()
            raise

    def _add(self, rows: list[QueuedText]) -> None:
        places, words = [], []
        for at, n, sequence, source, tenant, body in rows:
            for part, text in enumerate(texts_from_bytes(body) if body is not None else ()):
                place = self._free_place(at)
                places.append((place, n, sequence, part, source))
                words.append((place, index_text(text.text), index_marks(tenant, n, text)))
        ADD_PLACES.run(self._db, places)
        ADD_TEXTS.run(self._db, words)
        self._last = self._db.execute(SQL["LAST"]).get

    def _free_place(self, at: int) -> int:
        """Return the first free place for this time; texts come in the order of their time."""
        place = at * SLOTS
        if at >= self._before[0]:
            place = max(place, self._before[1] + 1)
        if self._last is not None:
            while place <= self._last and self._db.execute(SQL["TAKEN"], (place,)).get:
                place += 1
        self._before = at, place
        return place
