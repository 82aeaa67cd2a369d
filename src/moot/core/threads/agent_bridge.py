"""A conversation as Agent Bridge tells it: one more view of the same log.

Participants go by short handles, times differ from one event to the next, and what the host
decides is told by the host itself, under its own name.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from moot.core.conversations.participants import is_reserved
from moot.core.events import Event, event_id, iso, micros
from moot.core.state.conversation import Conversation
from moot.core.state.floor import FAILED
from moot.core.text.names import full_name, is_person

#: who the host is when it says or decides something
COORDINATOR = "moot"
#: whoever does not show whom he means, means everybody
ALL = "all"
TAGS = ["coordinator"]
#: who else had a hand in a turn: as it is told here, and as the log has it
BY = {"edited_by": "editedBy", "spoken_by": "spokenBy"}
#: what the host says of somebody who had the floor and failed
ERROR = "error"
#: what only the host tells of a turn, and how it marks what it says
OWN = ("edited_by", "spoken_by", "outcome", "via")
MARKS = (*TAGS, ERROR, "closed")

Told = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def handle(name: Any) -> str:
    """Agents of this host go by their short name, the host by its own. A short name that would be
    a person's or the host's is none: logs from elsewhere may hold such agents."""
    text = str(name)
    short = text.removeprefix("host:")
    if text == "system":
        return COORDINATOR
    return text if not short or is_person(short) or is_reserved(short) else short


def identified(name: str) -> str:
    """The id of who goes by such a handle."""
    return "system" if name == COORDINATOR else full_name(name)


def instant(text: str) -> int:
    """Microseconds since the epoch of a time as people and programs write it; without a zone it is
    UTC. Raises ValueError."""
    found = datetime.fromisoformat(text)
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


class Teller:
    """Tells the events of a run's log, one after another, that belong to one conversation.

    The events of one decision have one time in the log. Here each has its own, later by as many
    microseconds as there are events of the decision before it; the host leaves room for that. So
    whoever tells must begin with the first event of a decision.
    """

    def __init__(self, talk: Conversation, thread: str, title: str, founder: str) -> None:
        self._talk, self._thread = talk, thread
        self._title, self._founder = title, founder
        self._time, self._place, self._micros = "", 0, 0
        #: the host is about to say that somebody has failed
        self._failed = False

    def tell(self, event: Event) -> list[Told]:
        """What the event says in a thread; most say nothing there."""
        if event.timestamp == self._time:
            self._place += 1
        else:
            self._time, self._place, self._micros = event.timestamp, 0, micros(event.timestamp)
            self._failed = False
        says = SAYS.get(event.type)
        if says is None or event.payload.get("conversationId") != self._talk.conversation_id:
            return []
        return says(self, event, event.payload)

    def _event(self, event: Event, type_: str, who: Any, content: Any, **more: Any) -> Told:
        return {
            "id": event.event_id,
            "ts": iso(self._micros + self._place),
            "thread": self._thread,
            "seq": event.sequence,
            "type": type_,
            "from": handle(who),
            "to": ALL,
            "content": content,
            "meta": {"tags": []},
            **more,
        }

    def _host(self, event: Event, content: Any) -> list[Told]:
        """Whatever the host decides is there to be seen, under its own name."""
        return [self._event(event, "control", COORDINATOR, content, meta={"tags": TAGS})]

    def _opened(self, event: Event, said: Told) -> list[Told]:
        """The question of a council is a message as well. It has the later of two times, and the
        event before this one, whose time is free, is no thread's."""
        created = self._event(event, "thread.created", self._founder, self._title)
        turn = said.get("initialTurn")
        if not isinstance(turn, dict) or turn.get("role") == "system":
            return [created]
        created["id"] = f"{event.event_id}.0"
        created["ts"] = iso(self._micros + max(0, self._place - 1))
        return [created, self._turn(event, turn)]

    def _exchanged(self, event: Event, said: Told) -> list[Told]:
        turn = said.get("turn")
        return [self._turn(event, turn)] if isinstance(turn, dict) else []

    def _closed(self, event: Event, said: Told) -> list[Told]:
        turn = said.get("finalTurn")
        if not isinstance(turn, dict):
            return []
        told = self._turn(event, turn)
        told["meta"] = {
            **told["meta"],
            "tags": [*told["meta"]["tags"], "closed"],
            "outcome": said.get("outcome"),
        }
        return [told]

    def _ended(self, event: Event, said: Told) -> list[Told]:
        """Tells nothing by itself: of a failure the host speaks next, in the same decision."""
        self._failed = str(said.get("outcome")) in FAILED
        return []

    def _tags(self, turn: Told, given: Any) -> list[Any]:
        tags = list(given) if isinstance(given, list) else []
        if turn.get("role") != "system":
            return [tag for tag in tags if tag not in MARKS]
        failed, self._failed = [ERROR] if self._failed else [], False
        return [*TAGS, *failed, *tags]

    def _turn(self, event: Event, turn: Told) -> Told:
        given = turn.get("meta")
        meta = dict(given) if isinstance(given, dict) else {}
        kind = meta.pop("kind", "message")
        tags = self._tags(turn, meta.pop("tags", []))
        reply = meta.pop("replyTo", None)
        meta = {key: value for key, value in meta.items() if key not in OWN}
        if isinstance(reply, int | str):  # a place in this log, whichever run says it again
            meta["reply_to"] = event_id(event.run_id, reply) if type(reply) is int else reply
        if turn.get("role") == "agent" and turn.get("via") == COORDINATOR:
            meta["via"] = COORDINATOR  # the host has asked, and passes on what was answered
        meta |= {word: handle(turn[key]) for word, key in BY.items() if key in turn}
        return self._event(
            event,
            kind if kind in ("task", "result") else "message",
            turn.get("speakerId") or turn.get("from"),
            turn.get("content"),
            turn=turn.get("turnIndex"),
            to=handle(turn.get("to", ALL)),
            meta={**meta, "tags": tags},
        )

    def _controlled(self, event: Event, said: Told) -> list[Told]:
        if said.get("from") == "system":
            return self._host(event, said.get("content"))
        return [self._event(event, "control", said.get("from"), said.get("content"))]

    def _by(self, event: Event, said: Told, content: Told) -> list[Told]:
        return [self._event(event, "control", said.get("by"), content)]

    def _joined(self, event: Event, said: Told) -> list[Told]:
        about = {
            "participant_id": handle(said.get("participantId")),
            "profile": said.get("profile", {}),
        }
        changed = {"changed": True} if said.get("changed") is True else {}
        return self._by(event, said, {"invite": {**about, **changed}})

    def _left(self, event: Event, said: Told) -> list[Told]:
        who = {"participant_id": handle(said.get("participantId"))}
        return self._by(event, said, {"uninvite": who})

    def _renamed(self, event: Event, said: Told) -> list[Told]:
        return [self._event(event, "thread.renamed", said.get("by"), said.get("title"))]

    def _linked(self, event: Event, said: Told) -> list[Told]:
        link = {"thread": said.get("threadId"), "name": said.get("title")}
        if said.get("back") is True:
            told = {**link, "back": True}
            return [self._event(event, "thread.linked", COORDINATOR, told, meta={"tags": TAGS})]
        if said.get("closed") is True:
            told = {**link, "closed": True, "summary": said.get("summary")}
            return [self._event(event, "thread.linked", COORDINATOR, told, meta={"tags": TAGS})]
        return [self._event(event, "thread.linked", said.get("by"), link)]

    def _present(self, event: Event, said: Told) -> list[Told]:
        content = {"state": said.get("state")}
        return [self._event(event, "presence", said.get("from"), content)]

    def _led(self, event: Event, said: Told) -> list[Told]:
        if "by" not in said:
            return []
        return self._by(event, said, {"participation": said.get("policy")})

    def _decided(self, event: Event, said: Told) -> list[Told]:
        content: Told = {}
        for word in ("wakes", "skipped", "called"):
            named = said.get(word)
            found = [
                {"participant_id": handle(one.get("agentId")), "reason": one.get("reason")}
                for one in (named if isinstance(named, list) else [])
                if isinstance(one, dict)
            ]
            content |= {word: found} if found else {}
        return self._host(event, content) if content else []

    def _stopped(self, event: Event, said: Told) -> list[Told]:
        return self._host(event, {"stopped": said.get("reason")})

    def _continued(self, event: Event, said: Told) -> list[Told]:
        rounds = said.get("rounds")
        return self._by(event, said, {"continue": {"rounds": rounds} if rounds else True})

    def _vote(self, event: Event, said: Told) -> list[Told]:
        return self._by(event, said, {"vote": {"decision": said.get("decision")}})

    def _held(self, event: Event, said: Told) -> list[Told]:
        turn = said.get("turn")
        who = handle(turn.get("speakerId")) if isinstance(turn, dict) else ""
        held = {"held": said.get("held"), "participant_id": who, "reason": said.get("reason")}
        return self._host(event, {"held": held})

    def _settled(self, event: Event, said: Told) -> list[Told]:
        word = "admit" if event.type == "moot.turn.admitted" else "drop"
        return self._by(event, said, {word: said.get("held")})

    def _tool_asked(self, event: Event, said: Told) -> list[Told]:
        asked = {"ask": said.get("askId"), "tool": said.get("toolName")}
        return [self._event(event, "control", said.get("agentId"), {"asks": asked})]

    def _tool_answered(self, event: Event, said: Told) -> list[Told]:
        word = "allow" if said.get("allowed") else "deny"
        return self._by(event, said, {word: said.get("askId")})


SAYS: dict[str, Callable[[Teller, Event, Told], list[Told]]] = {
    "conversation.opened": Teller._opened,
    "conversation.exchanged": Teller._exchanged,
    "conversation.closed": Teller._closed,
    "moot.thread.control": Teller._controlled,
    "moot.thread.renamed": Teller._renamed,
    "moot.thread.linked": Teller._linked,
    "moot.presence.changed": Teller._present,
    "moot.participant.joined": Teller._joined,
    "moot.participant.left": Teller._left,
    "moot.participation.set": Teller._led,
    "moot.participation.decided": Teller._decided,
    "moot.participation.stopped": Teller._stopped,
    "moot.participation.answered": Teller._ended,
    "moot.participation.continued": Teller._continued,
    "moot.vote.called": Teller._vote,
    "moot.turn.held": Teller._held,
    "moot.turn.admitted": Teller._settled,
    "moot.turn.dropped": Teller._settled,
    "moot.tool.asked": Teller._tool_asked,
    "moot.tool.answered": Teller._tool_answered,
}
