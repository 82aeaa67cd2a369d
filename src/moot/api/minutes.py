"""The minutes of a conversation: question, roster, decision, votes, dissent, what is to be done,
and every turn with its number. Made from the log; ``printing`` makes pages of them."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.decisions import Decision, read
from moot.core.events import Event
from moot.core.waiting import Conversation

#: what minutes tell of a member beside its id
PROFILE = ("name", "role", "model")
#: characters of what a tool was given
LONGEST_INPUTS = 200


#: who takes part -> that
People = dict[str, dict[str, str]]


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A turn, or a sentence about what somebody did."""

    at: str
    by: str
    index: int | None = None
    role: str | None = None
    to: str | None = None
    content: Any = None
    model: str | None = None
    #: who held the key, where it says more than the name
    via: str | None = None
    #: who has put other words into the speaker's mouth
    edited_by: str | None = None
    #: what happened, when it is not a turn
    note: str | None = None


class Minutes(Struct, kw_only=True, rename="camel", omit_defaults=True):
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
    transcript: list[Line] = []


async def gather(
    run_id: str, thread_id: str, talk: Conversation, log: AsyncIterator[Event]
) -> Minutes:
    """From the events of the run, those of this conversation."""
    found = Minutes(thread_id=thread_id, run_id=run_id)
    people: People = {}
    async for event in log:
        said = event.payload
        if said.get("conversationId") == talk.conversation_id:
            _take(found, event, said, people)
        if event.node_id == talk.node_id:
            _tool(found, event, said)
    named = [member["agentId"] for member in found.participants]
    found.participants += [{"agentId": name} for name in people if name not in named]
    for member in found.participants:
        member |= people.get(member["agentId"], {})
    return found


def _take(found: Minutes, event: Event, said: dict[str, Any], people: People) -> None:
    match event.type:
        case "conversation.opened":
            found.opened_at = event.timestamp
            found.question = _object(said.get("initialTurn")).get("content")
            found.participants = [
                {**member, "agentId": str(member.get("agentId"))}
                for member in said.get("participants", [])
            ]
            _turn(found, event, said.get("initialTurn"), people)
        case "conversation.exchanged":
            _turn(found, event, said.get("turn"), people)
        case "conversation.closed":
            found.closed_at = event.timestamp
            found.decision = read(said.get("outcome"))
            found.outcome = None if found.decision else said.get("outcome")
            _turn(found, event, said.get("finalTurn"), people)
        case "moot.participation.set":
            _introduce_all(people, said.get("members"))
        case "moot.vote.called":
            _note(found, event, str(said.get("by")), f"put to the vote: {said.get('decision')}")
        case "moot.participation.continued":
            _note(found, event, str(said.get("by")), "let it go on")
        case "moot.participant.joined":
            _introduce(people, said.get("participantId"), said.get("profile"))
            _note(found, event, str(said.get("by")), f"invited {said.get('participantId')}")
        case "moot.participant.left":
            _note(found, event, str(said.get("by")), f"uninvited {said.get('participantId')}")
        case "moot.thread.control":
            _note(found, event, str(said.get("from")), _sentence(said.get("content")))
        case _:
            pass


def _tool(found: Minutes, event: Event, said: dict[str, Any]) -> None:
    """Who used what, and by whose leave."""
    match event.type:
        case "agent.toolCalled":
            _note(found, event, str(said.get("agentId")), f"used {tool_of(said)}")
        case "moot.tool.asked":
            _note(found, event, str(said.get("agentId")), f"asked to use {tool_of(said)}")
        case "moot.tool.answered":
            word = "allowed it" if said.get("allowed") else "did not allow it"
            _note(found, event, str(said.get("by")), word)
        case _:
            pass


def _introduce_all(people: People, members: Any) -> None:
    for member in members if isinstance(members, list) else []:
        _introduce(people, _object(member).get("agentId"), _object(member).get("profile"))


def _introduce(people: People, name: Any, profile: Any) -> None:
    """How somebody is called, what for, and which model speaks for it."""
    said = _object(profile)
    known = {key: str(said[key]) for key in PROFILE if said.get(key)}
    people.setdefault(str(name), {}).update(known)


def _turn(found: Minutes, event: Event, said: Any, people: People) -> None:
    """A log that was brought along may say it in odd ways; it is told all the same."""
    turn = _object(said)
    model = _object(_object(turn.get("agent")).get("model"))
    by = str(turn.get("speakerId") or turn.get("from"))
    if turn.get("role") != "system":
        people.setdefault(by, {})
    found.transcript.append(
        Line(
            at=event.timestamp,
            by=by,
            index=turn.get("turnIndex"),
            role=turn.get("role"),
            to=_text(turn.get("to")),
            content=turn.get("content"),
            model=_text(model.get("model")),
            via=_text(turn.get("via")),
            edited_by=_text(turn.get("editedBy")),
        )
    )


def _note(found: Minutes, event: Event, by: str, note: str) -> None:
    found.transcript.append(Line(at=event.timestamp, by=by, note=note))


def _sentence(content: Any) -> str:
    """A control in words: ``mute host:bo``."""
    if not isinstance(content, dict):
        return "steered the conversation"
    parts = []
    for word, value in content.items():
        targets = value.get("targets") if isinstance(value, dict) else value
        if isinstance(targets, list):
            parts.append(f"{word} {', '.join(str(name) for name in targets)}")
        else:
            parts.append(word if value in (True, {}) else f"{word} {text_of(value)}")
    return "; ".join(parts)


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
