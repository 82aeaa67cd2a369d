"""What somebody outside is asked to answer, told from the log.

Where the host gives the floor, its decisions say so: whom it calls, whom it waits for. For people,
and where nobody leads, it is the turn itself: an address, a name in the text.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.core.councils.answer_loops import chain_limit, is_chain_held
from moot.core.events import Event
from moot.core.state import tasks, thread_controls
from moot.core.state.conversation import Conversation
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person

TURNS = {"conversation.opened": "initialTurn", "conversation.exchanged": "turn"}
TO_ALL = "a person spoke to all"
NAMED = "addressed by "
#: an address that means whichever person is there: who asks for one need not know them
ANYBODY = "user"
#: turns to others, that answer nothing in particular, after which something is not open any more
MOST_PASSED = 3


class Due(Struct, frozen=True, kw_only=True):
    """Somebody is asked to speak. ``seq`` is where the log says so, ``turn`` what it is about."""

    seq: int
    turn: int
    reason: str
    task: bool = False
    #: who said what it is about, where the log was read that far back
    by: str | None = None
    #: any person may answer it
    anybodys: bool = False


class Reply(Struct, frozen=True):
    """What a turn answers: one place, or all there was; of that only what ``to`` had asked, where
    it is for somebody in particular. Another person answers what was anybody's."""

    place: int | None = None
    to: str | None = None
    anothers: bool = False

    def settles(self, due: Due) -> bool:
        if self.anothers and not due.anybodys:
            return False
        if self.place is not None:
            return due.turn == self.place
        return self.to is None or due.by is None or _same(self.to, due.by)


