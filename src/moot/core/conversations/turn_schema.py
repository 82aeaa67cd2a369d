"""What a turn looks like, before it is asked who says it."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.errors import BadRequest
from moot.core.state.conversation import Conversation

LONGEST_NAME = 256
ROLES = ("user", "agent", "system")
#: the last millisecond that has a name: the year 9999
LATEST = 253_402_300_799_999
#: what a turn may name, besides what it says
NAMES = ("messageId", "from", "to", "speakerId", "groupId")
#: what is told of a turn that only the host knows: what it sums up, who has changed it, what came
#: of the conversation that it ends
OF_HOST = ("summary", "edited_by", "editedBy", "outcome")


class _Model(Struct, forbid_unknown_fields=True):
    provider: str
    model: str


class AgentRef(Struct, rename="camel"):
    """What a turn may say about the agent that produced it; more is carried along."""

    agent_id: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    agent_sharing: Literal["isolated", "shared", "shared:%shared%"] | UnsetType = UNSET
    memory_ref: str | UnsetType = UNSET
    model: _Model | UnsetType = UNSET


def check(talk: Conversation, said: Any, own: bool = False) -> None:
    """Raises BadRequest when it is not one. ``own``: the host says it for a member."""
    if not isinstance(said, dict) or "content" not in said:
        raise BadRequest("A turn is an object with content.", field="turn.content")
    role = said.get("role", "user")
    if role not in ROLES:
        raise BadRequest(f"role must be one of {', '.join(ROLES)}.", field="turn.role")
    for key in NAMES:
        if key in said:
            _check_name(key, said[key])
    if "ts" in said and (type(said["ts"]) is not int or not 0 <= said["ts"] <= LATEST):
        raise BadRequest("ts must be milliseconds since the epoch.", field="turn.ts")
    _check_names(talk, said, own)
    if "turnIndex" in said:
        _check_index(talk, said["turnIndex"])
    if role == "system":
        raise BadRequest("System turns are written by the host.", field="turn.role")


def _check_name(key: str, value: Any) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_NAME:
        raise BadRequest(f"{key} must have 1 to {LONGEST_NAME} characters.", field=f"turn.{key}")


def _check_index(talk: Conversation, index: Any) -> None:
    if index != talk.turns + 1 or isinstance(index, bool):
        raise BadRequest(
            f"The next turn has index {talk.turns + 1}; leave turnIndex out.",
            field="turn.turnIndex",
            expected=talk.turns + 1,
        )


def _check_meta(meta: Any) -> None:
    """What the host tells of a turn is not for others to say; what a turn replies to is a place in
    the log, or the id of an event."""
    if not isinstance(meta, dict):
        return
    if taken := [key for key in OF_HOST if key in meta]:
        raise BadRequest(f"{taken[0]} is written by the host: leave it out.", field="turn.meta")
    reply = meta.get("replyTo")
    place = type(reply) is int and reply >= 0
    if reply is not None and not place and not (isinstance(reply, str) and 1 <= len(reply) <= 256):
        raise BadRequest("replyTo is the id of an event.", field="turn.meta.replyTo")


def _check_names(talk: Conversation, said: dict[str, Any], own: bool) -> None:
    """Message ids of the host's own naming are the host's; an agent is described as published."""
    if "messageId" in said:
        prefix = f"{talk.conversation_id}:"
        expected = f"{prefix}{talk.turns + 1}:{said.get('role', 'user')}"
        if said["messageId"].startswith(prefix) and said["messageId"] != expected:
            raise BadRequest(f"This turn would be {expected}.", field="turn.messageId")
    if not own:
        _check_meta(said.get("meta"))
    if "agent" not in said:
        return
    if said.get("role", "user") != "agent":
        raise BadRequest("A person's turn is no agent's: leave agent out.", field="turn.agent")
    try:
        ref = msgspec.convert(said["agent"], AgentRef)
    except msgspec.ValidationError as error:
        raise BadRequest(f"agent does not fit: {error}", field="turn.agent") from None
    speaker, named = said.get("speakerId"), ref.agent_id
    others = {*(talk.roster or ()), *talk.state.members} - {speaker}
    # by an id of this host, whether that one is here or not, an agent names itself alone
    foreign = named is not UNSET and named.startswith("host:") and named != speaker
    if named in others or foreign:
        raise BadRequest("agent is somebody else than the speaker.", field="turn.agent")
