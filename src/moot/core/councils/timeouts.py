"""What time does to members: who has the floor and is not heard is passed over, or has more time;
who was asked for while he was muted is asked when that is over."""

from moot.core.councils.decide import HOST, WakeEnded, answered, called, said_by_host
from moot.core.events import NewEvent
from moot.core.state import put_off_requests
from moot.core.state.conversation import Conversation
from moot.core.state.usage import HEARD
from moot.core.workflows.graph import FlowNode


def silent(node: FlowNode, talk: Conversation, at: int, heard: dict[str, int]) -> list[NewEvent]:
    """Members that have had the floor for too long without a word are passed over. Who was heard
    meanwhile, or has not come to its turn yet, has more time, and that is recorded."""
    floor = talk.floor
    if floor is None or not talk.open:
        return []
    limit = floor.policy.limits.silence * 1000
    late = [name for name, wake in floor.wakes.items() if at >= wake.due]
    alive = [name for name in late if heard.get(name, limit) < limit]
    said = [
        NewEvent(
            HEARD,
            {
                "conversationId": talk.conversation_id,
                "wakeId": name,
                "agentId": floor.wakes[name].agent,
                "silentMs": max(0, heard[name]),
            },
            node.id,
            cause=floor.wakes[name].seq,
        )
        for name in alive
    ]
    return said + passed_over(node, talk, [name for name in late if name not in alive], at)


def passed_over(node: FlowNode, talk: Conversation, late: list[str], at: int) -> list[NewEvent]:
    """The floor is taken from these wakes."""
    events: list[NewEvent] = []
    floor = talk.floor
    for ahead, wake_id in enumerate(late, start=1):
        assert floor is not None
        wake = floor.wakes[wake_id]
        given = WakeEnded(node_id=node.id, wake_id=wake_id, at=at, outcome="silent")
        events.append(answered(node, talk, wake, given, "silent"))
        seconds = floor.policy.limits.silence
        text = f"{called(talk, wake.agent)} was silent for {seconds} s and is passed over."
        events.append(said_by_host(node, talk, text, at, ahead))
    return events


def unmuted(node: FlowNode, talk: Conversation, at: int) -> list[NewEvent]:
    """The host says that a mute is over where somebody's being asked waits for that. Any other one
    is over without a word."""
    names = [name for name, until in put_off_requests.due(talk).items() if until <= at]
    payload = {
        "conversationId": talk.conversation_id,
        "from": "system",
        "content": {"unmute": [name.removeprefix("host:") for name in names]},
        "via": HOST,
    }
    event = NewEvent("moot.thread.control", payload, node.id, cause=talk.last_seq)
    return [event] if names else []
