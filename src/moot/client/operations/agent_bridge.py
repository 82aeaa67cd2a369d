"""The thread API as Agent Bridge has it: every call there is."""

from collections.abc import Mapping
from typing import Any

from moot.client.http.operation import Again, Sent, given, operation
from moot.client.operations.runs import SSE
from moot.wire import agent_bridge


@operation("GET /threads", agent_bridge.Index)
def threads() -> Sent:
    """All threads, newest first."""
    return Sent()


@operation("POST /threads", agent_bridge.Named)
def create(name: str, *, sender: str | None = None) -> Sent:
    """Begin a thread."""
    return Sent(body={"name": name, **given(**{"from": sender})})


@operation("GET /threads/{thread_id}/events", agent_bridge.Events)
def events(
    thread_id: str,
    *,
    after: int | None = None,
    since: str | None = None,
    limit: int | None = None,
) -> Sent:
    """What was said and done after a sequence or a time, oldest first."""
    return Sent(thread_id, query={"after": after, "since": since, "limit": limit})


@operation("POST /threads/{thread_id}/events", agent_bridge.Received)
def post(
    thread_id: str,
    content: Any,
    *,
    kind: str = "message",
    sender: str | None = None,
    to: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Sent:
    """A message, a control, a task or its result."""
    return Sent(
        thread_id,
        body={"type": kind, "content": content, **given(**{"from": sender}, to=to, meta=meta)},
    )


@operation("GET /threads/{thread_id}/events/stream", bytes)
def stream(thread_id: str, *, after: int | None = None, since: str | None = None) -> Sent:
    """The events of a thread as they happen; without a cursor from the end on."""
    return Sent(thread_id, query={"after": after, "since": since}, accept=SSE)


@operation("GET /threads/{thread_id}/state", agent_bridge.Steered)
def state(thread_id: str) -> Sent:
    """How a thread is steered, and who is invited."""
    return Sent(thread_id)


@operation("GET /threads/{thread_id}/presence", agent_bridge.Present)
def presence(thread_id: str) -> Sent:
    """Who is here just now."""
    return Sent(thread_id)


@operation("POST /threads/{thread_id}/presence", agent_bridge.Heard, Again.ONCE)
def sign(
    thread_id: str,
    state: str,
    *,
    sender: str | None = None,
    details: Any = None,
) -> Sent:
    """A sign of life: listening, thinking, typing, idle, online or offline."""
    return Sent(thread_id, body={"state": state, **given(**{"from": sender}, details=details)})


@operation("GET /ping", agent_bridge.Pong)
def ping() -> Sent:
    """Whether the host is there."""
    return Sent()
