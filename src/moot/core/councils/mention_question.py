"""Words after an @ that mean several members, or everybody: the person who wrote them is asked."""

from moot.core.state.conversation import Conversation
from moot.core.state.council_policy import SMALL
from moot.core.state.floor import TO_MANY


def question(talk: Conversation, words: dict[str, list[str]]) -> str:
    """What the host says to the person."""
    parts = []
    if TO_MANY in words:
        place = talk.conversation_id.partition(":")[0]
        parts.append(
            f"More than {SMALL} agents are here, so I wake nobody for what is said to all. Name"
            f" those you mean, such as {_example(talk)}, or have everybody answer:"
            f" moot thread auto {place} on"
        )
    everybody = [f"@{word}" for word, names in words.items() if word and not names]
    if everybody:
        parts.append(
            f"I wake nobody for {', '.join(everybody)}; please name those you mean, such as"
            f" {_example(talk)}."
        )
    for word, names in words.items():
        if names:
            could = " or ".join(f"@{_short(name)}" for name in names)
            parts.append(f"Whom do you mean by @{word}: {could}?")
    return " ".join(parts)


def _example(talk: Conversation) -> str:
    members = talk.floor.members if talk.floor is not None else {}
    return next((f"@{_short(name)}" for name in members), "@codex")


def _short(name: str) -> str:
    return name.removeprefix("host:")
