"""Build the minutes of a conversation from its log.

The log is read twice: for the head (question, roster, decision) and for the transcript.
``minutes_format`` prints both.
"""

from collections import Counter
from typing import Any

from msgspec import Struct

from moot.core.conversations.closing_decision import CouncilDecision, read_decision
from moot.core.events import Event
from moot.core.payloads import conversations, councils
from moot.core.payloads.agents import ToolCalled
from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.payloads.conversations import (
    ParticipantJoined,
    Turn,
)
from moot.core.payloads.councils import (
    PolicySet,
)
from moot.core.sentences.sentence import Names
from moot.core.sentences.table import text_of
from moot.core.sentences.turns import RecordedTurn, spoken_turn
from moot.core.state.conversation import Conversation
from moot.core.text.names import COORDINATOR, handle_from_name
from moot.wire.minutes import Line

#: Fields of a member's profile in minutes, and the value that means unknown.
PROFILE_FIELDS = ("name", "role", "model")
UNKNOWN = "unknown"
#: Events that become sentences in the minutes.
NOTED_EVENTS = (
    councils.VoteCalled, councils.CouncilContinued, conversations.ParticipantJoined,
    conversations.ParticipantLeft, conversations.ThreadControlled, conversations.ThreadRenamed,
    conversations.ThreadLinked, ToolCalled, councils.ToolAsked, councils.ToolAnswered,
)  # fmt: skip
#: Participant's id -> profile fields.
People = dict[str, dict[str, str]]


class MinutesHead(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Everything above the transcript."""

    thread_id: str
    run_id: str
    title: str = ""
    question: Any = None
    opened_at: str = ""
    closed_at: str | None = None
    participants: list[dict[str, object]] = []
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
        if _conversation_of(event) == self._conversation.conversation_id:
            _apply_event(self._minutes, event, self._people)

    def minutes(self) -> MinutesHead:
        minutes, people = self._minutes, self._people
        named = [member["agentId"] for member in minutes.participants]
        minutes.participants += [{"agentId": name} for name in people if name not in named]
        for member in minutes.participants:
            member |= people.get(str(member["agentId"]), {})
        return minutes


class MinutesTranscript:
    """Makes transcript lines from events, once all names are known."""

    def __init__(self, minutes: MinutesHead, conversation: Conversation) -> None:
        self._names, self._conversation = display_names(minutes), conversation
        self._count = 0
        self._last_change: tuple[int, Any] | None = None

    def lines(self, event: Event) -> list[Line]:
        lines = list[Line]()
        turn, conversation_id = spoken_turn(event.payload), _conversation_of(event)
        is_own = conversation_id in (None, self._conversation.conversation_id)
        if conversation_id is not None and is_own and turn is not None:
            lines.append(_turn_line(event, turn))
        self._count += len(lines)
        if event.node_id != self._conversation.node_id or not is_own:
            return lines
        note = _event_sentence(event.payload, self._display_name)
        if note is not None:
            change = _profile_change(event)
            if change is None or (self._count, change) != self._last_change:
                lines.append(Line(at=event.timestamp, by=_actor(event), note=note))
                self._count += 1
            self._last_change = (self._count, change)
        return lines

    def _display_name(self, name: str) -> str:
        return self._names.get(name, handle_from_name(name))


def _conversation_of(event: Event) -> str | None:
    conversation_id: str | None = getattr(event.payload, "conversation_id", None)
    return conversation_id


def _profile_change(event: Event) -> tuple[Any, Any] | None:
    """Return whose profile was changed by whom. Repeated changes appear once in the minutes."""
    match event.payload:
        case conversations.ParticipantJoined(changed=True, participant_id=name, by=by):
            return name, by
        case _:
            return None


def display_names(minutes: MinutesHead) -> dict[str, str]:
    """Return a short name for each participant.

    Participants with equal names keep their handles.
    """
    short = {"system": COORDINATOR}
    for member in minutes.participants:
        name = str(member["agentId"])
        short[name] = str(member.get("name") or handle_from_name(name).removeprefix("user:"))
    counts = Counter(text.casefold() for text in short.values())
    return {
        name: text if counts[text.casefold()] == 1 else handle_from_name(name)
        for name, text in short.items()
    }


def _actor(event: Event) -> str:
    names = (getattr(event.payload, field, None) for field in ("by", "from_", "agent_id"))
    return str(next(filter(None, names), None))


def _event_sentence(payload: Payload | OpaquePayload, names: Names) -> str | None:
    """Return a sentence about an event of the minutes, or None."""
    # the last turn of a side thread reports its end
    is_ended_link = isinstance(payload, conversations.ThreadLinked) and payload.closed
    if is_ended_link or not isinstance(payload, NOTED_EVENTS):
        return None
    return text_of(payload, names)


def _apply_event(minutes: MinutesHead, event: Event, people: People) -> None:
    match event.payload:
        case conversations.ConversationOpened(initial_turn=turn, participants=participants):
            minutes.opened_at = event.timestamp
            minutes.question = turn.body
            minutes.participants = [
                {**member, "agentId": str(member.get("agentId"))} for member in participants or []
            ]
            _add_speaker(people, turn)
        case conversations.ConversationExchanged(turn=turn):
            _add_speaker(people, turn)
        case conversations.ConversationEnded(final_turn=turn, outcome=outcome):
            minutes.closed_at = event.timestamp
            minutes.decision = read_decision(outcome)
            minutes.outcome = None if minutes.decision else outcome
            _add_speaker(people, turn)
        case PolicySet(members=members):
            for member in members:
                _add_profile(people, member.agent_id, member.profile)
        case ParticipantJoined(participant_id=name, profile=profile):
            _add_profile(people, name, profile)
        case _:
            pass


def _add_profile(people: People, name: Any, profile: Any) -> None:
    """Add the name, role and model of a participant."""
    profile_fields = _object(profile)
    fields = {
        key: str(profile_fields[key])
        for key in PROFILE_FIELDS
        if profile_fields.get(key) not in (None, "", UNKNOWN)
    }
    people.setdefault(str(name), {}).update(fields)


def _add_speaker(people: People, turn: Turn) -> None:
    if turn.role != "system":
        people.setdefault(_speaker(turn), {})


def _speaker(turn: Turn) -> str:
    return turn.speaker_id or turn.from_


def _turn_line(event: Event, turn: RecordedTurn) -> Line:
    return Line(
        at=event.timestamp,
        by=turn.speaker,
        index=turn.index,
        role=turn.role,
        to=turn.to,
        content=turn.content,
        model=turn.model,
        kind=turn.kind,
        via=turn.via,
        spoken_by=turn.spoken_by,
        edited_by=turn.edited_by,
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
