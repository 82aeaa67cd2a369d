"""Who takes part from the beginning: a closed roster, or those who are invited."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.conversations.turn_schema import LONGEST_NAME
from moot.core.errors import BadRequest, RosterExceeded
from moot.core.text.confusables import skeleton
from moot.core.text.names import is_name

MOST_PARTICIPANTS = 32

#: the host's own names, words that mean everybody, and what people are called
RESERVED = frozenset({"moot", "system", "all", "everyone", "here", "user", "you"})
#: how these look; ``a11`` is as good a name as any
_SHAPES = frozenset(skeleton(word) for word in RESERVED if word != "all")


def is_reserved(word: str) -> bool:
    """Whether it is such a word, or could be taken for one."""
    return word.casefold() in RESERVED or skeleton(word) in _SHAPES


def is_agents(name: str) -> bool:
    """Whether an agent may go by this full name: it can be seen, and reads as nobody else's.
    ``host:user:eve`` would be told as the person ``user:eve``."""
    kind, _, rest = name.rpartition(":")
    if not 1 <= len(name) <= LONGEST_NAME or not is_name(name) or not rest:
        return False
    first = name.partition(":")[0]
    person = ":" in name and skeleton(first) == skeleton("user")
    return not person and not is_reserved(rest) and not kind.startswith("host:")


def check_roster(participants: Any, most: int = MOST_PARTICIPANTS) -> None:
    """Raises when a closed roster is not one: two or more members, each once, not too many."""
    if not isinstance(participants, list) or not all(_member(item) for item in participants):
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
    """Those invited at the beginning: none is as good as some, but each once."""
    if not isinstance(members, list) or not all(_member(item) for item in members):
        raise BadRequest("invited must be a list of {agentId}.", field="invited")
    if len({item["agentId"] for item in members}) < len(members) or len(members) > most:
        raise BadRequest(f"At most {most} are invited, each once.", field="invited")
    return members


class AgentRef(Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A member of a roster, as the protocol writes it. Versions by channel are not offered here."""

    agent_id: Annotated[str, Meta(min_length=3, max_length=LONGEST_NAME)]
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] | UnsetType = UNSET
    model_class: str | UnsetType = UNSET
    memory_ref: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)] | UnsetType = UNSET
    version: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    source_manifest_id: Annotated[str, Meta(max_length=LONGEST_NAME)] | UnsetType = UNSET


def _member(item: Any) -> bool:
    """An agent that can speak: no person, and a name without blanks."""
    try:
        found = msgspec.convert(item, AgentRef)
    except msgspec.ValidationError:
        return False
    return is_agents(found.agent_id)
