"""The minutes of a conversation: question, roster, decision, votes, dissent, what is to be done,
and every turn with its number. Made from the log, which is read twice: for what stands above the
transcript, and line by line. ``printing`` makes pages of them."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.conversations.decisions import Decision, read
from moot.core.events import Event
from moot.core.state.conversation import Conversation
from moot.core.state.tasks import kind_of
from moot.core.threads.agent_bridge import COORDINATOR, Teller, handle, identified
from moot.core.threads.control_text import Names, says

#: what minutes tell of a member beside its id, and what a program says that knows no better
PROFILE = ("name", "role", "model")
UNKNOWN = "unknown"
#: events beside the turns that are told as sentences
NOTED = frozenset(
    {"moot.vote.called", "moot.participation.continued", "moot.participant.joined"}
    | {"moot.participant.left", "moot.thread.control", "moot.thread.renamed", "moot.thread.linked"}
)
#: events that hold a turn, and where
TURNS = {
    "conversation.opened": "initialTurn",
    "conversation.exchanged": "turn",
    "conversation.closed": "finalTurn",
}
#: characters of what a tool was given
LONGEST_INPUTS = 200


#: who takes part -> that
People = dict[str, dict[str, str]]
#: what somebody did, in the words of who knows how everybody is called
Sentence = Callable[[Names], str | None]


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A turn, or a sentence about what somebody did."""

    at: str
    by: str
    index: int | None = None
    role: str | None = None
    to: str | None = None
    content: Any = None
    model: str | None = None
    #: ``task`` or ``result``, where it is more than words
    kind: str | None = None
    #: who held the key, where it says more than the name
    via: str | None = None
    #: who has used the name of an agent of the host
    spoken_by: str | None = None
    #: who has put other words into the speaker's mouth
    edited_by: str | None = None
    #: what happened, when it is not a turn
    note: str | None = None


