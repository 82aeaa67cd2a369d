"""Build turns, check who may speak, and record turns and the close.

The host writes index, time and sender; the text never decides who spoke. A refused turn appends
nothing and the interrupt stays open.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.conversations.participants import (
    check_may_speak,
    check_participant_name,
    check_takes_part,
)
from moot.core.errors import (
    BadRequest,
    InterruptAlreadyResolved,
    InterruptNotFound,
    NotYourName,
    SpeakerMissing,
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
from moot.core.state import participants
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.text.names import LONGEST_NAME, full_name, is_person
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ChannelWrite

MESSAGE_ROLES = {"agent": "assistant", "user": "user", "system": "system"}
ROLES = ("user", "agent", "system")
#: the last millisecond of the year 9999
LATEST = 253_402_300_799_999
#: fields of a turn that hold a name
NAME_FIELDS = ("messageId", "from", "to", "speakerId", "groupId")
#: fields of a turn that its sender may set
BODY_FIELDS = (*NAME_FIELDS, "content", "ts", "role", "agent", "meta")
#: metadata that only the host writes: summaries, edits, and the outcome of a close
HOST_META = ("summary", "edited_by", "editedBy", "outcome")
#: the host's name when it speaks for a member
HOST = "moot"


class _TurnModel(Struct, forbid_unknown_fields=True):
    provider: str
    model: str


class TurnAgentRef(Struct, rename="camel"):
    """The agent that produced a turn. Other fields are stored unchanged."""

    agent_id: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    agent_sharing: Literal["isolated", "shared", "shared:%shared%"] | UnsetType = UNSET
    memory_ref: str | UnsetType = UNSET
    model: _TurnModel | UnsetType = UNSET


def conversation_id(run: Run, node_id: str) -> str:
    return f"{run.run_id}:{node_id}:{run.nodes[node_id].attempt}"


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


def build_turn(conversation: Conversation, body: object, key_holder: Speaker, at: int) -> Turn:
    """Return the turn to record, or raise when it is refused.

    The order of checks is: schema, right to the name, speaker, roster, name, mute, pause, content.
    """
    draft = _parse_turn(conversation, body, own=key_holder.principal == HOST)
    role, speaker = check_speaker(conversation, draft, key_holder, at)
    if conversation.schema is not None and (
        problems := schema.schema_problems(conversation.schema, draft.content)
    ):
        raise BadRequest(f"The turn does not fit the conversation: {problems[0]}", fields=problems)
    index, member = conversation.turns + 1, participants.find_participant(conversation, speaker)
    # the name of a member that the host invites would mean that a model spoke
    is_host_voice = member.led and not member.outside
    is_own_voice = key_holder.principal == HOST or speaker in key_holder.names
    return Turn(
        message_id=draft.message_id or f"{conversation.conversation_id}:{index}:{role}",
        from_=speaker,
        content=draft.content,
        ts=at if draft.ts is None else draft.ts,
        role=role,
        turn_index=index,
        speaker_id=speaker if role == "agent" else None,
        group_id=draft.group_id or conversation.group_id,
        agent=draft.agent,
        meta=draft.meta,
        to=None if draft.to in (None, "all") else full_name(str(draft.to)),
        via=key_holder.principal,
        spoken_by=key_holder.person if is_host_voice and not is_own_voice else None,
    )


def _parse_turn(conversation: Conversation, body: object, own: bool) -> Turn:
    """Return the fields that the sender may set. ``own`` means that the host speaks for a member.

    Raise BadRequest for a malformed turn.
    """
    if not isinstance(body, dict) or "content" not in body:
        raise BadRequest("A turn is an object with content.", field="turn.content")
    role = body.get("role", "user")
    if role not in ROLES:
        raise BadRequest(f"role must be one of {', '.join(ROLES)}.", field="turn.role")
    for key in NAME_FIELDS:
        name = body.get(key, "-")
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
            text = f"{key} must have 1 to {LONGEST_NAME} characters."
            raise BadRequest(text, field=f"turn.{key}")
    if "ts" in body and (type(body["ts"]) is not int or not 0 <= body["ts"] <= LATEST):
        raise BadRequest("ts must be milliseconds since the epoch.", field="turn.ts")
    turn = msgspec.convert({key: body[key] for key in BODY_FIELDS if key in body}, Turn)
    _check_message_id(conversation, turn, role)
    if not own:
        _check_meta(turn.meta)
    if turn.agent is not UNSET:
        _check_agent(conversation, turn, role)
    index = body.get("turnIndex", conversation.turns + 1)
    if index != conversation.turns + 1 or isinstance(index, bool):
        raise BadRequest(
            f"The next turn has index {conversation.turns + 1}; leave turnIndex out.",
            field="turn.turnIndex",
            expected=conversation.turns + 1,
        )
    if role == "system":
        raise BadRequest("System turns are written by the host.", field="turn.role")
    return turn


def _check_message_id(conversation: Conversation, turn: Turn, role: str) -> None:
    """Raise when a turn takes a message id of the host."""
    prefix = f"{conversation.conversation_id}:"
    expected = f"{prefix}{conversation.turns + 1}:{role}"
    message_id = turn.message_id or expected
    if message_id.startswith(prefix) and message_id != expected:
        raise BadRequest(f"This turn would be {expected}.", field="turn.messageId")


def _check_meta(meta: object) -> None:
    """Raise for metadata that only the host writes, and for a malformed ``replyTo``."""
    if not isinstance(meta, dict):
        return
    if reserved := [key for key in HOST_META if key in meta]:
        raise BadRequest(f"{reserved[0]} is written by the host: leave it out.", field="turn.meta")
    reply = meta.get("replyTo")
    is_sequence = type(reply) is int and reply >= 0
    is_event_id = isinstance(reply, str) and 1 <= len(reply) <= 256
    if reply is not None and not is_sequence and not is_event_id:
        raise BadRequest("replyTo is the id of an event.", field="turn.meta.replyTo")


def _check_agent(conversation: Conversation, turn: Turn, role: str) -> None:
    """Raise when a turn describes another agent than its speaker."""
    if role != "agent":
        raise BadRequest("A person's turn is no agent's: leave agent out.", field="turn.agent")
    try:
        named = msgspec.convert(turn.agent, TurnAgentRef).agent_id
    except msgspec.ValidationError as error:
        raise BadRequest(f"agent does not fit: {error}", field="turn.agent") from None
    if named is UNSET or named == turn.speaker_id:
        return
    other = participants.find_participant(conversation, named)
    # an id of this host must be the speaker's own, even if that agent is not here
    if other.listed or other.joined or named.startswith("host:"):
        raise BadRequest("agent is somebody else than the speaker.", field="turn.agent")


def check_speaker(
    conversation: Conversation, turn: Turn, key_holder: Speaker, at: int
) -> tuple[str, str]:
    """Return the role and name of the speaker. Raise when it may not speak now."""
    role = turn.role or "user"
    speaker = _agent_name(turn) if role == "agent" else _person_name(turn, key_holder)
    is_own = key_holder.admin or speaker in key_holder.names
    if not is_own and (role == "agent" or speaker != key_holder.person):
        raise NotYourName(speaker, list(key_holder.names))
    if role == "agent" and not participants.can_join_by_speaking(
        conversation, full_name(speaker), key_holder.joins
    ):
        check_takes_part(conversation, speaker)
    check_participant_name(speaker, "turn.speakerId" if role == "agent" else "turn.from")
    check_may_speak(conversation, speaker, role, at)
    return role, speaker


def _agent_name(turn: Turn) -> str:
    if turn.speaker_id is None:
        raise SpeakerMissing("An agent's turn names its speaker: speakerId.")
    if turn.from_ not in ("", turn.speaker_id):
        raise BadRequest("from and speakerId differ.", field="turn.from")
    if is_person(turn.speaker_id):
        raise BadRequest("A person's turn has role 'user'.", field="turn.role")
    return turn.speaker_id


def _person_name(turn: Turn, key_holder: Speaker) -> str:
    """Return the speaker's name. The key decides it; the turn may only repeat it."""
    speaker = turn.from_ or key_holder.person
    if not turn.from_ and not is_person(speaker):
        raise NotYourName("user", list(key_holder.names))
    if not is_person(speaker):
        raise BadRequest("A user's turn comes from 'user' or 'user:<name>'.", field="turn.from")
    return speaker


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


