"""Build turns, check who may speak, and record turns and the close.

The host writes index, time and sender; the text never decides who spoke. A refused turn appends
nothing and the interrupt stays open.
"""

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from moot.core.conversations import joining, turn_schema
from moot.core.errors import (
    BadRequest,
    InterruptAlreadyResolved,
    InterruptNotFound,
    NotYourName,
    ParticipantMuted,
    SpeakerMissing,
    SpeakerNotParticipant,
    ThreadPaused,
)
from moot.core.events import NewEvent, payload_fields, set_fields
from moot.core.json import schema
from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    Turn,
)
from moot.core.runs.nodes import write_events
from moot.core.speaker import Speaker
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.state.mutes import is_muted
from moot.core.state.run import Run
from moot.core.text.names import full_name, is_person
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ChannelWrite

MESSAGE_ROLES = {"agent": "assistant", "user": "user", "system": "system"}


#: the host's name when it speaks for a member
HOST = "moot"


def conversation_id(run: Run, node_id: str, attempt: int) -> str:
    return f"{run.run_id}:{node_id}:{attempt}"


def new_turn(
    name: str, index: int, role: str, speaker: str, content: Any, at: int, group: str | None = None
) -> Turn:
    return Turn(
        message_id=f"{name}:{index}:{role}",
        from_=speaker,
        content=content,
        ts=at,
        role=role,
        turn_index=index,
        speaker_id=speaker if role == "agent" else None,
        group_id=group,
    )


def build_turn(
    conversation: Conversation, body: dict[str, Any], key_holder: Speaker, at: int
) -> Turn:
    """Return the turn to record, or raise when it is refused.

    The order of checks is: schema, right to the name, speaker, roster, name, mute, pause, content.
    """
    turn_schema.check_turn_schema(conversation, body, own=key_holder.principal == HOST)
    role, speaker = check_speaker(conversation, body, key_holder, at)
    if conversation.schema is not None and (
        problems := schema.schema_problems(conversation.schema, body["content"])
    ):
        raise BadRequest(f"The turn does not fit the conversation: {problems[0]}", fields=problems)
    talk, group, index = conversation.conversation_id, conversation.group_id, conversation.turns + 1
    turn = new_turn(talk, index, role, speaker, body["content"], at, group)
    is_spoken_for = (
        key_holder.principal != HOST
        and speaker not in key_holder.names
        and _host_speaks_for(conversation, speaker)
    )
    return replace(
        turn,
        message_id=body.get("messageId", turn.message_id),
        ts=body.get("ts", turn.ts),
        group_id=body.get("groupId", turn.group_id),
        agent=body.get("agent", UNSET),
        meta=body.get("meta", UNSET),
        to=full_name(body["to"]) if body.get("to", "all") != "all" else None,
        via=key_holder.principal,
        spoken_by=key_holder.person if is_spoken_for else None,
    )


def _host_speaks_for(conversation: Conversation, speaker: str) -> bool:
    """Return whether the host invites this member, so that its name means a model spoke."""
    member = conversation.floor.members.get(speaker) if conversation.floor is not None else None
    return member is not None and not member.outside


def check_speaker(
    conversation: Conversation, body: dict[str, Any], key_holder: Speaker, at: int
) -> tuple[str, str]:
    """Return the role and name of the speaker. Raise when it may not speak now."""
    role = body.get("role", "user")
    speaker = _speaker_name(body, role, key_holder)
    if role == "agent" and not joining.can_join_by_speaking(
        conversation, full_name(speaker), key_holder.joins
    ):
        _check_roster(conversation, speaker)
    joining.check_participant_name(speaker, "turn.speakerId" if role == "agent" else "turn.from")
    check_may_speak(conversation, speaker, role, at)
    return role, speaker


def _speaker_name(body: dict[str, Any], role: str, key_holder: Speaker) -> str:
    """Return the speaker's name. The key decides it; the body may only repeat it."""
    if role == "agent":
        speaker = body.get("speakerId")
        if speaker is None:
            raise SpeakerMissing("An agent's turn names its speaker: speakerId.")
        if body.get("from", speaker) != speaker:
            raise BadRequest("from and speakerId differ.", field="turn.from")
        if is_person(speaker):
            raise BadRequest("A person's turn has role 'user'.", field="turn.role")
    else:
        speaker = body.get("from", key_holder.person)
        if "from" not in body and not is_person(speaker):
            raise NotYourName("user", list(key_holder.names))
        if not is_person(speaker):
            raise BadRequest("A user's turn comes from 'user' or 'user:<name>'.", field="turn.from")
        if speaker == key_holder.person:
            return str(speaker)
    if not key_holder.admin and speaker not in key_holder.names:
        raise NotYourName(str(speaker), list(key_holder.names))
    return str(speaker)


def _check_roster(conversation: Conversation, speaker: str) -> None:
    if conversation.roster is not None:
        if speaker not in conversation.roster:
            raise SpeakerNotParticipant(
                "Speaker is not on this conversation's roster.",
                speakerId=speaker,
                conversationId=conversation.conversation_id,
                roster=conversation.roster,
            )
    elif conversation.state.by_invitation and full_name(speaker) not in conversation.state.members:
        raise joining.not_invited_error(conversation, speaker)


