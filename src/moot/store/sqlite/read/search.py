"""Search texts in SQLite, and read marks.

Every filter of a search is a word of the index, too, so a search reads only rows that match. The
query still checks the tenant of each hit against its log.
"""

from functools import lru_cache
from typing import Any

import apsw
import msgspec

from moot.core.search.indexed_text import IndexedText
from moot.core.search.query import Phrase, Query, SearchPlace
from moot.store import cursor
from moot.store.search import ReadMark, SearchPage, SearchRow

SEARCH = """
SELECT t.rowid, h.run_id, ifnull(r.workflow_id, ''), p.sequence, p.part, e.body
FROM texts AS t CROSS JOIN text_places AS p ON p.id = t.rowid
CROSS JOIN heads AS h ON h.n = p.n AND h.tenant = :tenant
CROSS JOIN events AS e ON e.n = p.n AND e.sequence = p.sequence
LEFT JOIN runs AS r ON r.n = p.n
WHERE t.texts MATCH :words AND t.rowid < :before AND (
  :placed OR p.source IS NULL
  OR NOT EXISTS (SELECT 1 FROM heads AS o WHERE o.run_id = p.source AND o.tenant = :tenant)
)
ORDER BY t.rowid DESC LIMIT :limit
"""
NUMBER = "SELECT n FROM heads WHERE run_id = ? AND tenant = ?"
MARK = """
INSERT INTO read_marks (tenant, reader, thread_id, sequence, turn, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, reader, thread_id) DO UPDATE
SET sequence = excluded.sequence, turn = excluded.turn, at = excluded.at
WHERE excluded.sequence > read_marks.sequence
"""
READ_MARKS = """
SELECT m.tenant, m.reader, m.thread_id, m.sequence, m.turn, m.at
FROM json_each(?) AS asked CROSS JOIN read_marks AS m
ON m.tenant = ? AND m.reader = ? AND m.thread_id = asked.value
"""


def search_texts(
    db: apsw.Connection, tenant: str, query: Query, before: int, limit: int
) -> SearchPage:
    words = _expression(db, tenant, query)
    if words is None:
        return SearchPage([])
    values = {"tenant": tenant, "words": words, "before": before, "placed": bool(query.places)}
    rows: list[tuple[Any, ...]] = db.execute(SEARCH, values | {"limit": limit + 1}).fetchall()
    page = rows[:limit]
    if not page:
        return SearchPage([])
    more = cursor.pack_numbers(page[-1][0]) if len(rows) > limit else None
    return SearchPage([_search_hit(row) for row in page], more, cursor.pack_numbers(page[0][0] + 1))


def _search_hit(row: tuple[Any, ...]) -> SearchRow:
    _, run_id, workflow_id, sequence, part, body = row
    return SearchRow(
        run_id=run_id, workflow_id=workflow_id, sequence=sequence, part=part, body=body
    )  # fmt: skip


def _expression(db: apsw.Connection, tenant: str, query: Query) -> str | None:
    """Return the query in the syntax of the index, or None when nothing can match.

    No part of the user's text reaches the index as is: words consist of letters and digits, and
    everything else is hex-encoded.
    """
    places = [mark for place in query.places for mark in _place_marks(db, tenant, place)]
    if query.empty or (query.places and not places):
        return None
    # the look-up of places has already checked the tenant of each run
    parts = [] if places else [_mark(_tenant_word(tenant))]
    parts += [_phrase(phrase) for phrase in query.phrases]
    kinds = [_mark(_kind_word(kind)) for kind in query.kinds]
    senders = [_mark(_sender_word(name)) for name in query.senders]
    parts += [f"({' OR '.join(marks)})" for marks in (kinds, senders, places) if marks]
    return " AND ".join(parts)


def _phrase(phrase: Phrase) -> str:
    return f'text:"{" ".join(phrase.tokens)}"' + (" *" if phrase.prefix else "")


def _mark(word: str) -> str:
    return f'marks:"{word}"'


def _place_marks(db: apsw.Connection, tenant: str, place: SearchPlace) -> list[str]:
    n = db.execute(NUMBER, (place.run_id, tenant)).get
    if n is None:
        return []
    run = _mark(_run_word(n))
    return [f"({run} AND {_mark(_conversation_word(place.talk))})" if place.talk else run]


def index_marks(tenant: str, n: int, text: IndexedText) -> str:
    return _marks(tenant, n, text.kind, text.by, text.talk)


@lru_cache(maxsize=4096)
def _marks(tenant: str, n: int, kind: str, by: str, talk: str) -> str:
    """Return the marks that all texts of one sender in one conversation share."""
    by = by.casefold()
    senders = {by, by.rpartition(":")[2]}
    words = [_tenant_word(tenant), _kind_word(kind), _run_word(n), *map(_sender_word, senders)]
    return " ".join([*words, _conversation_word(talk)] if talk else words)


def _tenant_word(tenant: str) -> str:
    return "t" + _hex_word(tenant)


def _kind_word(kind: str) -> str:
    return "k" + kind


def _sender_word(name: str) -> str:
    return "f" + _hex_word(name)


def _run_word(n: int) -> str:
    return f"r{n}"


def _conversation_word(conversation: str) -> str:
    return "c" + _hex_word(conversation)


@lru_cache(maxsize=4096)
def _hex_word(name: str) -> str:
    """Return the name as letters and digits; different names stay different."""
    return name.encode("utf-8", "surrogatepass").hex()


def move_read_mark(db: apsw.Connection, mark: ReadMark) -> ReadMark:
    db.execute(MARK, (mark.tenant, mark.reader, mark.thread_id, mark.sequence, mark.turn, mark.at))
    [stored] = list_read_marks(db, mark.tenant, mark.reader, [mark.thread_id])
    return stored


def list_read_marks(
    db: apsw.Connection, tenant: str, reader: str, threads: list[str]
) -> list[ReadMark]:
    names, thread_ids = (
        ReadMark.__struct_fields__,
        msgspec.json.encode(list(dict.fromkeys(threads))),
    )
    rows: list[tuple[Any, ...]] = db.execute(
        READ_MARKS, (thread_ids.decode(), tenant, reader)
    ).fetchall()
    return [ReadMark(**dict(zip(names, row, strict=True))) for row in rows]
