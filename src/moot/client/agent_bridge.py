"""The thread API as a part of the client: what programs for Agent Bridge do, with a key."""

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.operations import agent_bridge


class Bridge(Of):
    """Threads by their short handles."""

    threads = waits(agent_bridge.threads)
    create = waits(agent_bridge.create)
    events = waits(agent_bridge.events)
    post = waits(agent_bridge.post)
    state = waits(agent_bridge.state)
    presence = waits(agent_bridge.presence)
    sign = waits(agent_bridge.sign)
    ping = waits(agent_bridge.ping)


class AsyncBridge(AsyncOf):
    """Threads by their short handles, for asyncio."""

    threads = awaits(agent_bridge.threads)
    create = awaits(agent_bridge.create)
    events = awaits(agent_bridge.events)
    post = awaits(agent_bridge.post)
    state = awaits(agent_bridge.state)
    presence = awaits(agent_bridge.presence)
    sign = awaits(agent_bridge.sign)
    ping = awaits(agent_bridge.ping)
