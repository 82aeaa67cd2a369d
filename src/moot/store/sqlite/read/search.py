"""Search texts in SQLite, and read marks.

Every filter of a search is a word of the index, too, so a search reads only rows that match. The
query still checks the tenant of each hit against its log.
"""

from functools import lru_cache
from typing import Any

import apsw
import msgspec
from msgspec.structs import astuple

from moot.core.search.indexed_text import IndexedText
from moot.core.search.query import Phrase, Query, SearchPlace
from moot.store import cursor
from moot.store.search import ReadMark, SearchPage, SearchRow
from moot.store.sqlite.read.readers import select_rows
from moot.store.sqlite.statements import load_statements, row_decoder

SQL = load_statements("search")

_decode_hit = row_decoder(SearchRow)
_decode_mark = row_decoder(ReadMark)


def search_texts(
    db: apsw.Connection, tenant: str, query: Query, before: int, limit: int
) -> SearchPage:
    words = _expression(db, tenant, query)
    if words is None:
        return SearchPage([])
    values: dict[str, object] = {"words": words, "before": before}
    values |= {"tenant": tenant, "placed": bool(query.places), "limit": limit + 1}
    rows: list[tuple[Any, ...]] = db.execute(SQL["SEARCH"], values).fetchall()
    page = rows[:limit]
    if not page:
        return SearchPage([])
    more = cursor.pack_numbers(page[-1][0]) if len(rows) > limit else None
    again = cursor.pack_numbers(page[0][0] + 1)
    return SearchPage([_decode_hit(row[1:]) for row in page], more, again)


def _expression(db: apsw.Connection, tenant: str, query: Query) -> str | None:
    """Return the query in the syntax of the index, or None when nothing can match.

    No part of the user's text reaches the index as is: words consist of letters and digits, and
    everything else is hex-encoded.
    """
    places = [mark for place in query.places for mark in _place_marks(db, tenant, place)]
    if query.empty or (query.places and not places):
        return None
    # the look-up of places has already checked the tenant of each run
    parts = [] if places else [_mark(_hex_word("t", tenant))]
    parts += [_phrase(phrase) for phrase in query.phrases]
    kinds = [_mark(f"k{kind}") for kind in query.kinds]
    senders = [_mark(_hex_word("f", name)) for name in query.senders]
    parts += [f"({' OR '.join(marks)})" for marks in (kinds, senders, places) if marks]
    return " AND ".join(parts)


def _phrase(phrase: Phrase) -> str:
    return f'text:"{" ".join(phrase.tokens)}"' + (" *" if phrase.prefix else "")


def _mark(word: str) -> str:
    return f'marks:"{word}"'


def _place_marks(db: apsw.Connection, tenant: str, place: SearchPlace) -> list[str]:
    n = db.execute(SQL["NUMBER"], (place.run_id, tenant)).get
    if n is None:
        return []
    run = _mark(f"r{n}")
    return [f"({run} AND {_mark(_hex_word('c', place.talk))})" if place.talk else run]


def index_marks(tenant: str, n: int, text: IndexedText) -> str:
    return _marks(tenant, n, text.kind, text.by, text.talk)


@lru_cache(maxsize=4096)
def _marks(tenant: str, n: int, kind: str, by: str, talk: str) -> str:
    """Return the marks that all texts of one sender in one conversation share."""
    by = by.casefold()
    senders = {by, by.rpartition(":")[2]}
    words = [_hex_word("t", tenant), f"k{kind}", f"r{n}"]
    words += [_hex_word("f", name) for name in senders]
    return " ".join([*words, _hex_word("c", talk)] if talk else words)


@lru_cache(maxsize=4096)
def _hex_word(letter: str, name: str) -> str:
    """Return the name as letters and digits; different names stay different.

    The letter is t for a tenant, f for a sender and c for a conversation.
    """
    return letter + name.encode("utf-8", "surrogatepass").hex()


def move_read_mark(db: apsw.Connection, mark: ReadMark) -> ReadMark:
    db.execute(SQL["MARK"], astuple(mark))
    [stored] = list_read_marks(db, mark.tenant, mark.reader, [mark.thread_id])
    return stored


def list_read_marks(
    db: apsw.Connection, tenant: str, reader: str, threads: list[str]
) -> list[ReadMark]:
    thread_ids = msgspec.json.encode(list(dict.fromkeys(threads))).decode()
    return select_rows(db, _decode_mark, SQL["READ_MARKS"], (thread_ids, tenant, reader))
