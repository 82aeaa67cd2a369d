"""Read the words of a control from the events that it caused."""

from collections.abc import Callable, Mapping
from typing import Any

from moot.core.events import Event, payload_fields
from moot.core.payloads.conversations import (
    ParticipantJoined,
    ParticipantLeft,
    PresenceChanged,
    ThreadControlled,
    ThreadRenamed,
)
from moot.core.payloads.councils import (
    CouncilContinued,
    PolicySet,
    ToolAnswered,
    TurnAdmitted,
    TurnDropped,
    VoteCalled,
)
from moot.core.threads.control_actions import CONTROL_ACTIONS
from moot.core.threads.side_threads import THREAD_LINKED

CONTROL, VOTE = ThreadControlled.event_type, VoteCalled.event_type

CONTROL_ORDER = ("invite", "uninvite", *CONTROL_ACTIONS)


def control_rank(event: Event, words: Mapping[str, object]) -> int:
    """Return the event's place in the fixed order of a control's events."""
    return len(CONTROL_ORDER) if event.type == CONTROL else CONTROL_ORDER.index(next(iter(words)))


def control_words(event: Event) -> dict[str, Any] | None:
    """Return the control's words behind an event; None for events of other commands."""
    words = WORDS_BY_EVENT.get(event.type)
    return None if words is None else words(payload_fields(event))


def _invite_words(payload: Mapping[str, object]) -> dict[str, Any]:
    invite = {"participant_id": payload["participantId"], "profile": payload["profile"]}
    return {"invite": {**invite, "outside": payload.get("outside") is True}}


WORDS_BY_EVENT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    ParticipantJoined.event_type: _invite_words,
    ParticipantLeft.event_type: lambda payload: {"uninvite": payload["participantId"]},
    ThreadRenamed.event_type: lambda payload: {"rename": payload["title"]},
    THREAD_LINKED: lambda payload: {
        "link": {"thread": payload["threadId"], "title": payload["title"]}
    },
    PresenceChanged.event_type: lambda payload: {"presence": payload["state"]},
    CouncilContinued.event_type: lambda payload: {
        "continue": {"rounds": payload["rounds"]} if "rounds" in payload else True
    },
    VOTE: lambda payload: {"vote": {"decision": payload["decision"], "close": payload["close"]}},
    PolicySet.event_type: lambda payload: {"participation": payload["policy"]},
    TurnAdmitted.event_type: lambda payload: {"admit": payload["held"]},
    TurnDropped.event_type: lambda payload: {"drop": payload["held"]},
    ToolAnswered.event_type: lambda payload: {
        "allow" if payload["allowed"] else "deny": payload["askId"]
    },
    CONTROL: lambda payload: dict(payload["content"]),
}