def exchanged_event(conversation: Conversation, turn: Turn) -> NewEvent:
    payload = ConversationExchanged(
        conversation_id=conversation.conversation_id, turn_index=turn.turn_index or 0, turn=turn
    )
    return NewEvent(payload, conversation.node_id, cause=conversation.turn_seq)


def closed_event(
    conversation: Conversation, turn: Turn, outcome: Any, cause: int | None = None
) -> NewEvent:
    """Return the closing event. ``cause`` is the last turn when this decision records it."""
    payload = ConversationEnded(
        conversation_id=conversation.conversation_id,
        turn_index=turn.turn_index or 0,
        final_turn=turn,
        outcome=outcome,
    )
    last_turn = conversation.turn_seq if cause is None else cause
    return NewEvent(payload, conversation.node_id, cause=last_turn)


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


def find_open(run: Run, node_id: str) -> Conversation | None:
    """Return the conversation at this node if it is open and its run is active."""
    conversation = run.conversations.get(node_id)
    return conversation if conversation is not None and conversation.open and run.going else None


def require_open(conversation: Conversation | None, run: Run, node_id: str) -> Conversation:
    if conversation is None:
        raise InterruptNotFound(run.run_id, node_id)
    if not conversation.open:
        raise InterruptAlreadyResolved(
            "The conversation is closed.", runId=run.run_id, nodeId=node_id
        )
    return conversation
