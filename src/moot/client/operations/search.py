"""Finding things and keeping up with them: every call there is."""

from collections.abc import Sequence
from typing import Literal

from moot.client.http.operation import Sent, given, operation
from moot.wire.search import CatchUp, CatchUps, Hits, Reading

Kind = Literal["thread", "turn", "decision", "run"]


@operation("GET /v1/host/moot/search", Hits)
def search(
    text: str = "",
    *,
    kinds: Sequence[Kind] = (),
    sender: str | None = None,
    thread_id: str | None = None,
    order: Literal["newest", "best"] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Sent:
    """Find threads, turns, decisions and runs by their words, as docs/search.md has it."""
    query = given(**{"from": sender}, thread=thread_id, order=order, limit=limit, cursor=cursor)
    return Sent(query={"q": text, **query, **given(kind=",".join(kinds) or None)})


@operation("POST /v1/host/moot/threads/{thread_id}/read", Reading)
def mark_read(thread_id: str, up_to: int | None = None, *, turn: int | None = None) -> Sent:
    """Say how far you have read a thread: to an event, to a turn, or all of it."""
    return Sent(thread_id, body=given(upTo=up_to, turn=turn))


@operation("GET /v1/host/moot/threads/{thread_id}/read", Reading)
def reading(thread_id: str) -> Sent:
    """How far you have read a thread, and how much is unread."""
    return Sent(thread_id)


@operation("POST /v1/host/moot/threads/{thread_id}:catch-up", CatchUp)
def catch_up(
    thread_id: str,
    first: int | None = None,
    to: int | None = None,
    *,
    author: str | None = None,
    wait: int | None = None,
) -> Sent:
    """Have turns summed up, for yourself alone: from the first one that is unread to the newest,
    unless told otherwise."""
    body = given(**{"from": first}, to=to, author=author)
    return Sent(thread_id, query=given(wait=wait), body=body, seconds=60.0)


@operation("GET /v1/host/moot/threads/{thread_id}/catch-ups", CatchUps)
def catch_ups(thread_id: str, *, limit: int | None = None, cursor: str | None = None) -> Sent:
    """Your own catch-ups of a thread, newest first."""
    return Sent(thread_id, query={"limit": limit, "cursor": cursor})


@operation("GET /v1/host/moot/threads/{thread_id}/catch-ups/{catch_up_id}", CatchUp)
def get_catch_up(thread_id: str, catch_up_id: str, *, wait: int | None = None) -> Sent:
    """One of your own catch-ups, perhaps once it is written."""
    return Sent(thread_id, catch_up_id, query=given(wait=wait), seconds=60.0)
