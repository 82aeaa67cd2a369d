"""Build the minutes of a conversation from its log.

The log is read twice: for the head (question, roster, decision) and for the transcript.
``minutes_format`` prints both.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.conversations.decisions import CouncilDecision, read_decision
from moot.core.events import Event
from moot.core.state.conversation import Conversation
from moot.core.state.tasks import turn_kind
from moot.core.threads.agent_bridge import (
    COORDINATOR,
    BridgeRenderer,
    handle_from_name,
    name_from_handle,
)
from moot.core.threads.control_text import DisplayNames, event_sentence
from moot.wire.json import JsonObject
from moot.wire.minutes import Line

#: Fields of a member's profile in minutes, and the value that means unknown.
PROFILE_FIELDS = ("name", "role", "model")
UNKNOWN = "unknown"
#: Events that become sentences in the minutes.
NOTED_EVENTS = frozenset(
    {"moot.vote.called", "moot.participation.continued", "moot.participant.joined"}
    | {"moot.participant.left", "moot.thread.control", "moot.thread.renamed", "moot.thread.linked"}
)

#: Event type -> the field that holds its turn.
TURN_FIELDS = {
    "conversation.opened": "initialTurn",
    "conversation.exchanged": "turn",
    "conversation.closed": "finalTurn",
}
#: Characters of a tool's inputs.
LONGEST_INPUTS = 200


#: Participant's id -> profile fields.
People = dict[str, dict[str, str]]
#: A function from display names to a sentence.
Sentence = Callable[[DisplayNames], str | None]


class MinutesHead(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Everything above the transcript."""

    thread_id: str
    run_id: str
    title: str = ""
    question: Any = None
    opened_at: str = ""
    closed_at: str | None = None
    participants: list[JsonObject] = []
    decision: CouncilDecision | None = None
    #: An outcome that is not a decision.
    outcome: Any = None


class MinutesFacts:
    """Collects the head of the minutes from all events of the run."""

    def __init__(self, run_id: str, thread_id: str, conversation: Conversation) -> None:
        self._minutes, self._conversation = (
            MinutesHead(thread_id=thread_id, run_id=run_id),
            conversation,
        )
        self._people: People = {}

    def add(self, event: Event) -> None:
        payload = event.payload
        if payload.get("conversationId") == self._conversation.conversation_id:
            _apply_event(self._minutes, event, payload, self._people)

    def minutes(self) -> MinutesHead:
        minutes, people = self._minutes, self._people
        named = [member["agentId"] for member in minutes.participants]
        minutes.participants += [{"agentId": name} for name in people if name not in named]
        for member in minutes.participants:
            member |= people.get(member["agentId"], {})
        return minutes


class MinutesTranscript:
    """Makes transcript lines from events, once all names are known."""

    def __init__(self, minutes: MinutesHead, conversation: Conversation) -> None:
        self._names, self._conversation = display_names(minutes), conversation
        self._translator = BridgeRenderer(conversation, minutes.thread_id, "", "")
        self._count = 0
        self._last_change: tuple[int, Any] | None = None

    def lines(self, event: Event) -> list[Line]:
        payload, lines = event.payload, list[Line]()
        if (
            payload.get("conversationId") == self._conversation.conversation_id
            and event.type in TURN_FIELDS
        ):
            lines.append(_turn_line(event, payload.get(TURN_FIELDS[event.type])))
        self._count += len(lines)
        if event.node_id != self._conversation.node_id:
            return lines
        sentence = _sentence(self._translator, event)
        if sentence is not None:
            change = _profile_change(payload)
            if change is None or (self._count, change) != self._last_change:
                note = sentence(lambda name: self._names.get(name_from_handle(name), name))
                lines.append(Line(at=event.timestamp, by=_actor(payload), note=note))
                self._count += 1
            self._last_change = (self._count, change)
        return lines


def _profile_change(payload: JsonObject) -> tuple[Any, Any] | None:
    """Return whose profile was changed by whom. Repeated changes appear once in the minutes."""
    return (
        (payload.get("participantId"), payload.get("by"))
        if payload.get("changed") is True
        else None
    )


def display_names(minutes: MinutesHead) -> dict[str, str]:
    """Return a short name for each participant.

    Participants with equal names keep their handles.
    """
    short = {"system": COORDINATOR}
    for member in minutes.participants:
        name = member["agentId"]
        short[name] = str(member.get("name") or handle_from_name(name).removeprefix("user:"))
    counts = Counter(text.casefold() for text in short.values())
    return {
        name: text if counts[text.casefold()] == 1 else handle_from_name(name)
        for name, text in short.items()
    }


