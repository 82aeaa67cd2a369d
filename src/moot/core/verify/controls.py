"""Which words of a control an event of the log tells of."""

from collections.abc import Callable
from typing import Any

from moot.core.events import Event
from moot.core.threads.control_actions import LEADING
from moot.core.threads.side_threads import LINKED

CONTROL, VOTE = "moot.thread.control", "moot.vote.called"

ORDER = ("invite", "uninvite", *LEADING)


def rank_of(event: Event, words: dict[str, Any]) -> int:
    """In which order the words of one control are told."""
    return len(ORDER) if event.type == CONTROL else ORDER.index(next(iter(words)))


def words_of(event: Event) -> dict[str, Any] | None:
    """The words of a control that an event tells of."""
    words = WORDS.get(event.type)
    return None if words is None else words(event.payload)


def _invited(said: dict[str, Any]) -> dict[str, Any]:
    asked = {"participant_id": said["participantId"], "profile": said["profile"]}
    return {"invite": {**asked, "outside": said.get("outside") is True}}


WORDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "moot.participant.joined": _invited,
    "moot.participant.left": lambda said: {"uninvite": said["participantId"]},
    "moot.thread.renamed": lambda said: {"rename": said["title"]},
    LINKED: lambda said: {"link": {"thread": said["threadId"], "title": said["title"]}},
    "moot.presence.changed": lambda said: {"presence": said["state"]},
    "moot.participation.continued": lambda said: {
        "continue": {"rounds": said["rounds"]} if "rounds" in said else True
    },
    VOTE: lambda said: {"vote": {"decision": said["decision"], "close": said["close"]}},
    "moot.participation.set": lambda said: {"participation": said["policy"]},
    "moot.turn.admitted": lambda said: {"admit": said["held"]},
    "moot.turn.dropped": lambda said: {"drop": said["held"]},
    "moot.tool.answered": lambda said: {"allow" if said["allowed"] else "deny": said["askId"]},
    CONTROL: lambda said: dict(said["content"]),
}
