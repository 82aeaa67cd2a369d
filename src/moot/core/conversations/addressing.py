"""Resolve addresses to participants, and warn about addresses that match none."""

from typing import Any

from msgspec.structs import replace

from moot.core.conversations import turns
from moot.core.payloads.conversations import Turn
from moot.core.state.conversation import Conversation
from moot.core.text import mentions
from moot.core.text.names import RESERVED_NAMES, full_name, is_person

#: participants that a warning lists at most
MAX_LISTED_NAMES = 12

Profiles = dict[str, dict[str, Any]]


def resolve_address(to: str, profiles: Profiles) -> list[str]:
    """Return the participants with this id, nickname or role. An id wins over the others."""
    name = full_name(to)
    if name in profiles:
        return [name]
    return mentions.match_mention(to.removeprefix("host:"), profiles)[0]


def resolve_recipient(turn: Turn, profiles: Profiles) -> Turn:
    """Replace the address of a turn by the one participant it means, if it means one."""
    if turn.to is None or is_person(turn.to):
        return turn
    names = resolve_address(turn.to, profiles)
    return replace(turn, to=names[0]) if len(names) == 1 else turn


def recipient_warning(conversation: Conversation, to: str | None, content: Any) -> str | None:
    """Return a warning for the sender of a turn that is addressed to no participant."""
    agents, participants = (
        turns.agent_profiles(conversation),
        turns.participant_profiles(conversation),
    )
    if not agents and not (conversation.floor is not None and conversation.floor.threaded):
        return None  # anyone may speak here, so no list of participants exists
    if to is not None and to != "all":
        return None if is_person(to) else _address_warning(to, agents, participants)
    unknown = [
        word
        for word in mentions.unknown_mentions(content, participants)
        if not _is_never_unknown(word)
    ]
    return _unknown_names_text([f"@{word}" for word in unknown], agents) if unknown else None


def _address_warning(to: str, agents: Profiles, participants: Profiles) -> str | None:
    names = resolve_address(to, participants)
    if len(names) > 1:
        return f"Several could be meant by {to[:64]}: {_join_names(names)}. Name one."
    return None if names else _unknown_names_text([to.removeprefix("host:")], agents)


def _is_never_unknown(word: str) -> bool:
    return word.casefold() in RESERVED_NAMES or is_person(word)


def _unknown_names_text(words: list[str], agents: Profiles) -> str:
    unknown = " or ".join(word[:64] for word in words[:MAX_LISTED_NAMES])
    return f"Nobody here is called {unknown}; {participants_clause(agents)}."


def participants_clause(agents: Profiles | list[str]) -> str:
    return f"there are {_join_names(list(agents))}" if agents else "nobody takes part yet"


def _join_names(names: list[str]) -> str:
    ellipsis = ", …" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(name.removeprefix("host:") for name in names[:MAX_LISTED_NAMES]) + ellipsis