class Minutes(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What stands above the transcript."""

    thread_id: str
    run_id: str
    title: str = ""
    question: Any = None
    opened_at: str = ""
    closed_at: str | None = None
    participants: list[dict[str, Any]] = []
    decision: Decision | None = None
    #: an outcome that is no decision
    outcome: Any = None


class Facts:
    """Who took part, and what came of it, from all events of the run."""

    def __init__(self, run_id: str, thread_id: str, talk: Conversation) -> None:
        self._found, self._talk = Minutes(thread_id=thread_id, run_id=run_id), talk
        self._people: People = {}

    def hear(self, event: Event) -> None:
        said = event.payload
        if said.get("conversationId") == self._talk.conversation_id:
            _take(self._found, event, said, self._people)

    def found(self) -> Minutes:
        found, people = self._found, self._people
        named = [member["agentId"] for member in found.participants]
        found.participants += [{"agentId": name} for name in people if name not in named]
        for member in found.participants:
            member |= people.get(member["agentId"], {})
        return found


class Transcript:
    """Line by line from the same events, when it is known who everybody is."""

    def __init__(self, found: Minutes, talk: Conversation) -> None:
        self._known, self._talk = names(found), talk
        self._teller = Teller(talk, found.thread_id, "", "")
        self._count = 0
        self._changed: tuple[int, Any] | None = None

    def lines(self, event: Event) -> list[Line]:
        said, lines = event.payload, list[Line]()
        if said.get("conversationId") == self._talk.conversation_id and event.type in TURNS:
            lines.append(_line(event, said.get(TURNS[event.type])))
        self._count += len(lines)
        if event.node_id != self._talk.node_id:
            return lines
        sentence = _sentence(self._teller, event)
        if sentence is not None:
            change = _change(said)
            if change is None or (self._count, change) != self._changed:
                note = sentence(lambda name: self._known.get(identified(name), name))
                lines.append(Line(at=event.timestamp, by=_doer(said), note=note))
                self._count += 1
            self._changed = (self._count, change)
        return lines


def _change(said: dict[str, Any]) -> tuple[Any, Any] | None:
    """Whose profile was changed, and by whom: one change after another is told once."""
    return (said.get("participantId"), said.get("by")) if said.get("changed") is True else None


def names(found: Minutes) -> dict[str, str]:
    """Everybody as people call him: by name, unless two have the same."""
    short = {"system": COORDINATOR}
    for member in found.participants:
        name = member["agentId"]
        short[name] = str(member.get("name") or handle(name).removeprefix("user:"))
    counts = Counter(text.casefold() for text in short.values())
    return {
        name: text if counts[text.casefold()] == 1 else handle(name) for name, text in short.items()
    }


def _doer(said: dict[str, Any]) -> str:
    return str(said.get("by") or said.get("from") or said.get("agentId"))


def _sentence(teller: Teller, event: Event) -> Sentence | None:
    """What somebody did, as soon as it is known how everybody is called."""
    said = event.payload
    if event.type in TOOLS:
        who, words = handle(_doer(said)), TOOLS[event.type](said)
        return lambda called: f"{called(who)} {words}"
    if event.type not in NOTED or said.get("closed") is True:  # of that a turn tells
        return None
    told = teller.tell(event)
    return (lambda called: says(told[0], called)) if told else None


def _take(found: Minutes, event: Event, said: dict[str, Any], people: People) -> None:
    match event.type:
        case "conversation.opened":
            found.opened_at = event.timestamp
            found.question = _object(said.get("initialTurn")).get("content")
            found.participants = [
                {**member, "agentId": str(member.get("agentId"))}
                for member in said.get("participants", [])
            ]
            _heard(people, said.get("initialTurn"))
        case "conversation.exchanged":
            _heard(people, said.get("turn"))
        case "conversation.closed":
            found.closed_at = event.timestamp
            found.decision = read(said.get("outcome"))
            found.outcome = None if found.decision else said.get("outcome")
            _heard(people, said.get("finalTurn"))
        case "moot.participation.set":
            _introduce_all(people, said.get("members"))
        case "moot.participant.joined":
            _introduce(people, said.get("participantId"), said.get("profile"))
        case _:
            pass


def _introduce_all(people: People, members: Any) -> None:
    for member in members if isinstance(members, list) else []:
        _introduce(people, _object(member).get("agentId"), _object(member).get("profile"))


def _introduce(people: People, name: Any, profile: Any) -> None:
    """How somebody is called, what for, and which model speaks for it."""
    said = _object(profile)
    known = {key: str(said[key]) for key in PROFILE if said.get(key) not in (None, "", UNKNOWN)}
    people.setdefault(str(name), {}).update(known)


def _heard(people: People, said: Any) -> None:
    turn = _object(said)
    if turn.get("role") != "system":
        people.setdefault(_speaker(turn), {})


def _speaker(turn: dict[str, Any]) -> str:
    return str(turn.get("speakerId") or turn.get("from"))


def _line(event: Event, said: Any) -> Line:
    """A log that was brought along may say it in odd ways; it is told all the same."""
    turn = _object(said)
    model = _object(_object(turn.get("agent")).get("model"))
    return Line(
        at=event.timestamp,
        by=_speaker(turn),
        index=turn.get("turnIndex"),
        role=turn.get("role"),
        to=_text(turn.get("to")),
        content=turn.get("content"),
        model=_text(model.get("model")),
        kind=kind if (kind := kind_of(turn)) in ("task", "result") else None,
        via=_text(turn.get("via")),
        spoken_by=_text(turn.get("spokenBy")),
        edited_by=_text(turn.get("editedBy")),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def tool_of(said: dict[str, Any]) -> str:
    """``price_history({"sku":"lamp"})``"""
    given = text_of(said.get("inputs") or {})
    shown = given if len(given) <= LONGEST_INPUTS else given[:LONGEST_INPUTS] + "…"
    return f"{said.get('toolName')}({shown})"


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


#: who used what, and by whose leave
TOOLS: dict[str, Callable[[dict[str, Any]], str]] = {
    "agent.toolCalled": lambda said: f"used {tool_of(said)}",
    "moot.tool.asked": lambda said: f"asked to use {tool_of(said)}",
    "moot.tool.answered": lambda said: "allowed it" if said.get("allowed") else "did not allow it",
}
