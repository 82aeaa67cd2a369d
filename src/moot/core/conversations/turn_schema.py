"""Check the fields of a turn before the host checks its speaker."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.errors import BadRequest
from moot.core.state.conversation import Conversation
from moot.core.text.names import LONGEST_NAME

ROLES = ("user", "agent", "system")
#: the last millisecond of the year 9999
LATEST = 253_402_300_799_999
#: fields of a turn that hold a name
NAME_FIELDS = ("messageId", "from", "to", "speakerId", "groupId")
#: metadata that only the host writes: summaries, edits, and the outcome of a close
HOST_META = ("summary", "edited_by", "editedBy", "outcome")


class _TurnModel(Struct, forbid_unknown_fields=True):
    provider: str
    model: str


class TurnAgentRef(Struct, rename="camel"):
    """The agent that produced a turn. Other fields are stored unchanged."""

    agent_id: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    agent_sharing: Literal["isolated", "shared", "shared:%shared%"] | UnsetType = UNSET
    memory_ref: str | UnsetType = UNSET
    model: _TurnModel | UnsetType = UNSET


def check_turn_schema(conversation: Conversation, turn: Any, own: bool = False) -> None:
    """Raise BadRequest for a malformed turn. ``own`` means that the host speaks for a member."""
    if not isinstance(turn, dict) or "content" not in turn:
        raise BadRequest("A turn is an object with content.", field="turn.content")
    role = turn.get("role", "user")
    if role not in ROLES:
        raise BadRequest(f"role must be one of {', '.join(ROLES)}.", field="turn.role")
    for key in NAME_FIELDS:
        if key in turn:
            _check_name(key, turn[key])
    if "ts" in turn and (type(turn["ts"]) is not int or not 0 <= turn["ts"] <= LATEST):
        raise BadRequest("ts must be milliseconds since the epoch.", field="turn.ts")
    _check_names(conversation, turn, own)
    if "turnIndex" in turn:
        _check_index(conversation, turn["turnIndex"])
    if role == "system":
        raise BadRequest("System turns are written by the host.", field="turn.role")


def _check_name(key: str, value: Any) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_NAME:
        raise BadRequest(f"{key} must have 1 to {LONGEST_NAME} characters.", field=f"turn.{key}")


def _check_index(conversation: Conversation, index: Any) -> None:
    if index != conversation.turns + 1 or isinstance(index, bool):
        raise BadRequest(
            f"The next turn has index {conversation.turns + 1}; leave turnIndex out.",
            field="turn.turnIndex",
            expected=conversation.turns + 1,
        )


def _check_meta(meta: Any) -> None:
    """Raise for metadata that only the host writes, and for a malformed ``replyTo``."""
    if not isinstance(meta, dict):
        return
    if reserved := [key for key in HOST_META if key in meta]:
        raise BadRequest(f"{reserved[0]} is written by the host: leave it out.", field="turn.meta")
    reply = meta.get("replyTo")
    is_sequence = type(reply) is int and reply >= 0
    if (
        reply is not None
        and not is_sequence
        and not (isinstance(reply, str) and 1 <= len(reply) <= 256)
    ):
        raise BadRequest("replyTo is the id of an event.", field="turn.meta.replyTo")


def _check_names(conversation: Conversation, turn: dict[str, Any], own: bool) -> None:
    """Raise when a turn takes a message id of the host, or describes another agent."""
    if "messageId" in turn:
        prefix = f"{conversation.conversation_id}:"
        expected = f"{prefix}{conversation.turns + 1}:{turn.get('role', 'user')}"
        if turn["messageId"].startswith(prefix) and turn["messageId"] != expected:
            raise BadRequest(f"This turn would be {expected}.", field="turn.messageId")
    if not own:
        _check_meta(turn.get("meta"))
    if "agent" not in turn:
        return
    if turn.get("role", "user") != "agent":
        raise BadRequest("A person's turn is no agent's: leave agent out.", field="turn.agent")
    try:
        ref = msgspec.convert(turn["agent"], TurnAgentRef)
    except msgspec.ValidationError as error:
        raise BadRequest(f"agent does not fit: {error}", field="turn.agent") from None
    speaker, named = turn.get("speakerId"), ref.agent_id
    others = {*(conversation.roster or ()), *conversation.state.members} - {speaker}
    # an id of this host must be the speaker's own, even if that agent is not here
    foreign = named is not UNSET and named.startswith("host:") and named != speaker
    if named in others or foreign:
        raise BadRequest("agent is somebody else than the speaker.", field="turn.agent")
