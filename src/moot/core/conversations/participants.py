"""Check the names and the list of participants a conversation begins with."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.errors import BadRequest, RosterExceeded
from moot.core.text.names import LONGEST_NAME, is_agent_name

MOST_PARTICIPANTS = 32


def check_roster(participants: Any, most: int = MOST_PARTICIPANTS) -> None:
    """Raise when a closed roster has fewer than two members, too many, or one twice."""
    if not isinstance(participants, list) or not all(_is_member(item) for item in participants):
        raise BadRequest("participants must be a list of {agentId}.", field="participants")
    names = [item["agentId"] for item in participants]
    if len(names) < 2:
        raise BadRequest("A roster needs at least two participants.", field="participants")
    if len(set(names)) < len(names):
        raise BadRequest("A roster names each participant once.", field="participants")
    if len(names) > most:
        raise RosterExceeded(
            f"A roster has at most {most} participants, this one has {len(names)}.",
            maxParticipants=most,
            participants=len(names),
        )


def check_invited(members: Any, most: int = MOST_PARTICIPANTS) -> list[dict[str, Any]]:
    """Raise BadRequest when the invited members are too many, or one is there twice."""
    if not isinstance(members, list) or not all(_is_member(item) for item in members):
        raise BadRequest("invited must be a list of {agentId}.", field="invited")
    if len({item["agentId"] for item in members}) < len(members) or len(members) > most:
        raise BadRequest(f"At most {most} are invited, each once.", field="invited")
    return members


class RosterAgentRef(Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A member of a roster, as the protocol writes it. Versions by channel are not supported."""

    agent_id: Annotated[str, Meta(min_length=3, max_length=LONGEST_NAME)]
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] | UnsetType = UNSET
    model_class: str | UnsetType = UNSET
    memory_ref: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)] | UnsetType = UNSET
    version: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    source_manifest_id: Annotated[str, Meta(max_length=LONGEST_NAME)] | UnsetType = UNSET


def _is_member(item: Any) -> bool:
    """Return whether the item names an agent that can speak."""
    try:
        ref = msgspec.convert(item, RosterAgentRef)
    except msgspec.ValidationError:
        return False
    return is_agent_name(ref.agent_id)
