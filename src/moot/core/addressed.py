"""What somebody outside is asked to answer, told from the log.

Where the host gives the floor, its decisions say so: whom it calls, whom it waits for. For people,
and where nobody leads, it is the turn itself: an address, a name in the text.
"""

from typing import Any

from msgspec import Struct

from moot.core import chains, mentions, tasks
from moot.core.events import Event
from moot.core.thread import full_name, is_person
from moot.core.waiting import Conversation

TURNS = {"conversation.opened": "initialTurn", "conversation.exchanged": "turn"}
TO_ALL = "a person spoke to all"
NAMED = "addressed by "


class Due(Struct, frozen=True, kw_only=True):
    """Somebody is asked to speak. ``seq`` is where the log says so, ``turn`` what it is about."""

    seq: int
    turn: int
    reason: str
    task: bool = False


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
        self._profiles = {name: dict(known)}
        #: the newest turn that named it, and the newest of a person to all
        self._named: Due | None = None
        self._to_all: Due | None = None
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
        return agents and chains.holds(self._talk.chain, event.sequence)

    def answered(self, event: Event) -> int | None:
        """Of the participant's own turn: the place of the turn it replies to, -1 where it says
        none and so answers all before it. None for any other event."""
        turn = event.payload.get(TURNS.get(event.type, ""))
        ours = event.payload.get("conversationId") == self._talk.conversation_id
        if not ours or not isinstance(turn, dict) or not self._own(turn):
            return None
        meta = turn.get("meta")
        reply = meta.get("replyTo") if isinstance(meta, dict) else None
        return reply if type(reply) is int else -1

    def _own(self, turn: dict[str, Any]) -> bool:
        return full_name(str(turn.get("speakerId") or turn.get("from", ""))) == self._name

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
            return Due(seq=event.sequence, turn=about.turn, reason=reason, task=about.task)
        if type(place) is not int:
            cause = str(event.causation_id).rpartition(".")[2]
            place = int(cause) if cause.isascii() and cause.isdigit() else event.sequence
        task = row.get("result") is True
        return Due(seq=event.sequence, turn=place, reason=reason, task=task)

    def _meant(self, event: Event, turn: dict[str, Any]) -> Due | None:
        place, to = event.sequence, turn.get("to")
        why, named = f"{NAMED}{turn.get('from')}", self._profiles
        task = tasks.kind_of(turn) == "task"
        if isinstance(to, str) and to != "all":
            if full_name(to) != self._name:
                return None
            self._named = Due(seq=place, turn=place, reason=why, task=task)
            return self._named
        if mentions.mentioned(turn.get("content"), named).names:
            self._named = Due(seq=place, turn=place, reason=why)
            return self._named
        if turn.get("role") == "user" and "@" not in str(turn.get("content")):
            self._to_all = Due(seq=place, turn=place, reason=TO_ALL)
            return None if is_person(self._name) or self._talk.floor is not None else self._to_all
        return None


class Owed:
    """What is asked of the participant and not yet answered, oldest first."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.due: list[Due] = []

    def hear(self, event: Event) -> None:
        reply = self._listener.answered(event)
        if reply is not None:
            self.due = [] if reply < 0 else [each for each in self.due if each.turn != reply]
        elif (asked := self._listener.asked(event)) is not None:
            self.due.append(asked)
