"""Build turns, check who may speak, and record turns and the close.

The host writes index, time and sender; the text never decides who spoke. A refused turn appends
nothing and the interrupt stays open.
"""

from typing import Any

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
from moot.core.events import NewEvent
from moot.core.json import schema
from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
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
) -> dict[str, Any]:
    turn: dict[str, Any] = {
        "messageId": f"{name}:{index}:{role}",
        "from": speaker,
        "content": content,
        "ts": at,
        "role": role,
        "turnIndex": index,
    }
    if role == "agent":
        turn["speakerId"] = speaker
    if group is not None:
        turn["groupId"] = group
    return turn


def build_turn(
    conversation: Conversation, body: dict[str, Any], key_holder: Speaker, at: int
) -> dict[str, Any]:
    """Return the turn to record, or raise when it is refused.

    The order of checks is: schema, right to the name, speaker, roster, name, mute, pause, content.
    """
    turn_schema.check_turn_schema(conversation, body, own=key_holder.principal == HOST)
    role, speaker = check_speaker(conversation, body, key_holder, at)
    if conversation.schema is not None and (
        problems := schema.schema_problems(conversation.schema, body["content"])
    ):
        raise BadRequest(f"The turn does not fit the conversation: {problems[0]}", fields=problems)
    index = conversation.turns + 1
    turn = new_turn(
        conversation.conversation_id,
        index,
        role,
        speaker,
        body["content"],
        at,
        conversation.group_id,
    )
    for key in ("messageId", "ts", "groupId", "agent", "meta"):
        if key in body:
            turn[key] = body[key]
    if body.get("to", "all") != "all":
        turn["to"] = full_name(body["to"])
    turn["via"] = key_holder.principal
    if (
        key_holder.principal != HOST
        and speaker not in key_holder.names
        and _host_speaks_for(conversation, speaker)
    ):
        turn["spokenBy"] = key_holder.person
    return turn


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


#: types of the events with a turn
TURN_TYPES = frozenset({
    ConversationOpened.event_type, ConversationExchanged.event_type, ConversationEnded.event_type,
})  # fmt: skip


def recorded_turn(payload: Payload | OpaquePayload) -> dict[str, Any] | None:
    """Return the turn of an event that opens, continues or closes a conversation."""
    match payload:
        case ConversationOpened(initial_turn=turn):
            return turn
        case ConversationExchanged(turn=turn) | ConversationEnded(final_turn=turn):
            return turn
        case _:
            return None


def turn_events(
    run: Run, flow: Flow, node: FlowNode, conversation: Conversation, turn: dict[str, Any], at: int
) -> list[NewEvent]:
    payload = ConversationExchanged(
        conversation_id=conversation.conversation_id, turn_index=turn["turnIndex"], turn=turn
    )
    event = NewEvent(payload, node.id, cause=conversation.turn_seq)
    return [event, *echo_turn(run, flow, node, turn, at)]


def closed_event(
    conversation: Conversation,
    node: FlowNode,
    turn: dict[str, Any],
    outcome: Any,
    cause: int | None = None,
) -> NewEvent:
    """Return the closing event. ``cause`` is the last turn when this decision records it."""
    payload = ConversationEnded(
        conversation_id=conversation.conversation_id,
        turn_index=turn["turnIndex"],
        final_turn=turn,
        outcome=outcome,
    )
    last_turn = conversation.turn_seq if cause is None else cause
    return NewEvent(payload, node.id, cause=last_turn)


def system_turn(
    conversation: Conversation, content: str, at: int, ahead: int = 1
) -> dict[str, Any]:
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


def try_echo_turn(
    run: Run, flow: Flow, node: FlowNode, turn: dict[str, Any], at: int
) -> list[NewEvent]:
    """Echo a turn that opens or closes the conversation, unless the channel is full."""
    try:
        return echo_turn(run, flow, node, turn, at)
    except BadRequest:
        return []


def echo_turn(
    run: Run, flow: Flow, node: FlowNode, turn: dict[str, Any], at: int
) -> list[NewEvent]:
    """Return the writes of the turn to the channel of messages, if there is one."""
    name = message_channel(flow, node.definition.config.get("channel"))
    if name is None:
        return []
    message: dict[str, Any] = {
        "messageId": f"{node.id}:{turn['turnIndex']}:{turn['role']}",
        "role": MESSAGE_ROLES[turn["role"]],
        "content": turn["content"],
        "timestamp": turn["ts"],
    }
    if "speakerId" in turn:
        message["agentId"] = turn["speakerId"]
    if "editedBy" in turn:  # an edited turn says so everywhere
        message |= {key: turn[key] for key in ("editedBy", "originalEventId")}
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
