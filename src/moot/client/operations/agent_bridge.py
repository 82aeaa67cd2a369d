"""The Agent Bridge thread API: its operations, and its resource of the client."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from moot.client.http.methods import Resource, S, client_method
from moot.client.http.operation import RequestParts, Retry, operation
from moot.client.operations.runs import SSE
from moot.core.threads.presence import PresenceState
from moot.wire import agent_bridge


@operation("GET /threads", agent_bridge.BridgeThreadList)
def list_bridge_threads() -> RequestParts:
    """List all threads, newest first."""
    return RequestParts()


@operation("POST /threads", agent_bridge.CreatedBridgeThread)
def create_bridge_thread(name: str, *, sender: str | None = None) -> RequestParts:
    """Begin a thread."""
    founder = UNSET if sender is None else sender
    return RequestParts(body=agent_bridge.CreateBridgeThread(name=name, sender=founder))


@operation("GET /threads/{thread_id}/events", agent_bridge.BridgeEventList)
def list_bridge_events(
    thread_id: str, *, after: int | None = None, since: str | None = None, limit: int | None = None
) -> RequestParts:
    """List the events after a sequence or a time, oldest first."""
    return RequestParts(thread_id, query={"after": after, "since": since, "limit": limit})


@operation("POST /threads/{thread_id}/events", agent_bridge.BridgePostResult)
def post_bridge_event(
    thread_id: str,
    content: Any,
    *,
    kind: agent_bridge.PostedType = "message",
    sender: str | None = None,
    to: str | None = None,
    meta: Mapping[str, Any] | None = None,
    own_id: str | None = None,
) -> RequestParts:
    """Post a message, a control, a task or the result of a task.

    With ``own_id`` an event may be sent again after a lost answer: the host records it once.
    """
    body = agent_bridge.PostBridgeEvent(
        type=kind,
        content=content,
        sender=UNSET if sender is None else sender,
        to=to,
        meta=None if meta is None else dict(meta),
        id=UNSET if own_id is None else own_id,
    )
    return RequestParts(thread_id, body=body)


@operation("GET /threads/{thread_id}/events/stream", bytes)
def stream_bridge_events(
    thread_id: str, *, after: int | None = None, since: str | None = None
) -> RequestParts:
    """Stream the events of a thread; without a cursor only new ones."""
    return RequestParts(thread_id, query={"after": after, "since": since}, accept=SSE)


@operation("GET /threads/{thread_id}/state", agent_bridge.BridgeThreadState)
def get_bridge_state(thread_id: str) -> RequestParts:
    """Get the controls of a thread and its invited participants."""
    return RequestParts(thread_id)


@operation("GET /threads/{thread_id}/presence", agent_bridge.BridgePresenceList)
def get_bridge_presence(thread_id: str) -> RequestParts:
    """Get the presence of the participants."""
    return RequestParts(thread_id)


@operation("POST /threads/{thread_id}/presence", agent_bridge.BridgePresenceResult, Retry.ONCE)
def send_bridge_presence(
    thread_id: str, state: PresenceState, *, sender: str | None = None, details: Any = None
) -> RequestParts:
    """Report presence: listening, thinking, typing, idle, online or offline."""
    speaker = UNSET if sender is None else sender
    body = agent_bridge.ReportPresence(state=state, sender=speaker, details=details)
    return RequestParts(thread_id, body=body)


@operation("GET /ping", agent_bridge.BridgePing)
def ping_bridge() -> RequestParts:
    """Check that the host answers."""
    return RequestParts()


class BridgeResource(Resource[S]):
    """Threads by their Agent Bridge ids."""

    threads = client_method(list_bridge_threads)
    create = client_method(create_bridge_thread)
    events = client_method(list_bridge_events)
    post = client_method(post_bridge_event)
    state = client_method(get_bridge_state)
    presence = client_method(get_bridge_presence)
    sign = client_method(send_bridge_presence)
    ping = client_method(ping_bridge)
