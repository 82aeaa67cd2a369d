"""What the log tells of members at work on their answers: begun, asked for, used up.

That somebody said it is a fact; whose work it may be is not.
"""

from typing import Any

from moot.core.events import Event, NewEvent, event_id
from moot.core.ids import logical_invocation_id
from moot.core.runs import handles
from moot.core.state import agents, usage
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Wake
from moot.core.state.run import HANDLERS
from moot.core.verify.conversations import talk_of
from moot.core.verify.nodes import Impossible, Seen


def report(seen: Seen) -> list[NewEvent]:
    """What is recorded while a member works on its answer."""
    event, said = seen.event, seen.event.payload
    talk = talk_of(seen)
    if event.type in HANDLERS and event.type not in _REPORTS and event.type not in agents.HANDLERS:
        raise Impossible("impossible", "what a member at work tells", event.type)
    wakes: dict[str, Any] = {}
    if talk.floor is not None:
        gone = event.type == usage.ABANDONED
        wakes = dict(talk.floor.unpaid if gone else talk.floor.wakes)
    found = [
        (name, wake)
        for name, wake in wakes.items()
        if event.causation_id == event_id(seen.run.run_id, _cause(event, wake))
        and said.get("agentId", wake.agent) == wake.agent
        and said.get(usage.CHARGED) in (None, *handles.payers(seen.run, wake.agent))
    ]
    check = _REPORTS.get(event.type, _tells if event.type in agents.HANDLERS else None)
    for name, wake in found:
        if check is None or check(seen, talk, name, wake):
            cause = _cause(event, wake)
            return [NewEvent(event.type, said, seen.its.id, cause=cause, hints=seen.hints)]
    raise Impossible("impossible", "a member that has the floor", said)


def _cause(event: Event, wake: Wake) -> int:
    """What a tool gives is caused by its call."""
    if event.type == agents.RETURNED:
        return wake.calls.get(str(event.payload.get("callId")), -1)
    return wake.seq


def _tells(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    return seen.hints == {"wake": name}


def _begins(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    """Once, for the wake it names."""
    place = f":{seen.its.id}:{name}"
    named = str(seen.event.payload.get("invocationId")).endswith(place)
    begun = agents.INVOKED in wake.said
    return not begun and _tells(seen, talk, name, wake) and named


def _asks(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    said, floor = seen.event.payload, talk.floor
    fresh = floor is not None and said.get("askId") not in floor.asks
    return fresh and said.get("wakeId") == name and str(said["askId"]).startswith(f"{name}.")


def _calls(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    """Its name follows from the wake; its end follows its beginning."""
    said, run, event = seen.event.payload, seen.run, seen.event
    if usage.wake_of(said) != name or said.get("attempt") != 1:
        return False
    if event.type != usage.STARTED and (
        seen.its.id, said["ordinal"]
    ) not in seen.kept.begun:  # fmt: skip
        return False
    if event.sequence < run.inherited:
        return True
    key = (run.tenant, run.run_id, seen.its.id, said["ordinal"], said["providerKey"])
    return bool(said["invocationId"] == logical_invocation_id(*key))


def _named(seen: Seen, talk: Conversation, name: str, wake: Wake) -> bool:
    """It says which wake it is of."""
    said = seen.event.payload
    given = said.get("wakeId", str(said.get("invocationId", "")).rpartition(":")[2])
    return bool(given == name and type(said.get("silentMs", 0)) is int)


_REPORTS = {
    "agent.invocation.started": _begins,
    "moot.tool.asked": _asks,
    usage.STARTED: _calls,
    usage.FINISHED: _calls,
    usage.ABANDONED: _calls,
    usage.HEARD: _named,
    agents.RETRIED: _named,
}
