"""Steps of led conversations, for whoever works a record out anew.

The times of a record that is said again are not those it was lived in, so what time has done is
read from what came of it. Names that were given stay as they were given.
"""

from typing import Any

from msgspec.structs import replace

from moot.core.councils.decide import HOST, participate
from moot.core.councils.next_step import step
from moot.core.events import Event, NewEvent, millis
from moot.core.state.conversation import Conversation
from moot.core.state.floor import RUNWAY, Floor
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.graph import Flow

DECIDED, STOPPED = "moot.participation.decided", "moot.participation.stopped"

#: what only the host says, by itself
STEPS = frozenset({DECIDED, STOPPED})

MINUTES = "minutes"


def owed(run: Run) -> list[str]:
    """Gates whose conversation goes on by itself, whoever may be woken by that."""
    return [
        node_id
        for node_id in run.active
        if run.going
        and run.nodes[node_id].status is NodeStatus.SUSPENDED
        and (talk := run.conversations.get(node_id)) is not None
        and step(talk, run.updated_at) is not None
    ]


def is_step(event: Event) -> bool:
    """Whether the host has said this by itself: the floor given, a stop, the moderator's close."""
    final = event.payload.get("finalTurn")
    closes = event.type == "conversation.closed" and isinstance(final, dict)
    return event.type in STEPS or (closes and final is not None and final.get("via") == HOST)


def worked_out(run: Run, flow: Flow, node_id: str, was: Event | None) -> list[NewEvent]:
    """The next step, at the time at which the record has it."""
    talk = run.conversations[node_id]
    if was is None:
        return participate(run, flow, node_id, run.updated_at)
    if talk.floor is None:
        return _at_its_time(participate(run, flow, node_id, run.updated_at), was)
    said = was.payload
    late = was.type == STOPPED and said.get("reason") == MINUTES
    at = talk.floor.since + (talk.floor.policy.limits.minutes * 60_000 if late else 0)
    skipped = said.get("skipped", []) if was.type == DECIDED else []
    muted = {str(each.get("agentId")) for each in skipped if each.get("reason") == "muted"}
    muted |= _passed_by(talk.floor, said) if was.type == DECIDED else set()
    ran_out = any(each.get("reason") == RUNWAY for each in [*skipped, said])
    then = with_runway(without_mutes(run, talk, muted), node_id, not ran_out)
    events = participate(then, flow, node_id, at)
    if events:
        _keep(events[0], was)
    return _at_its_time(events, was)


def _at_its_time(events: list[NewEvent], was: Event) -> list[NewEvent]:
    """What the host said has the time at which it said it."""
    for event in events:
        if "turn" in event.payload:
            event.payload["turn"]["ts"] = millis(was.timestamp)
    return events


def _passed_by(floor: Floor, said: dict[str, Any]) -> set[str]:
    """Who sums up, where it was not asked to: the record does not say whether it was muted."""
    woken = {str(each.get("agentId")) for each in said.get("wakes", [])}
    return {floor.policy.summarise or ""} - woken


def without_mutes(run: Run, talk: Conversation, but: set[str]) -> Run:
    """The run where mutes that end by themselves have ended, except for these members."""
    muted = {
        name: 0 if until and name in but else until
        for name, until in talk.state.muted.items()
        if not until or name in but
    }
    if muted == talk.state.muted:
        return run
    talk = replace(talk, state=replace(talk.state, muted=muted))
    return replace(run, conversations={**run.conversations, talk.node_id: talk})


def with_runway(run: Run, node_id: str, left: bool) -> Run:
    """The run where agents have time left to go on by themselves, or have none."""
    talk = run.conversations[node_id]
    if talk.state.ttl_until is None:
        return run
    state = replace(talk.state, ttl_until=None if left else 0)
    return replace(run, conversations={**run.conversations, node_id: replace(talk, state=state)})


def _keep(new: NewEvent, was: Event) -> None:
    """Wakes go by the names they were given; how late it was is not known again."""
    if new.type != was.type:
        return
    if new.type == STOPPED and new.payload["reason"] == MINUTES == was.payload.get("reason"):
        new.payload = {**new.payload, "observed": was.payload.get("observed")}
    given: list[Any] = was.payload.get("wakes", [])
    if new.type == DECIDED and len(given) == len(new.payload["wakes"]):
        wakes = [
            {**wake, "wakeId": str(then.get("wakeId"))}
            for wake, then in zip(new.payload["wakes"], given, strict=True)
        ]
        new.payload = {**new.payload, "wakes": wakes}
