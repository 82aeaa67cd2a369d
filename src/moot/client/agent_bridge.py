"""The thread API as a part of the client: what programs for Agent Bridge do, with a key."""

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.operations import agent_bridge as calls


class Bridge(Of):
    """Threads by their short handles."""

    threads = waits(calls.threads)
    create = waits(calls.create)
    events = waits(calls.events)
    post = waits(calls.post)
    state = waits(calls.state)
    presence = waits(calls.presence)
    sign = waits(calls.sign)
    ping = waits(calls.ping)


class AsyncBridge(AsyncOf):
    """Threads by their short handles, for asyncio."""

    threads = awaits(calls.threads)
    create = awaits(calls.create)
    events = awaits(calls.events)
    post = awaits(calls.post)
    state = awaits(calls.state)
    presence = awaits(calls.presence)
    sign = awaits(calls.sign)
    ping = awaits(calls.ping)
