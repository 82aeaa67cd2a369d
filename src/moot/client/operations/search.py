"""Operations for search, read marks and catch-ups."""

from collections.abc import Sequence
from typing import Literal

from moot.client.http.operation import RequestParts, operation
from moot.wire.search import (
    CatchUpList,
    CatchUpView,
    MarkRead,
    ReadStatus,
    RequestCatchUp,
    SearchResultList,
)

SearchKind = Literal["thread", "turn", "decision", "run"]


@operation("GET /v1/host/moot/search", SearchResultList)
def find_texts(
    text: str = "",
    *,
    kinds: Sequence[SearchKind] = (),
    sender: str | None = None,
    thread_id: str | None = None,
    order: Literal["newest", "best"] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> RequestParts:
    """Find threads, turns, decisions and runs by their words (docs/search.md)."""
    query = {"q": text, "from": sender, "thread": thread_id, "order": order}
    more = {"limit": limit, "cursor": cursor, "kind": ",".join(kinds) or None}
    return RequestParts(query={**query, **more})


@operation("POST /v1/host/moot/threads/{thread_id}/read", ReadStatus)
def mark_thread_read(
    thread_id: str, up_to: int | None = None, *, turn: int | None = None
) -> RequestParts:
    """Mark a thread as read up to an event or a turn, or completely."""
    return RequestParts(thread_id, body=MarkRead(up_to=up_to, turn=turn))


@operation("GET /v1/host/moot/threads/{thread_id}/read", ReadStatus)
def get_read_status(thread_id: str) -> RequestParts:
    """Get your read mark of a thread and the number of unread turns."""
    return RequestParts(thread_id)


@operation("POST /v1/host/moot/threads/{thread_id}:catch-up", CatchUpView)
def create_catch_up(
    thread_id: str,
    first: int | None = None,
    to: int | None = None,
    *,
    author: str | None = None,
    wait: int | None = None,
) -> RequestParts:
    """Request a private summary of turns, by default of all unread ones."""
    body = RequestCatchUp(first=first, to=to, author=author)
    return RequestParts(thread_id, query={"wait": wait}, body=body, seconds=60.0)


@operation("GET /v1/host/moot/threads/{thread_id}/catch-ups", CatchUpList)
def list_catch_ups(
    thread_id: str, *, limit: int | None = None, cursor: str | None = None
) -> RequestParts:
    """List your own catch-ups of a thread, newest first."""
    return RequestParts(thread_id, query={"limit": limit, "cursor": cursor})


@operation("GET /v1/host/moot/threads/{thread_id}/catch-ups/{catch_up_id}", CatchUpView)
def get_catch_up(thread_id: str, catch_up_id: str, *, wait: int | None = None) -> RequestParts:
    """Get one of your own catch-ups; ``wait`` waits until it is written."""
    return RequestParts(thread_id, catch_up_id, query={"wait": wait}, seconds=60.0)
