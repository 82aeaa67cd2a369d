"""Sentences that the host says in a council."""

from typing import Any

from msgspec.structs import replace

from moot.core.conversations.turns import exchanged_event, system_turn
from moot.core.events import NewEvent
from moot.core.state.conversation import Conversation
from moot.core.state.council_policy import SMALL
from moot.core.state.floor import NOBODY_ANSWERED, PAIR, RUNWAY, SYNTHESIS_FAILED, TO_MANY
from moot.core.workflows.flow import FlowNode


def mention_question(conversation: Conversation, words: dict[str, list[str]]) -> str:
    """Return the question to a person who mentioned several members, or all of them."""
    parts = []
    if TO_MANY in words:
        thread = conversation.conversation_id.partition(":")[0]
        parts.append(
            f"More than {SMALL} agents are here, so I wake nobody for what is said to all. Name"
            f" those you mean, such as {_example_mention(conversation)}, or have everybody answer:"
            f" moot thread auto {thread} on"
        )
    names_for_all = [f"@{word}" for word, names in words.items() if word and not names]
    if names_for_all:
        parts.append(
            f"I wake nobody for {', '.join(names_for_all)}; please name those you mean, such as"
            f" {_example_mention(conversation)}."
        )
    for word, names in words.items():
        if names:
            candidates = " or ".join(f"@{_short_name(name)}" for name in names)
            parts.append(f"Whom do you mean by @{word}: {candidates}?")
    return " ".join(parts)


def _example_mention(conversation: Conversation) -> str:
    members = conversation.floor.members if conversation.floor is not None else {}
    return next((f"@{_short_name(name)}" for name in members), "@codex")


def _short_name(name: str) -> str:
    return name.removeprefix("host:")


#: reasons for a stop, where the name of the stop is not enough
STOP_TEXTS = {
    PAIR: "{who} have answered one another {times}",
    NOBODY_ANSWERED: "nobody-answered, everybody who was asked failed, declined or was silent",
    SYNTHESIS_FAILED: "synthesis, the moderator did not sum up",
    RUNWAY: "ttl reached its limit",
}


CONTINUE_HINT = "A person can let it go on: /continue."


def busiest_pair(conversation: Conversation) -> str:
    """Return the two agents that answered each other most often."""
    counter = conversation.floor if conversation.floor is not None else conversation.chain
    pairs = counter.pairs if counter is not None else {}
    busiest = max(pairs, key=lambda key: pairs[key], default="")
    return (
        " and ".join(display_name(conversation, name) for name in busiest.split("|"))
        or "two agents"
    )


def host_turn_event(
    node: FlowNode, conversation: Conversation, text: str, at: int, ahead: int = 1, **more: Any
) -> NewEvent:
    """Return a turn of the host. ``more`` are further fields of the turn."""
    turn = replace(system_turn(conversation, text, at, ahead), **more)
    return exchanged_event(conversation, node.id, turn)


#: sentences about an invited member that did not speak
FAILURE_TEXTS = {
    "failed": "{name} could not answer: {why}",
    "refused": "{name} declined to answer.",
}


def display_name(conversation: Conversation, name: str) -> str:
    member = conversation.floor.members.get(name) if conversation.floor is not None else None
    profile = member.profile if member is not None else {}
    return str(profile.get("name") or name.rpartition(":")[2])
