"""The events of a council as what a person reads: numbered turns, and sentences between them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from moot.cli.councils.members import Room
from moot.cli.runs.agent_lines import tool
from moot.cli.shared import output
from moot.cli.shared.command_hint import way
from moot.cli.shared.quantities import counted

Event = dict[str, Any]

#: what a program that ends says of its last turn
LEFT = "left"
JOINED = "moot.participant.joined"

NATURAL = {
    "consensus": "Nobody has anything to add.",
    "moderator": "The moderator has heard enough.",
}


class Told(NamedTuple):
    """Something to be read: who, what, and what it took."""

    text: str
    head: str = ""
    tail: str = ""
    #: said about the talk, not in it
    quiet: bool = False
    #: a command to be copied, in a line of its own that is never broken
    command: str = ""


def note(text: str) -> Told:
    return Told(output.one_line(text), click.style("   —", dim=True), quiet=True)


def outcome_of(decision: dict[str, Any]) -> tuple[str, str]:
    """``Decision:`` or ``Not adopted:``, and the words, which do not say it again."""
    text = str(decision["text"])
    if decision.get("adopted") is False:
        return "Not adopted:", text.removeprefix("Not adopted: ")
    return "Decision:", text


def words_of(content: Any) -> str:
    return output.lines(content) if isinstance(content, str) else output.brief(content, 2000)


def turn_of(event: Event) -> dict[str, Any]:
    said = event["payload"]
    return _object(said.get("turn") or said.get("initialTurn") or said.get("finalTurn"))


class Teller:
    """Knows what was said before, where a sentence depends on it."""

    def __init__(self, room: Room, thread_id: str) -> None:
        self._room, self._thread_id = room, thread_id
        #: votes that have come in, and whether they have been told
        self._votes: dict[str, dict[str, Any]] = {}
        self._tallied = False
        #: a program that has just said that it leaves
        self._gone: str | None = None
        #: whose profile was changed last, by whom, and nothing was told since
        self._told_changed: tuple[str, str] | None = None

    def tell(self, event: Event) -> list[Told]:
        """Nothing for what says nothing to a person."""
        said = TELLS.get(event["type"])
        told = said(self, event) if said else []
        if told and event["type"] != JOINED:
            self._told_changed = None
        return told

    def _turn(self, event: Event) -> list[Told]:
        turn, room = turn_of(event), self._room
        speaker = str(turn.get("speakerId") or turn.get("from", ""))
        to = f" → {room.called(str(turn['to']))}" if turn.get("to") else ""
        number = str(turn.get("turnIndex", "?"))
        head = f"{number:>2} {room.styled(speaker)}{to}"
        head += of_kind(turn)
        if turn.get("spokenBy"):
            head += f" · said by {room.called(str(turn['spokenBy']))}"
        if turn.get("editedBy"):
            head += f" · edited by {output.one_line(str(turn['editedBy']))}"
        told = [Told(words_of(turn.get("content", "")), head, _cost(turn))]
        if LEFT in _tags(turn):
            self._gone = speaker
            told.append(note(f"let it come back: {self._way_back(speaker)}"))
        return told

    def _way_back(self, speaker: str) -> str:
        name = output.one_line(speaker.removeprefix("host:"))
        return way(f"join {self._thread_id} --as {name} --exec CMD")

    def _opened(self, event: Event) -> list[Told]:
        for member in listed(event["payload"].get("participants")):
            self._room.learn(str(member.get("agentId")), member)
        return self._turn(event)

    def _closed(self, event: Event) -> list[Told]:
        said, final = event["payload"], turn_of(event)
        told = self._turn(event) if final.get("role") != "system" else []
        outcome = said.get("outcome")
        decision = outcome if isinstance(outcome, dict) and outcome.get("text") else None
        minutes = f"Minutes: {way(f'thread export {self._thread_id} -f md')}"
        if decision is None:
            return [*told, Told(f"Closed without a decision. {minutes}")]
        if not self._tallied:
            votes = listed(decision.get("votes"))
            told += self._tally({str(vote.get("by")): vote for vote in votes})
        if str(decision["text"]) not in str(final.get("content")):
            told.append(note(f"decision: {decision['text']}"))
        for each in listed(decision.get("dissent")):
            told.append(note(f"dissent: {self._name(each)}: {each.get('text', '')}"))
        word = "Not adopted" if decision.get("adopted") is False else "Decision recorded"
        return [*told, Told(f"Closed. {word} (turn {said.get('turnIndex')}). {minutes}")]

    def _tally(self, votes: dict[str, dict[str, Any]]) -> list[Told]:
        if not votes:
            return []
        rows, seats = [], [seat.agent_id for seat in self._room.seats]
        for name in sorted(votes, key=[*seats, *votes].index):
            vote = votes[name]
            why = f" ({output.one_line(str(vote['reason']))})" if vote.get("reason") else ""
            word = output.one_line(str(vote.get("vote", "abstain")))
            rows.append(f"{self._room.called(name)} {word}{why}")
        return [note(f"vote: {' · '.join(rows)}")]

    def _name(self, said: dict[str, Any], key: str = "by") -> str:
        return self._room.called(str(said.get(key, "")))

    def _controlled(self, event: Event) -> list[Told]:
        return self._steered(event, "control", event["payload"].get("content"))

    def _renamed(self, event: Event) -> list[Told]:
        return self._steered(event, "thread.renamed", event["payload"].get("title"))

    def _linked(self, event: Event) -> list[Told]:
        said = event["payload"]
        if said.get("closed") is True:
            return []  # a turn of the host tells what came of it
        return self._steered(event, "thread.linked", {"name": said.get("title")})

    def _steered(self, event: Event, kind: str, content: Any) -> list[Told]:
        from moot.cli.councils.control_lines import (
            told_of,  # heavy: read when something was steered
        )

        return [note(text) for text in told_of(self._room, event, kind, content)]

    def _joined(self, event: Event) -> list[Told]:
        said = event["payload"]
        name = str(said.get("participantId", ""))
        self._room.learn(name, said.get("profile"))
        if said.get("changed") is True:
            return self._changed(name, str(said.get("by", "")))
        first = said.get("fromTurn", 0)
        if not isinstance(first, int) or first <= 1:
            return []  # from the beginning
        return [note(f"{self._room.called(name)} joined (sees turns 0 to {first - 1})")]

    def _changed(self, name: str, by: str) -> list[Told]:
        """Of changes one after another the first is told."""
        told, self._told_changed = self._told_changed, (name, by)
        if told == (name, by):
            return []
        doer = "" if name == by else f" by {self._room.called(by)}"
        return [note(f"the profile of {self._room.called(name)} was changed{doer}")]

    def _left(self, event: Event) -> list[Told]:
        said = event["payload"]
        name, by = said.get("participantId"), said.get("by")
        gone, self._gone = self._gone, None
        if name == by:
            return [] if name == gone else [note(f"{self._name(said)} left")]
        return [note(f"{self._name(said, 'participantId')} left, by {self._name(said)}")]

    def _set(self, event: Event) -> list[Told]:
        said = event["payload"]
        for member in listed(said.get("members")):
            self._room.learn(str(member.get("agentId")), member.get("profile"))
        mode = _object(said.get("policy")).get("mode", "round-robin")
        return [note(f"{self._name(said)} set the order: {mode}")] if said.get("by") else []

    def _decided(self, event: Event) -> list[Told]:
        said = event["payload"]
        told = [
            note(f"{self._name(one, 'agentId')} is {one.get('reason')} and passed by")
            for one in listed(said.get("skipped"))
        ]
        if said.get("phase") == "over" and self._votes:
            told += self._tally(self._votes)
            self._votes, self._tallied = {}, True
        return told

    def _answered(self, event: Event) -> list[Told]:
        said = event["payload"]
        outcome, who = said.get("outcome"), str(said.get("agentId", ""))
        if said.get("task") == "vote" and outcome != "superseded":
            self._votes[who] = _object(said.get("answer"))
            self._tallied = False
        elif said.get("task") == "speak" and outcome == "passed":
            return [note(f"{self._room.called(who)} has nothing to add")]
        elif said.get("task") == "speak" and outcome == "superseded":
            return [note(f"{self._room.called(who)} was interrupted")]
        return []

    def _stopped(self, event: Event) -> list[Told]:
        said = event["payload"]
        reason = said.get("reason")
        if reason == "rounds":
            limit = said.get("limit")
            rounds = counted(limit, "round") if isinstance(limit, int) else "The rounds"
            return [note(f"{rounds} done")]
        told = NATURAL.get(str(reason))
        return [note(told)] if told else []  # of a limit a turn of the host tells

    def _continued(self, event: Event) -> list[Told]:
        said = event["payload"]
        rounds = said.get("rounds")
        more = f", {counted(rounds, 'more round')}" if isinstance(rounds, int) else ""
        return [note(f"{self._name(said)} let it go on{more}")]

    def _called_vote(self, event: Event) -> list[Told]:
        said = event["payload"]
        self._votes, self._tallied = {}, False
        return [note(f"{self._name(said)} put to the vote: {said.get('decision', '')}")]

    def _tool_asked(self, event: Event) -> list[Told]:
        said = event["payload"]
        what = f"{said.get('toolName')}({output.brief(said.get('inputs', {}), 200)})"
        return [note(f"{self._name(said, 'agentId')} wants to use {what} · /allow or /deny")]

    def _tool_used(self, event: Event) -> list[Told]:
        said = event["payload"]
        return [note(f"{self._name(said, 'agentId')} used {tool(said)}")]

    def _tool_answered(self, event: Event) -> list[Told]:
        said = event["payload"]
        word = "allowed it" if said.get("allowed") else "did not allow it"
        return [note(f"{self._name(said)} {word}")]

    def _tool_reopened(self, event: Event) -> list[Told]:
        return [note("what was allowed on another host is asked again here · /allow or /deny")]

    def _held(self, event: Event) -> list[Told]:
        said = event["payload"]
        speaker = self._name(_object(said.get("turn")), "speakerId")
        state = "muted" if said.get("reason") == "participant_muted" else "paused"
        number = event["sequence"]
        text = f"{speaker} tried to speak while {state} (1 turn held)"
        return [note(f"{text} · /admit {number} lets it in, /drop {number} does not")]

    def _settled(self, event: Event) -> list[Told]:
        said = event["payload"]
        word = "let a held turn in" if event["type"] == "moot.turn.admitted" else "dropped it"
        return [note(f"{self._name(said)} {word}")]

    def _ended_badly(self, event: Event) -> list[Told]:
        said = event["payload"]
        why = _object(said.get("error")).get("message", said.get("reason"))
        return [note(f"the run {event['type'].removeprefix('run.')}{f': {why}' if why else ''}")]


def _cost(turn: dict[str, Any]) -> str:
    """``[18 s · demo · 212 tok]``"""
    meta = _object(turn.get("meta"))
    if not meta.get("model"):
        return ""
    tokens = sum(meta[key] for key in ("inputTokens", "outputTokens")
                 if isinstance(meta.get(key), int))  # fmt: skip
    took = meta.get("milliseconds")
    span = f"{output.span(took / 1000)} · " if isinstance(took, int) else ""
    cut = " · cut off" if meta.get("truncated") else ""
    return click.style(
        f"[{span}{output.one_line(str(meta['model']))} · {tokens} tok{cut}]", dim=True
    )


def of_kind(turn: dict[str, Any]) -> str:
    """`` · task``, where it is more than words."""
    kind = _object(turn.get("meta")).get("kind")
    return f" · {kind}" if kind in ("task", "result") else ""


def _tags(turn: dict[str, Any]) -> list[Any]:
    tags = _object(turn.get("meta")).get("tags")
    return tags if isinstance(tags, list) else []


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


TELLS: dict[str, Callable[[Teller, Event], list[Told]]] = {
    "conversation.opened": Teller._opened,
    "conversation.exchanged": Teller._turn,
    "conversation.closed": Teller._closed,
    "moot.thread.control": Teller._controlled,
    "moot.thread.renamed": Teller._renamed,
    "moot.thread.linked": Teller._linked,
    JOINED: Teller._joined,
    "moot.participant.left": Teller._left,
    "moot.participation.set": Teller._set,
    "moot.participation.decided": Teller._decided,
    "moot.participation.answered": Teller._answered,
    "moot.participation.stopped": Teller._stopped,
    "moot.participation.continued": Teller._continued,
    "moot.vote.called": Teller._called_vote,
    "agent.toolCalled": Teller._tool_used,
    "moot.tool.asked": Teller._tool_asked,
    "moot.tool.answered": Teller._tool_answered,
    "moot.tool.reopened": Teller._tool_reopened,
    "moot.turn.held": Teller._held,
    "moot.turn.admitted": Teller._settled,
    "moot.turn.dropped": Teller._settled,
    "run.failed": Teller._ended_badly,
    "run.cancelled": Teller._ended_badly,
}