def check_may_speak(conversation: Conversation, speaker: str, role: str, at: int) -> None:
    """Raise ParticipantMuted or ThreadPaused while the speaker may not speak."""
    if is_muted(conversation.state, speaker, at):
        raise ParticipantMuted(
            f"{speaker} is muted here.", thread=conversation.conversation_id, participant=speaker
        )
    if conversation.state.paused and role != "user":
        raise ThreadPaused(
            "The conversation is paused; only people speak now.",
            thread=conversation.conversation_id,
            participant=speaker,
        )


def order_turn(event: NewEvent, last: tuple[str, ...]) -> None:
    """Write these fields of the event's turn last, in this order."""
    fields = payload_fields(event)
    key = "turn" if "turn" in fields else "finalTurn"
    turn = fields[key]
    turn |= {name: turn.pop(name) for name in last if name in turn}
    set_fields(event, fields)


#: types of the events with a turn
TURN_TYPES = frozenset({
    ConversationOpened.event_type, ConversationExchanged.event_type, ConversationEnded.event_type,
})  # fmt: skip


def recorded_turn(payload: Payload | OpaquePayload) -> Turn | None:
    """Return the turn of an event that opens, continues or closes a conversation."""
    match payload:
        case ConversationOpened(initial_turn=turn):
            return turn
        case ConversationExchanged(turn=turn) | ConversationEnded(final_turn=turn):
            return turn
        case _:
            return None


def turn_events(
    run: Run, flow: Flow, node: FlowNode, conversation: Conversation, turn: Turn, at: int
) -> list[NewEvent]:
    event = exchanged_event(conversation, node.id, turn)
    return [event, *echo_turn(run, flow, node, turn, at)]


def exchanged_event(conversation: Conversation, node_id: str, turn: Turn) -> NewEvent:
    payload = ConversationExchanged(
        conversation_id=conversation.conversation_id, turn_index=turn.turn_index or 0, turn=turn
    )
    return NewEvent(payload, node_id, cause=conversation.turn_seq)


def closed_event(
    conversation: Conversation,
    node: FlowNode,
    turn: Turn,
    outcome: Any,
    cause: int | None = None,
) -> NewEvent:
    """Return the closing event. ``cause`` is the last turn when this decision records it."""
    payload = ConversationEnded(
        conversation_id=conversation.conversation_id,
        turn_index=turn.turn_index or 0,
        final_turn=turn,
        outcome=outcome,
    )
    last_turn = conversation.turn_seq if cause is None else cause
    return NewEvent(payload, node.id, cause=last_turn)


def system_turn(conversation: Conversation, content: str, at: int, ahead: int = 1) -> Turn:
    """Return a turn of the host itself. ``ahead`` counts turns of the same decision."""
    return new_turn(
        conversation.conversation_id, conversation.turns + ahead, "system", "system", content, at
    )


def message_channel(flow: Flow, preferred: str | None) -> str | None:
    """Return the channel of messages that repeats the turns, if the workflow has one."""
    for name in (preferred, "conversation", "messages"):
        if name is not None and name in flow.channels and flow.channels[name].reducer == "message":
            return name
    return None


def try_echo_turn(run: Run, flow: Flow, node: FlowNode, turn: Turn, at: int) -> list[NewEvent]:
    """Echo a turn that opens or closes the conversation, unless the channel is full."""
    try:
        return echo_turn(run, flow, node, turn, at)
    except BadRequest:
        return []


def echo_turn(run: Run, flow: Flow, node: FlowNode, turn: Turn, at: int) -> list[NewEvent]:
    """Return the writes of the turn to the channel of messages, if there is one."""
    name = message_channel(flow, node.definition.config.get("channel"))
    if name is None:
        return []
    message = {
        "messageId": f"{node.id}:{turn.turn_index}:{turn.role}",
        "role": MESSAGE_ROLES[str(turn.role)],
        "content": turn.body,
        "timestamp": turn.ts,
    }
    if turn.speaker_id is not None:
        message["agentId"] = turn.speaker_id
    if turn.edited_by is not None:  # an edited turn says so everywhere
        message |= {"editedBy": turn.edited_by, "originalEventId": turn.original_event_id}
    return write_events(
        run, flow, node, (ChannelWrite(channel=name, value=message, turn=True),), at
    )


def agent_profiles(conversation: Conversation) -> dict[str, dict[str, Any]]:
    """Return the agents of the conversation with their profiles."""
    profiles = {name: member.profile for name, member in conversation.state.members.items()}
    profiles |= {name: {} for name in conversation.roster or ()}
    if conversation.floor is not None:
        profiles |= {name: member.profile for name, member in conversation.floor.members.items()}
    return profiles


def participant_profiles(conversation: Conversation) -> dict[str, dict[str, Any]]:
    """Return the agents and the people of the conversation with their profiles."""
    return {
        name: {} for name in thread_controls.people_present(conversation.state)
    } | agent_profiles(conversation)


def require_open(conversation: Conversation | None, run: Run, node_id: str) -> Conversation:
    if conversation is None:
        raise InterruptNotFound(run.run_id, node_id)
    if not conversation.open:
        raise InterruptAlreadyResolved(
            "The conversation is closed.", runId=run.run_id, nodeId=node_id
        )
    return conversation


def conversation_outputs(conversation: Conversation, turns: int, outcome: Any) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "conversationId": conversation.conversation_id,
        "turnCount": turns,
    }
