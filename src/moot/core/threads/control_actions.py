"""Decide the controls that do more than change the state of a thread.

People continue a council, set its policy, call votes and admit held turns. Participants rename and
link threads.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from moot.core.conversations import closing_decision, turns
from moot.core.councils.answer_loops import chain_limit
from moot.core.councils.invitations import withdraw_other_tasks
from moot.core.errors import BadRequest, NotFound, ThreadPaused
from moot.core.events import NewEvent
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import PresenceChanged, ThreadRenamed
from moot.core.payloads.councils import (
    CouncilContinued,
    CouncilMember,
    PolicySet,
    ToolAnswered,
    TurnAdmitted,
    TurnDropped,
    VoteCalled,
)
from moot.core.speaker import Speaker
from moot.core.state.conversation import Conversation
from moot.core.state.council_policy import Policy, describe_unused_settings
from moot.core.state.run import Run
from moot.core.state.titles import current_title
from moot.core.text.names import full_name, is_person
from moot.core.text.titles import TITLE_RULE, parse_title
from moot.core.threads import side_threads
from moot.core.threads.presence import STATES
from moot.core.workflows.flow import Flow

if TYPE_CHECKING:
    from moot.core.threads.decide import Control

MOST_ROUNDS = 100


def _event(payload: Payload, control: "Control", conversation: Conversation) -> NewEvent:
    return NewEvent(payload, control.node_id, cause=conversation.last_seq)


def continue_council(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Continue a stopped council. The value is ``true`` or ``{"rounds": n}``."""
    if conversation.floor is None and chain_limit(conversation.chain) is None:
        raise BadRequest("Nobody leads this conversation; set participation first.")
    value = control.content["continue"]
    if value is not True and not isinstance(value, dict):
        raise BadRequest('To go on, say true or {"rounds": n}.', field="continue")
    rounds = value.get("rounds") if isinstance(value, dict) else None
    if rounds is not None and (type(rounds) is not int or not 1 <= rounds <= MOST_ROUNDS):
        raise BadRequest(f"rounds is 1 to {MOST_ROUNDS}.", field="continue.rounds")
    payload = CouncilContinued(
        conversation_id=conversation.conversation_id,
        by=sender,
        via=control.who.principal,
        rounds=rounds,
    )
    return [_event(payload, control, conversation)]