def _actor(payload: JsonObject) -> str:
    return str(payload.get("by") or payload.get("from") or payload.get("agentId"))


def _sentence(translator: BridgeRenderer, event: Event) -> Sentence | None:
    """Return a function that words the event once display names are known, or None."""
    payload = event.payload
    if event.type in TOOL_SENTENCES:
        actor, action = handle_from_name(_actor(payload)), TOOL_SENTENCES[event.type](payload)
        return lambda called: f"{called(actor)} {action}"
    if (
        event.type not in NOTED_EVENTS or payload.get("closed") is True
    ):  # the closing turn reports it
        return None
    translated = translator.tell(event)
    return (lambda called: event_sentence(translated[0], called)) if translated else None


def _apply_event(minutes: MinutesHead, event: Event, payload: JsonObject, people: People) -> None:
    match event.type:
        case "conversation.opened":
            minutes.opened_at = event.timestamp
            minutes.question = _object(payload.get("initialTurn")).get("content")
            minutes.participants = [
                {**member, "agentId": str(member.get("agentId"))}
                for member in payload.get("participants", [])
            ]
            _add_speaker(people, payload.get("initialTurn"))
        case "conversation.exchanged":
            _add_speaker(people, payload.get("turn"))
        case "conversation.closed":
            minutes.closed_at = event.timestamp
            minutes.decision = read_decision(payload.get("outcome"))
            minutes.outcome = None if minutes.decision else payload.get("outcome")
            _add_speaker(people, payload.get("finalTurn"))
        case "moot.participation.set":
            _add_members(people, payload.get("members"))
        case "moot.participant.joined":
            _add_profile(people, payload.get("participantId"), payload.get("profile"))
        case _:
            pass


def _add_members(people: People, members: Any) -> None:
    for member in members if isinstance(members, list) else []:
        _add_profile(people, _object(member).get("agentId"), _object(member).get("profile"))


def _add_profile(people: People, name: Any, profile: Any) -> None:
    """Add the name, role and model of a participant."""
    profile_fields = _object(profile)
    fields = {
        key: str(profile_fields[key])
        for key in PROFILE_FIELDS
        if profile_fields.get(key) not in (None, "", UNKNOWN)
    }
    people.setdefault(str(name), {}).update(fields)


def _add_speaker(people: People, value: Any) -> None:
    turn = _object(value)
    if turn.get("role") != "system":
        people.setdefault(_speaker(turn), {})


def _speaker(turn: JsonObject) -> str:
    return str(turn.get("speakerId") or turn.get("from"))


def _turn_line(event: Event, value: Any) -> Line:
    """Return a line for a turn. An imported log may hold odd values; they become text."""
    turn = _object(value)
    model = _object(_object(turn.get("agent")).get("model"))
    return Line(
        at=event.timestamp,
        by=_speaker(turn),
        index=turn.get("turnIndex"),
        role=turn.get("role"),
        to=_optional_text(turn.get("to")),
        content=turn.get("content"),
        model=_optional_text(model.get("model")),
        kind=kind if (kind := turn_kind(turn)) in ("task", "result") else None,
        via=_optional_text(turn.get("via")),
        spoken_by=_optional_text(turn.get("spokenBy")),
        edited_by=_optional_text(turn.get("editedBy")),
    )


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)


def tool_call_text(payload: JsonObject) -> str:
    """Return ``price_history({"sku":"lamp"})``."""
    inputs = content_text(payload.get("inputs") or {})
    shortened = inputs if len(inputs) <= LONGEST_INPUTS else inputs[:LONGEST_INPUTS] + "…"
    return f"{payload.get('toolName')}({shortened})"


def content_text(content: Any) -> str:
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


#: Event type -> sentence about a tool call.
TOOL_SENTENCES: dict[str, Callable[[JsonObject], str]] = {
    "agent.toolCalled": lambda payload: f"used {tool_call_text(payload)}",
    "moot.tool.asked": lambda payload: f"asked to use {tool_call_text(payload)}",
    "moot.tool.answered": lambda payload: (
        "allowed it" if payload.get("allowed") else "did not allow it"
    ),
}
