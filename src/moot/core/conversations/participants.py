"""Check the names and the list of participants a conversation begins with."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.conversations.turn_schema import LONGEST_NAME
from moot.core.errors import BadRequest, RosterExceeded
from moot.core.text.confusables import skeleton
from moot.core.text.names import is_name

MOST_PARTICIPANTS = 32

#: names of the host, words that mean everybody, and words for people
RESERVED_NAMES = frozenset({"moot", "system", "all", "everyone", "here", "user", "you"})
#: shapes of these names; ``a11`` looks like ``all`` and is allowed
_SHAPES = frozenset(skeleton(word) for word in RESERVED_NAMES if word != "all")


def is_reserved(word: str) -> bool:
    """Return whether the word is a reserved name or looks like one."""
    return word.casefold() in RESERVED_NAMES or skeleton(word) in _SHAPES


def is_agent_name(name: str) -> bool:
    """Return whether an agent may use this full name.

    It must be visible and read like no person's name: ``host:user:eve`` would appear as
    ``user:eve``.
    """
    kind, _, rest = name.rpartition(":")
    if not 1 <= len(name) <= LONGEST_NAME or not is_name(name) or not rest:
        return False
    prefix = name.partition(":")[0]
    is_person_like = ":" in name and skeleton(prefix) == skeleton("user")
    return not is_person_like and not is_reserved(rest) and not kind.startswith("host:")


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
