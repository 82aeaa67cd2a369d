"""Read the words of a control from the events that it caused."""

from collections.abc import Callable
from typing import Any

from moot.core.events import Event
from moot.core.threads.control_actions import CONTROL_ACTIONS
from moot.core.threads.side_threads import THREAD_LINKED

CONTROL, VOTE = "moot.thread.control", "moot.vote.called"

CONTROL_ORDER = ("invite", "uninvite", *CONTROL_ACTIONS)


def control_rank(event: Event, words: dict[str, Any]) -> int:
    """Return the event's place in the fixed order of a control's events."""
    return len(CONTROL_ORDER) if event.type == CONTROL else CONTROL_ORDER.index(next(iter(words)))


def control_words(event: Event) -> dict[str, Any] | None:
    """Return the control's words behind an event; None for events of other commands."""
    words = WORDS_BY_EVENT.get(event.type)
    return None if words is None else words(event.payload)


def _invite_words(payload: dict[str, Any]) -> dict[str, Any]:
    invite = {"participant_id": payload["participantId"], "profile": payload["profile"]}
    return {"invite": {**invite, "outside": payload.get("outside") is True}}


WORDS_BY_EVENT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "moot.participant.joined": _invite_words,
    "moot.participant.left": lambda payload: {"uninvite": payload["participantId"]},
    "moot.thread.renamed": lambda payload: {"rename": payload["title"]},
    THREAD_LINKED: lambda payload: {
        "link": {"thread": payload["threadId"], "title": payload["title"]}
    },
    "moot.presence.changed": lambda payload: {"presence": payload["state"]},
    "moot.participation.continued": lambda payload: {
        "continue": {"rounds": payload["rounds"]} if "rounds" in payload else True
    },
    VOTE: lambda payload: {"vote": {"decision": payload["decision"], "close": payload["close"]}},
    "moot.participation.set": lambda payload: {"participation": payload["policy"]},
    "moot.turn.admitted": lambda payload: {"admit": payload["held"]},
    "moot.turn.dropped": lambda payload: {"drop": payload["held"]},
    "moot.tool.answered": lambda payload: {
        "allow" if payload["allowed"] else "deny": payload["askId"]
    },
    CONTROL: lambda payload: dict(payload["content"]),
}