def set_policy(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Set the policy of the council. Its members are the agents that may speak now."""
    try:
        msgspec.convert(control.content["participation"], Policy)
    except msgspec.ValidationError as error:
        raise BadRequest(f"participation does not fit: {error}", field="participation") from None
    if problem := describe_unused_settings(control.content["participation"]):
        raise BadRequest(problem, field="participation")
    moderator = control.content["participation"].get("moderator")
    floor_members = conversation.floor.members if conversation.floor is not None else {}
    names = list(
        conversation.roster if conversation.roster is not None else conversation.state.members
    )
    names = [name for name in names if not is_person(name)]
    if moderator is not None and moderator not in names:
        raise BadRequest(
            "The moderator must be among the participants.", field="participation.moderator",
            roster=names,
        )  # fmt: skip
    members = []
    for name in names:
        participant = conversation.state.members.get(name)
        if name in floor_members:
            profile, driven = floor_members[name].profile, floor_members[name].driven
        else:
            profile, driven = (participant.profile if participant else {}), True
        outside = participant is not None and participant.outside
        members.append(
            CouncilMember(agent_id=name, profile=profile, driven=driven, outside=outside)
        )
    payload = PolicySet(
        conversation_id=conversation.conversation_id,
        policy=control.content["participation"],
        members=members,
        by=sender,
        via=control.who.principal,
    )
    return [_event(payload, control, conversation)]


def call_vote(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Put ``{"decision": TEXT, "close": true}`` to the vote.

    Without a text, the members vote on the moderator's proposal.
    """
    if conversation.floor is None:
        raise BadRequest("Nobody leads this conversation; set participation first.")
    if conversation.state.paused:
        raise ThreadPaused(
            "The conversation is paused; nobody votes before it goes on.",
            thread=conversation.conversation_id,
            participant=sender,
        )
    value = control.content["vote"]
    value = value if isinstance(value, dict) else {}
    text = value.get("decision", conversation.floor.proposal)
    if not isinstance(text, str) or not 1 <= len(text.strip()) <= closing_decision.LONGEST_TEXT:
        raise BadRequest(
            f"Say what is put to the vote, in 1 to {closing_decision.LONGEST_TEXT} characters.",
            field="vote.decision",
        )
    payload = VoteCalled(
        conversation_id=conversation.conversation_id,
        decision=text,
        close=value.get("close") is True,
        by=sender,
        via=control.who.principal,
    )
    return [
        *withdraw_other_tasks(flow.nodes[control.node_id], conversation, control.at),
        _event(payload, control, conversation),
    ]


def _find_held_turn(
    conversation: Conversation, control: "Control", word: str
) -> tuple[str, dict[str, Any]]:
    name = str(control.content[word])
    turn = conversation.floor.held.get(name) if conversation.floor is not None else None
    if turn is None:
        raise NotFound("No such turn is held back here.", held=name[:64])
    return name, turn


def admit_turn(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Record a held turn under its speaker's name, because a person admits it."""
    held_id, held_turn = _find_held_turn(conversation, control, "admit")
    speaker = Speaker("moot", (str(held_turn.get("speakerId", "")),), admin=True)
    node = flow.nodes[control.node_id]
    index = conversation.turns + 1
    turn = turns.new_turn(
        conversation.conversation_id,
        index,
        "agent",
        str(held_turn["speakerId"]),
        held_turn["content"],
        control.at,
        conversation.group_id,
    )
    held = {key: held_turn[key] for key in ("to", "meta", "agent") if key in held_turn}
    turn = replace(turn, via=speaker.principal, **held)
    admitted = TurnAdmitted(
        conversation_id=conversation.conversation_id,
        held=held_id,
        by=sender,
        via=control.who.principal,
    )
    events = turns.turn_events(run, flow, node, conversation, turn, control.at)
    turns.order_turn(events[0], ("to", "meta", "agent", "via"))
    return [_event(admitted, control, conversation), *events]


def drop_turn(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    held_id, _ = _find_held_turn(conversation, control, "drop")
    dropped = TurnDropped(
        conversation_id=conversation.conversation_id,
        held=held_id,
        by=sender,
        via=control.who.principal,
    )
    return [_event(dropped, control, conversation)]


def answer_tool_request(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Record a person's ``allow`` and ``deny`` of tool requests."""
    events = []
    for word in ("allow", "deny"):
        if word not in control.content:
            continue
        ask_id = str(control.content[word])
        request = conversation.floor.asks.get(ask_id) if conversation.floor is not None else None
        if request is None or request.allowed is not None:
            raise NotFound("Nobody asks that here any more.", askId=ask_id[:64])
        answered = ToolAnswered(
            conversation_id=conversation.conversation_id,
            ask_id=ask_id,
            allowed=word == "allow",
            by=sender,
            via=control.who.principal,
        )
        events.append(NewEvent(answered, control.node_id, cause=request.seq))
    return events


def rename_thread(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Rename the thread to ``TITLE``, one readable line."""
    title = parse_title(control.content["rename"])
    if title is None:
        raise BadRequest(TITLE_RULE, field="rename")
    if title == current_title(run, conversation):
        return []
    payload = ThreadRenamed(
        conversation_id=conversation.conversation_id,
        title=title,
        by=sender,
        via=control.who.principal,
    )
    return [_event(payload, control, conversation)]


def set_presence(
    run: Run, flow: Flow, conversation: Conversation, control: "Control", sender: str
) -> list[NewEvent]:
    """Record the sender's presence if it has changed."""
    state = control.content["presence"]
    if state not in STATES:
        raise BadRequest(f"presence is one of {', '.join(STATES)}.", field="presence")
    if conversation.state.presence.get(full_name(sender)) == state:
        return []
    payload = PresenceChanged(
        conversation_id=conversation.conversation_id,
        from_=sender,
        state=state,
        via=control.who.principal,
    )
    return [_event(payload, control, conversation)]


CONTROL_ACTIONS: dict[str, Callable[..., list[NewEvent]]] = {
    "presence": set_presence,
    "link": side_threads.link_thread,
    "rename": rename_thread,
    "continue": continue_council,
    "participation": set_policy,
    "vote": call_vote,
    "admit": admit_turn,
    "drop": drop_turn,
    "allow": answer_tool_request,
    "deny": answer_tool_request,
}
