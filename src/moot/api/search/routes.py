"""Search threads, turns, decisions and runs by their words."""

from typing import TypeVar

from msgspec.structs import replace

from moot.api.http.request import Endpoint, QuerySchema, Reply, Request, whole_number
from moot.api.views import copy_fields
from moot.core.errors import BadRequest
from moot.core.search.indexed_text import KINDS
from moot.core.search.query import (
    LONGEST_QUERY,
    Query,
    filter_problem,
    normalize_sender,
    parse_place,
    parse_query,
)
from moot.engine.replay.import_log import IMPORT_RECORD
from moot.engine.search import ORDERS, SearchHit, thread_titles
from moot.wire.search import SearchResult, SearchResultList, SearchSnippet

LONGEST_TITLE = 200
Word = TypeVar("Word")


async def search_tenant(request: Request) -> Reply:
    store, tenant = request.store, request.tenant
    query, find = _parse_query(request), ORDERS.get(request.query.get("order", "newest"))
    if find is None:
        raise BadRequest(f"order must be one of {', '.join(ORDERS)}.", field="order")
    limit = request.integer("limit", 20, 1, 100)
    page = await find(store, tenant, query, request.query.get("cursor"), limit)
    run_titles = await thread_titles(store, tenant, page.found)
    marks = {run_id: await store.record(tenant, IMPORT_RECORD, run_id) for run_id in run_titles}
    results = [
        _result_view(each, run_titles[each.run_id], marks[each.run_id] is not None)
        for each in page.found
    ]
    answer = SearchResultList(results=results, next_cursor=page.following)
    return Reply(answer, 200, {"Cache-Control": "no-store"})


def _parse_query(request: Request) -> Query:
    """Return the query from its words and the other parameters."""
    params = request.query
    text = params.get("q", "")
    for name in ("q", "from", "thread"):
        if len(params.get(name, "")) > LONGEST_QUERY:
            raise BadRequest(f"{name} has at most {LONGEST_QUERY} characters.", field=name)
    query = parse_query(text)
    if (wrong := filter_problem(text)) is not None:
        raise BadRequest(wrong, field="q")
    kinds = tuple(word for word in params.get("kind", "").split(",") if word)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise BadRequest(
            f"'{unknown[0][:64]}' is not a kind; use {', '.join(KINDS)}.", field="kind"
        )
    names = tuple(
        normalize_sender(word)
        for word in params.get("from", "").split(",")
        if normalize_sender(word)
    )
    places = tuple(parse_place(word) for word in params.get("thread", "").split(",") if word)
    return replace(
        query,
        kinds=_intersect("kind", kinds, query.kinds),
        senders=_intersect("from", names, query.senders),
        places=_intersect("thread", places, query.places),
    )


def _intersect(field: str, allowed: tuple[Word, ...], wanted: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return what both the parameter and the words allow. Raise BadRequest when that is nothing."""
    if not allowed or not wanted:
        return allowed or wanted
    both = tuple(each for each in wanted if each in allowed)
    if not both:
        raise BadRequest(
            f"{field}: in the words asks for what {field} leaves out; say it once.", field=field
        )
    return both


def _result_view(finding: SearchHit, title: str, imported: bool) -> SearchResult:
    text, event, part = finding.text, finding.event, finding.snippet
    return SearchResult(
        kind=text.kind,
        run_id=finding.run_id,
        sequence=event.sequence,
        event_id=event.event_id,
        at=event.timestamp,
        title=title[:LONGEST_TITLE],
        snippet=copy_fields(SearchSnippet, part),
        thread_id=finding.thread_id,
        sender=text.by or None,
        to=text.to,
        turn_index=text.turn,
        imported=imported,
    )


WORDS: QuerySchema = {"type": "string", "maxLength": LONGEST_QUERY}
SEARCH = {
    "q": WORDS, "kind": WORDS, "from": WORDS, "thread": WORDS,
    "order": {"type": "string", "enum": list(ORDERS)}, "limit": whole_number(1, 100),
    "cursor": WORDS,
}  # fmt: skip
SEARCH_ENDPOINTS = (
    Endpoint("GET", "/v1/host/moot/search", search_tenant, scope="runs:read", query=SEARCH,
             answer=SearchResultList),
)  # fmt: skip
