"""Turn search results into hits: the text around the words, its event and run."""

import asyncio
import heapq
import re

from msgspec import Struct
from msgspec.structs import replace

from moot.core import events
from moot.core.errors import BadRequest
from moot.core.events import Event
from moot.core.payloads.runs import RunStarted
from moot.core.search.indexed_text import IndexedText, indexed_texts
from moot.core.search.query import Query, SearchPlace, TextSnippet, make_snippet, score_text
from moot.core.state.conversation import THREAD
from moot.store.protocol import Store
from moot.store.search import SearchRow

#: how many of the newest results are ranked
WINDOW = 500
#: characters searched for the words: of one text, and of all texts that one search shows or
#: ranks. With many long texts each is searched less far
MOST_CHARS_OF_TEXT = 50_000
MOST_CHARS_OF_SEARCH = 2_000_000
#: a cursor of the store, and how many of the best hits came before
_BEST_CURSOR = re.compile(r"([\w-]{1,64})\.(\d{1,4})", re.ASCII)


class SearchHit(Struct, frozen=True, kw_only=True):
    text: IndexedText
    run_id: str
    workflow_id: str
    event: Event
    snippet: TextSnippet

    @property
    def thread_id(self) -> str | None:
        """Return the thread, or None for a text outside of conversations."""
        if self.workflow_id == THREAD:
            return self.run_id
        return f"{self.run_id}~{self.text.talk}" if self.text.talk else None


class SearchHits(Struct, frozen=True):
    """One page of hits, and the cursor of the next page."""

    found: list[SearchHit]
    following: str | None = None


async def newest_hits(
    store: Store, tenant: str, query: Query, cursor: str | None, limit: int
) -> SearchHits:
    page = await store.search(tenant, query, cursor, limit)
    # in a worker thread, because long texts would block the loop
    return SearchHits(await asyncio.to_thread(_hits, query, page.found), page.following)


async def best_hits(
    store: Store, tenant: str, query: Query, cursor: str | None, limit: int
) -> SearchHits:
    """Return the best of the newest ``WINDOW`` hits. Raise BadRequest on a foreign cursor."""
    start, skipped = None, 0
    if cursor is not None:
        parts = _BEST_CURSOR.fullmatch(cursor)
        if parts is None:
            raise BadRequest("The cursor is not one this list gave out; start without it.")
        start, skipped = parts[1], int(parts[2])
    page = await store.search(tenant, query, start, WINDOW)
    until = skipped + limit
    chosen = await asyncio.to_thread(_rank, query, page.found, until)
    hits = await asyncio.to_thread(_hits, query, chosen[skipped:])
    more = until < len(page.found)
    return SearchHits(hits, f"{page.again}.{until}" if more else None)


#: the orders of hits, by name
ORDERS = {"newest": newest_hits, "best": best_hits}


def _rank(query: Query, results: list[SearchRow], most: int) -> list[SearchRow]:
    """Return the best results. Of two equally good ones the newer comes first."""
    chars = _chars_per_text(results)
    texts = [_indexed_text(result) for result in results]
    scores = [score_text(query, replace(t, text=t.text[:chars])) if t else 0.0 for t in texts]
    places = heapq.nsmallest(most, range(len(results)), key=lambda at: (-scores[at], at))
    return [results[at] for at in places]


def _chars_per_text(results: list[SearchRow]) -> int:
    return min(MOST_CHARS_OF_TEXT, MOST_CHARS_OF_SEARCH // max(1, len(results)))


def _indexed_text(result: SearchRow) -> IndexedText | None:
    indexed = indexed_texts(events.decode(result.body))
    return indexed[result.part] if result.part < len(indexed) else None


def _hits(query: Query, results: list[SearchRow]) -> list[SearchHit]:
    """Return the hits, without texts that an older index knows but that exist no more."""
    chars = _chars_per_text(results)
    hits = (_hit(query, result, chars) for result in results)
    return [result for result in hits if result is not None]


def _hit(query: Query, result: SearchRow, chars: int) -> SearchHit | None:
    text = _indexed_text(result)
    if text is None:
        return None
    return SearchHit(
        text=text,
        run_id=result.run_id,
        workflow_id=result.workflow_id,
        event=events.decode(result.body),
        snippet=make_snippet(query, text.text[:chars]),
    )


async def thread_titles(store: Store, tenant: str, hits: list[SearchHit]) -> dict[str, str]:
    """Return run -> the newest title of a thread, else its question; else the workflow's id."""
    titles = {hit.run_id: hit.workflow_id for hit in hits}
    for run_id, workflow_id in titles.items():
        if workflow_id == THREAD:
            titles[run_id] = await _thread_title(store, tenant, run_id)
    return titles


async def _thread_title(store: Store, tenant: str, run_id: str) -> str:
    named = Query(kinds=("thread",), places=(SearchPlace(run_id),))
    page = await store.search(tenant, named, None, 1)
    if page.found and (text := _indexed_text(page.found[0])) is not None:
        return text.text
    rows = await store.read(tenant, run_id, -1, 1)
    start = events.decode(rows[0]).payload if rows else None
    return str(start.inputs.get("question", "")) if isinstance(start, RunStarted) else ""
