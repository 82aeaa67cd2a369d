"""The search on disk. Everything a search is narrowed down by is a word of the index, too, so that
no search looks at more than it finds; whose a text is, is asked of the log once more."""

from functools import lru_cache
from typing import Any

import apsw
import msgspec

from moot.core.search.indexed_text import Text
from moot.core.search.query import Phrase, Place, Query
from moot.store import cursor
from moot.store.search import Found, Page, ReadMark

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


def search(db: apsw.Connection, tenant: str, query: Query, before: int, limit: int) -> Page:
    words = _expression(db, tenant, query)
    if words is None:
        return Page([])
    values = {"tenant": tenant, "words": words, "before": before, "placed": bool(query.places)}
    rows: list[tuple[Any, ...]] = db.execute(SEARCH, values | {"limit": limit + 1}).fetchall()
    page = rows[:limit]
    if not page:
        return Page([])
    more = cursor.packed(page[-1][0]) if len(rows) > limit else None
    return Page([_found(row) for row in page], more, cursor.packed(page[0][0] + 1))


def _found(row: tuple[Any, ...]) -> Found:
    _, run_id, workflow_id, sequence, part, body = row
    return Found(
        run_id=run_id, workflow_id=workflow_id, sequence=sequence, part=part, body=body
    )  # fmt: skip


def _expression(db: apsw.Connection, tenant: str, query: Query) -> str | None:
    """The query as the index is asked. Nothing of it is taken as it came: words are letters and
    digits by now, everything else is spelt in those."""
    places = [mark for place in query.places for mark in _placed(db, tenant, place)]
    if query.empty or (query.places and not places):
        return None
    # a run is of one tenant: where runs are named, whose they are has been asked
    parts = [] if places else [_mark(_of_tenant(tenant))]
    parts += [_phrase(phrase) for phrase in query.phrases]
    kinds = [_mark(_of_kind(kind)) for kind in query.kinds]
    senders = [_mark(_of_sender(name)) for name in query.senders]
    parts += [f"({' OR '.join(marks)})" for marks in (kinds, senders, places) if marks]
    return " AND ".join(parts)


def _phrase(phrase: Phrase) -> str:
    return f'text:"{" ".join(phrase.tokens)}"' + (" *" if phrase.prefix else "")


def _mark(word: str) -> str:
    return f'marks:"{word}"'


def _placed(db: apsw.Connection, tenant: str, place: Place) -> list[str]:
    n = db.execute(NUMBER, (place.run_id, tenant)).get
    if n is None:
        return []
    run = _mark(_of_run(n))
    return [f"({run} AND {_mark(_of_talk(place.talk))})" if place.talk else run]


def marks(tenant: str, n: int, text: Text) -> str:
    by = text.by.casefold()
    senders = {by, by.rpartition(":")[2]}
    words = [_of_tenant(tenant), _of_kind(text.kind), _of_run(n), *map(_of_sender, senders)]
    return " ".join([*words, _of_talk(text.talk)] if text.talk else words)


def _of_tenant(tenant: str) -> str:
    return "t" + _spelt(tenant)


def _of_kind(kind: str) -> str:
    return "k" + kind


def _of_sender(name: str) -> str:
    return "f" + _spelt(name)


def _of_run(n: int) -> str:
    return f"r{n}"


def _of_talk(talk: str) -> str:
    return "c" + _spelt(talk)


@lru_cache(maxsize=4096)
def _spelt(name: str) -> str:
    """Any name in letters and digits, no two alike."""
    return name.encode("utf-8", "surrogatepass").hex()


def mark_read(db: apsw.Connection, mark: ReadMark) -> ReadMark:
    db.execute(MARK, (mark.tenant, mark.reader, mark.thread_id, mark.sequence, mark.turn, mark.at))
    [found] = read_marks(db, mark.tenant, mark.reader, [mark.thread_id])
    return found


def read_marks(db: apsw.Connection, tenant: str, reader: str, threads: list[str]) -> list[ReadMark]:
    names, asked = ReadMark.__struct_fields__, msgspec.json.encode(list(dict.fromkeys(threads)))
    rows: list[tuple[Any, ...]] = db.execute(
        READ_MARKS, (asked.decode(), tenant, reader)
    ).fetchall()
    return [ReadMark(**dict(zip(names, row, strict=True))) for row in rows]
