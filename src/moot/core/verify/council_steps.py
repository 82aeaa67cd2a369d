"""Decide the steps of a council again, from a record.

Times of copied events do not count, so the effect of time is read from the recorded step. Ids in
the record stay.
"""

from typing import Any

from msgspec.structs import replace

from moot.core.conversations.turns import HOST
from moot.core.councils.decide import advance_council
from moot.core.councils.next_speaker import next_step
from moot.core.events import Event, NewEvent, millis, payload_fields, set_fields
from moot.core.payloads.conversations import ConversationEnded
from moot.core.payloads.councils import CouncilStopped, MembersInvited
from moot.core.state.conversation import Conversation
from moot.core.state.floor import RUNWAY, Floor
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.flow import Flow

PARTICIPATION_DECIDED, PARTICIPATION_STOPPED = (
    MembersInvited.event_type,
    CouncilStopped.event_type,
)

#: events that only the host causes
STEPS = frozenset({PARTICIPATION_DECIDED, PARTICIPATION_STOPPED})

MINUTES_LIMIT = "minutes"


def due_conversations(run: Run) -> list[str]:
    """Return the gates whose conversation has a next step."""
    return [
        node_id
        for node_id in run.active
        if run.going
        and run.nodes[node_id].status is NodeStatus.SUSPENDED
        and (conversation := run.conversations.get(node_id)) is not None
        and next_step(conversation, run.updated_at) is not None
    ]


def is_step(event: Event) -> bool:
    """Return whether the event is a step of the host: invitations, a stop, or a close."""
    final = payload_fields(event).get("finalTurn")
    closes = event.type == ConversationEnded.event_type and isinstance(final, dict)
    return event.type in STEPS or (closes and final is not None and final.get("via") == HOST)


def decide_step(run: Run, flow: Flow, node_id: str, recorded: Event | None) -> list[NewEvent]:
    """Return the next step, at the time of the recorded step."""
    conversation = run.conversations[node_id]
    if recorded is None:
        return advance_council(run, flow, node_id, run.updated_at)
    if conversation.floor is None:
        return _stamp_turns(advance_council(run, flow, node_id, run.updated_at), recorded)
    payload = payload_fields(recorded)
    is_timeout = recorded.type == PARTICIPATION_STOPPED and payload.get("reason") == MINUTES_LIMIT
    at = conversation.floor.since + (
        conversation.floor.policy.limits.minutes * 60_000 if is_timeout else 0
    )
    skipped = payload.get("skipped", []) if recorded.type == PARTICIPATION_DECIDED else []
    muted = {str(each.get("agentId")) for each in skipped if each.get("reason") == "muted"}
    muted |= (
        _unasked_summariser(conversation.floor, payload)
        if recorded.type == PARTICIPATION_DECIDED
        else set()
    )
    ran_out = any(each.get("reason") == RUNWAY for each in [*skipped, payload])
    then = with_runway(without_mutes(run, conversation, muted), node_id, not ran_out)
    events = advance_council(then, flow, node_id, at)
    if events:
        _keep_recorded_names(events[0], recorded)
    return _stamp_turns(events, recorded)


def _stamp_turns(events: list[NewEvent], recorded: Event) -> list[NewEvent]:
    """Set the recorded time on the host's own turns."""
    for event in events:
        fields = payload_fields(event)
        if "turn" in fields:
            turn = {**fields["turn"], "ts": millis(recorded.timestamp)}
            set_fields(event, {**fields, "turn": turn})
    return events


def _unasked_summariser(floor: Floor, payload: dict[str, Any]) -> set[str]:
    """Return the summariser if it was not invited: the record does not show if it was muted."""
    woken = {str(each.get("agentId")) for each in payload.get("wakes", [])}
    return {floor.policy.summarise or ""} - woken


def without_mutes(run: Run, conversation: Conversation, but: set[str]) -> Run:
    """Return the run without timed mutes, except those of the members in ``but``."""
    muted = {
        name: 0 if until and name in but else until
        for name, until in conversation.state.muted.items()
        if not until or name in but
    }
    if muted == conversation.state.muted:
        return run
    conversation = replace(conversation, state=replace(conversation.state, muted=muted))
    return replace(run, conversations={**run.conversations, conversation.node_id: conversation})


def with_runway(run: Run, node_id: str, left: bool) -> Run:
    """Return the run with time left for agents without a person, or with none."""
    conversation = run.conversations[node_id]
    if conversation.state.ttl_until is None:
        return run
    state = replace(conversation.state, ttl_until=None if left else 0)
    return replace(
        run, conversations={**run.conversations, node_id: replace(conversation, state=state)}
    )


def _keep_recorded_names(new: NewEvent, recorded: Event) -> None:
    """Copy the recorded ids of invitations and the observed minutes to the new step."""
    if new.type != recorded.type:
        return
    if new.type == PARTICIPATION_STOPPED and payload_fields(new)[
        "reason"
    ] == MINUTES_LIMIT == payload_fields(recorded).get("reason"):
        set_fields(
            new, {**payload_fields(new), "observed": payload_fields(recorded).get("observed")}
        )
    recorded_wakes: list[Any] = payload_fields(recorded).get("wakes", [])
    if new.type == PARTICIPATION_DECIDED and len(recorded_wakes) == len(
        payload_fields(new)["wakes"]
    ):
        wakes = [
            {**wake, "wakeId": str(then.get("wakeId"))}
            for wake, then in zip(payload_fields(new)["wakes"], recorded_wakes, strict=True)
        ]
        set_fields(new, {**payload_fields(new), "wakes": wakes})
