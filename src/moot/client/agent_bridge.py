"""The Agent Bridge thread API as a resource of the client."""

from moot.client.http.methods import Resource, S, client_method
from moot.client.operations import agent_bridge


class BridgeResource(Resource[S]):
    """Threads by their Agent Bridge ids."""

    threads = client_method(agent_bridge.list_bridge_threads)
    create = client_method(agent_bridge.create_bridge_thread)
    events = client_method(agent_bridge.list_bridge_events)
    post = client_method(agent_bridge.post_bridge_event)
    state = client_method(agent_bridge.get_bridge_state)
    presence = client_method(agent_bridge.get_bridge_presence)
    sign = client_method(agent_bridge.send_bridge_presence)
    ping = client_method(agent_bridge.ping_bridge)
