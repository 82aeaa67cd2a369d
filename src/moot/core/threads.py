"""Controls of a conversation: who may steer it, who joins, who leaves."""

from typing import Any

from msgspec import Struct

from moot.core import conversation, interrupts, thread
from moot.core.conversation import Speaker
from moot.core.errors import (
    BadRequest,
    Forbidden,
    NotYourName,
    ParticipantNotInvited,
    RosterClosed,
    RosterFull,
)
from moot.core.events import NewEvent
from moot.core.flow import Flow
from moot.core.leading import LEADING
from moot.core.rosters import MOST_PARTICIPANTS
from moot.core.run import Run
from moot.core.turn_shape import LONGEST_NAME
from moot.core.waiting import Conversation

#: controls that only a person may use; the others are open to every participant
HUMAN_ONLY = frozenset(
    {"mute", "unmute", "pause", "prod", "ttl_seconds", "discussion", "invited_auto"}
    | {"continue", "admit", "drop", "allow", "deny", "participation", "vote"}
)
KNOWN = HUMAN_ONLY | {"done", "invite", "uninvite"}


def warnings(talk: Conversation, content: dict[str, Any]) -> list[str]:
    """What a control says in vain; it is recorded as it was said."""
    found = [f"'{str(word)[:64]}' is no control." for word in content if word not in KNOWN]
    found += thread.doubts(content)
    known = {*(talk.roster or ()), *talk.state.members}
    known |= set(talk.floor.members) if talk.floor is not None else set()
    for word in ("mute", "prod"):
        strangers = [name for name in thread.targets(content.get(word)) if name not in known]
        if known and strangers and not all(map(thread.is_person, strangers)):
            found.append(f"'{word}': {', '.join(strangers[:5])} takes no part here.")
    return found


class Control(Struct, frozen=True, kw_only=True):
    """Somebody steers a conversation. ``sender`` is checked against the key."""

    node_id: str
    content: dict[str, Any]
    who: Speaker
    at: int
    sender: str | None = None


def control(run: Run, flow: Flow, given: Control) -> list[NewEvent]:
    talk = conversation.must_be_open(run.conversations.get(given.node_id), run, given.node_id)
    interrupts.refuse_paused(run)
    sender = _sender(given)
    words = [word for word in given.content if word in KNOWN]
    if not words:
        raise BadRequest(f"A control is one of {', '.join(sorted(KNOWN))}.", field="content")
    if HUMAN_ONLY.intersection(words) and not thread.is_person(sender):
        raise Forbidden("Only a person may do that here.", participant=sender)
    if not (given.who.admin or thread.is_person(sender) or _takes_part(talk, sender)):
        raise ParticipantNotInvited(
            "Who does not take part steers nothing here.",
            speakerId=sender,
            conversationId=talk.conversation_id,
        )
    _check_targets(given.content)
    events: list[NewEvent] = []
    if "invite" in given.content:
        events.append(_join(talk, given, sender))
    if "uninvite" in given.content:
        events += _leave(talk, given, sender)
    for lead in dict.fromkeys(LEADING[word] for word in LEADING if word in given.content):
        events += lead(run, flow, talk, given, sender)
    apart = ("invite", "uninvite", *LEADING)
    rest = {key: value for key, value in given.content.items() if key not in apart}
    if rest:
        payload = {"conversationId": talk.conversation_id, "from": sender, "content": rest}
        payload["via"] = given.who.principal
        events.append(_event("moot.thread.control", payload, given, talk))
    return events


def _check_targets(content: dict[str, Any]) -> None:
    for value in content.values():
        about = value.get("targets") if isinstance(value, dict) else value
        if isinstance(about, list) and len(about) > thread.MOST_TARGETS:
            raise BadRequest(f"A control is about {thread.MOST_TARGETS} names at most.")


def _takes_part(talk: Conversation, name: str) -> bool:
    if talk.roster is not None:
        return name in talk.roster
    return not talk.state.by_invitation or name in talk.state.members


def _sender(given: Control) -> str:
    sender = given.sender or given.who.person
    if sender != given.who.person and not given.who.admin and sender not in given.who.names:
        raise NotYourName(sender, list(given.who.names))
    return sender


def _join(talk: Conversation, given: Control, sender: str) -> NewEvent:
    asked = given.content["invite"]
    name = _participant(asked, "invite")
    closed = talk.roster is not None and name not in map(thread.full_name, talk.roster)
    if closed and not thread.is_person(name):
        raise RosterClosed(
            "The roster of this conversation is closed; fork it with the new member instead.",
            participant=name,
            roster=talk.roster,
        )
    if name not in talk.state.members and len(talk.state.members) >= MOST_PARTICIPANTS:
        raise RosterFull(
            f"At most {MOST_PARTICIPANTS} participants can be invited.",
            maxParticipants=MOST_PARTICIPANTS,
        )
    profile = asked.get("profile", {}) if isinstance(asked, dict) else {}
    payload = {
        "conversationId": talk.conversation_id,
        "participantId": name,
        "profile": profile if isinstance(profile, dict) else {},
        "by": sender,
        "fromTurn": talk.turns + 1,
    }
    return _event("moot.participant.joined", payload, given, talk)


def _leave(talk: Conversation, given: Control, sender: str) -> list[NewEvent]:
    name = _participant(given.content["uninvite"], "uninvite")
    if name != sender and not given.who.admin and not thread.is_person(sender):
        raise Forbidden("An agent takes its own leave, nobody else's.", participant=sender)
    if name not in talk.state.members:
        return []
    payload = {
        "conversationId": talk.conversation_id,
        "participantId": name,
        "by": sender,
        "afterTurn": talk.turns,
    }
    return [_event("moot.participant.left", payload, given, talk)]


def _participant(asked: Any, word: str) -> str:
    """``{"participant_id": "id"}`` or a bare id."""
    name = asked.get("participant_id") if isinstance(asked, dict) else asked
    fits = isinstance(name, str) and 1 <= len(name) <= LONGEST_NAME
    if not isinstance(name, str) or not fits or not thread.is_name(name):
        raise BadRequest(f"{word} needs a participant_id.", field=f"{word}.participant_id")
    return thread.full_name(name)


def _event(type_: str, payload: dict[str, Any], given: Control, talk: Conversation) -> NewEvent:
    return NewEvent(type_, payload, given.node_id, cause=talk.last_seq)
