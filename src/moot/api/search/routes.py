"""Search over everything that was said, asked and decided in a tenant."""

from typing import Any, TypeVar

from msgspec.structs import replace

from moot.api.http.request import Endpoint, Reply, Request
from moot.core.errors import BadRequest
from moot.core.search.indexed_text import KINDS
from moot.core.search.query import LONGEST_QUERY, Query, misused, parse, place, sender
from moot.engine.replay.import_log import TAKEN_IN
from moot.engine.search import ORDERS, WINDOW, Finding, titles

LONGEST_TITLE = 200
Word = TypeVar("Word")


async def search(request: Request) -> Reply:
    store, tenant = request.services.store, request.caller.tenant
    query, find = _query(request), ORDERS.get(request.query.get("order", "newest"))
    if find is None:
        raise BadRequest(f"order must be one of {', '.join(ORDERS)}.", field="order")
    limit = request.integer("limit", 20, 1, 100)
    found = await find(store, tenant, query, request.query.get("cursor"), limit)
    called = await titles(store, tenant, found.found)
    marks = {run_id: await store.record(tenant, TAKEN_IN, run_id) for run_id in called}
    results = [
        _shown(each, called[each.run_id]) | ({"imported": True} if marks[each.run_id] else {})
        for each in found.found
    ]
    body: dict[str, Any] = {"results": results}
    if found.following is not None:
        body["nextCursor"] = found.following
    return Reply(body, 200, {"Cache-Control": "no-store"})


def _query(request: Request) -> Query:
    """What is asked in words, and what the other parameters add to it."""
    asked = request.query
    text = asked.get("q", "")
    for name in ("q", "from", "thread"):
        if len(asked.get(name, "")) > LONGEST_QUERY:
            raise BadRequest(f"{name} has at most {LONGEST_QUERY} characters.", field=name)
    query = parse(text)
    if (wrong := misused(text)) is not None:
        raise BadRequest(wrong, field="q")
    kinds = tuple(word for word in asked.get("kind", "").split(",") if word)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise BadRequest(
            f"'{unknown[0][:64]}' is not a kind; use {', '.join(KINDS)}.", field="kind"
        )
    names = tuple(sender(word) for word in asked.get("from", "").split(",") if sender(word))
    places = tuple(place(word) for word in asked.get("thread", "").split(",") if word)
    return replace(
        query,
        kinds=_both("kind", kinds, query.kinds),
        senders=_both("from", names, query.senders),
        places=_both("thread", places, query.places),
    )


def _both(field: str, asked: tuple[Word, ...], said: tuple[Word, ...]) -> tuple[Word, ...]:
    """What the parameter allows and the words ask for; where there is nothing of both, nobody
    knows what is meant."""
    if not asked or not said:
        return asked or said
    both = tuple(each for each in said if each in asked)
    if not both:
        raise BadRequest(
            f"{field}: in the words asks for what {field} leaves out; say it once.", field=field
        )
    return both


def _shown(found: Finding, title: str) -> dict[str, Any]:
    text, event, part = found.text, found.event, found.snippet
    body: dict[str, Any] = {
        "kind": text.kind,
        "runId": found.run_id,
        "sequence": event.sequence,
        "eventId": event.event_id,
        "at": event.timestamp,
        "title": title[:LONGEST_TITLE],
        "snippet": {"text": part.text, "start": part.start, "matches": part.matches},
    }
    more = {
        "threadId": found.thread_id,
        "from": text.by or None,
        "to": text.to,
        "turnIndex": text.turn,
    }
    return body | {name: value for name, value in more.items() if value is not None}


TEXT = {"type": "string", "maxLength": LONGEST_QUERY}
ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/search", call=search, scope="runs:read",
        summary="Find threads, turns, decisions and runs by their words",
        query={
            "q": (TEXT, 'words, "phrases", beginnings*, from:ada, kind:decision, thread:ID'),
            "kind": (TEXT, f"any of {', '.join(KINDS)}; several with commas"),
            "from": (TEXT, "who said it; several with commas"),
            "thread": (TEXT, "only in this thread or run; several with commas"),
            "order": ({"type": "string", "enum": list(ORDERS)},
                      f"newest unless told otherwise; best looks at the newest {WINDOW}"),
            "limit": ({"type": "integer", "minimum": 1, "maximum": 100}, "results per page"),
            "cursor": (TEXT, "the nextCursor of the page before"),
        },
    ),
)  # fmt: skip