class Listener:
    """Reads the log, event by event, for one participant of one conversation.

    ``spoken_for``: the host speaks for it, so what the host wakes is nobody else's matter.
    """

    def __init__(self, talk: Conversation, name: str, spoken_for: bool = False) -> None:
        self._talk, self._name, self._spoken_for = talk, name, spoken_for
        member = talk.floor.members.get(name) if talk.floor is not None else None
        guest = talk.state.members.get(name)
        self._led = member is not None
        known = member.profile if member is not None else guest.profile if guest else {}
        #: of the others only those whose names are nobody's nickname
        others: dict[str, dict[str, Any]] = {
            each: {} for each in thread_controls.people_of(talk.state)
        }
        self._profiles = {**others, name: dict(known)}
        #: the newest turn that named it, and the newest of a person to all
        self._named: Due | None = None
        self._to_all: Due | None = None
        #: place of a turn -> who spoke
        self._speakers: dict[int, str] = {}
        #: the first thing that agents asked since their chain was stopped; it waits for a person
        self.withheld: int | None = None

    def asked(self, event: Event) -> Due | None:
        """Whether this event asks for the participant. A decision of the host is about a turn
        that was heard before it."""
        if event.payload.get("conversationId") != self._talk.conversation_id:
            return None
        if event.type == "moot.participation.decided":
            return self._given(event)
        turn = event.payload.get(TURNS.get(event.type, ""))
        if not isinstance(turn, dict) or self._own(turn):
            return None
        found = self._meant(event, turn)
        if found is not None and not self._led and self._stopped(event, turn):
            self.withheld = event.sequence if self.withheld is None else self.withheld
            return None
        return None if self._led else found

    def _stopped(self, event: Event, turn: dict[str, Any]) -> bool:
        agents = turn.get("role") == "agent" and not is_person(self._name)
        return agents and is_chain_held(self._talk.chain, event.sequence)

    def waits(self, due: Due) -> bool:
        """Whether it is for a person to say that agents go on."""
        floor, chain = self._talk.floor, self._talk.chain
        stopped = chain_limit(chain) if floor is None else floor.stopped
        agents = due.by is not None and not is_person(due.by) and not is_person(self._name)
        return agents and stopped is not None

    def answered(self, event: Event) -> Reply | None:
        """What the participant's own turn answers, or for a person that of another one. None for
        any other event."""
        turn = event.payload.get(TURNS.get(event.type, ""))
        ours = event.payload.get("conversationId") == self._talk.conversation_id
        if not ours or not isinstance(turn, dict):
            return None
        anothers = not self._own(turn)
        if anothers and not (is_person(self._name) and is_person(_speaker(turn))):
            return None
        meta = turn.get("meta")
        reply = meta.get("replyTo") if isinstance(meta, dict) else None
        if type(reply) is int:
            return Reply(reply, anothers=anothers)
        to = turn.get("to")
        to = full_name(to) if isinstance(to, str) and to != "all" else None
        return Reply(to=to, anothers=anothers)

    def _own(self, turn: dict[str, Any]) -> bool:
        return _speaker(turn) == self._name

    def _given(self, event: Event) -> Due | None:
        for word in ("called", "wakes"):
            rows = event.payload.get(word)
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, dict) and row.get("agentId") == self._name and self._is(row):
                    return self._due(event, row)
        return None

    def _is(self, row: dict[str, Any]) -> bool:
        """A wake, unlike a call, may be for a vote or for whom the host speaks."""
        return "wakeId" not in row or (row.get("task") == "speak" and not self._spoken_for)

    def _due(self, event: Event, row: dict[str, Any]) -> Due:
        reason, place = str(row.get("reason", "")), row.get("replyTo")
        about = self._named if reason.startswith(NAMED) else None
        about = self._to_all if reason == TO_ALL else about
        if about is not None and type(place) is not int:
            return replace(about, seq=event.sequence, reason=reason)
        if type(place) is not int:
            cause = str(event.causation_id).rpartition(".")[2]
            place = int(cause) if cause.isascii() and cause.isdigit() else event.sequence
        task, by = row.get("result") is True, self._speakers.get(place)
        return Due(seq=event.sequence, turn=place, reason=reason, task=task, by=by)

    def _meant(self, event: Event, turn: dict[str, Any]) -> Due | None:
        place, to = event.sequence, turn.get("to")
        why, named = f"{NAMED}{turn.get('from')}", self._profiles
        task, by = tasks.kind_of(turn) == "task", _speaker(turn)
        self._speakers[place] = by
        if isinstance(to, str) and to != "all":
            anybodys = full_name(to) == ANYBODY and is_person(self._name)
            if full_name(to) != self._name and not anybodys:
                return None
            self._named = Due(
                seq=place, turn=place, reason=why, task=task, by=by, anybodys=anybodys
            )
            return self._named
        if self._name in mentions.mentioned(turn.get("content"), named).names:
            self._named = Due(seq=place, turn=place, reason=why, by=by)
            return self._named
        if turn.get("role") == "user" and "@" not in str(turn.get("content")):
            self._to_all = Due(seq=place, turn=place, reason=TO_ALL, by=by)
            return None if is_person(self._name) or self._talk.floor is not None else self._to_all
        return None


def _speaker(turn: dict[str, Any]) -> str:
    return full_name(str(turn.get("speakerId") or turn.get("from", "")))


def _same(to: str, by: str) -> bool:
    return to == by or (to == ANYBODY and is_person(by))


class Owed:
    """What is asked of the participant and not yet answered, oldest first. Who speaks to others
    again and again has passed it on: else the same would come back for ever. A task is open until
    its result."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.due: list[Due] = []
        #: where something was asked -> how often others were spoken to since
        self._passed: dict[int, int] = {}

    def hear(self, event: Event) -> None:
        reply = self._listener.answered(event)
        if reply is not None:
            self.due = [each for each in self.due if self._stays(each, reply)]
        if (reply is None or reply.anothers) and (asked := self._listener.asked(event)):
            self.due.append(asked)

    def offered(self) -> Due | None:
        """The first that may be answered: while a chain of agents is stopped, none of theirs."""
        return next((each for each in self.due if not self._listener.waits(each)), None)

    def _stays(self, due: Due, reply: Reply) -> bool:
        if reply.settles(due):
            return False
        if reply.anothers or reply.place is not None or due.task:
            return True
        self._passed[due.seq] = self._passed.get(due.seq, 0) + 1
        return self._passed[due.seq] < MOST_PASSED
