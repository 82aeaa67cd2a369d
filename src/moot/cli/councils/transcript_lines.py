"""Render the events of a council: numbered turns, and sentences between them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from moot.cli.councils.members import CouncilRoster
from moot.cli.runs.agent_lines import tool_call_text
from moot.cli.shared import output
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.quantities import format_count
from moot.core.payloads.agents import ToolCalled
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
    ParticipantJoined,
    ParticipantLeft,
    ThreadControlled,
    ThreadLinked,
    ThreadRenamed,
)
from moot.core.payloads.councils import (
    CouncilContinued,
    CouncilStopped,
    InvitationAnswered,
    MembersInvited,
    PolicySet,
    ToolAnswered,
    ToolAsked,
    ToolReopened,
    TurnAdmitted,
    TurnDropped,
    TurnHeld,
    VoteCalled,
)
from moot.core.payloads.runs import RunCancelled, RunFailed

Event = dict[str, Any]

#: the tag on the last turn of a program that leaves
LEFT_TAG = "left"
JOINED = ParticipantJoined.event_type

STOP_SENTENCES = {
    "consensus": "Nobody has anything to add.",
    "moderator": "The moderator has heard enough.",
}


class TranscriptLine(NamedTuple):
    """One entry of a transcript: speaker, text and cost."""

    text: str
    head: str = ""
    tail: str = ""
    #: a note about the conversation, not a turn
    quiet: bool = False
    #: a command to copy, on its own line that is never broken
    command: str = ""


def note_line(text: str) -> TranscriptLine:
    return TranscriptLine(output.one_line(text), click.style("   —", dim=True), quiet=True)


def label_decision(decision: dict[str, Any]) -> tuple[str, str]:
    """Return ``Decision:`` or ``Not adopted:``, and the text without that label."""
    text = str(decision["text"])
    if decision.get("adopted") is False:
        return "Not adopted:", text.removeprefix("Not adopted: ")
    return "Decision:", text


def content_text(content: Any) -> str:
    return output.safe_lines(content) if isinstance(content, str) else output.shorten(content, 2000)


def turn_from_event(event: Event) -> dict[str, Any]:
    payload = event["payload"]
    return _as_object(payload.get("turn") or payload.get("initialTurn") or payload.get("finalTurn"))


class TranscriptRenderer:
    """Renders events in order. Some sentences depend on earlier events."""

    def __init__(self, roster: CouncilRoster, thread_id: str) -> None:
        self._roster, self._thread_id = roster, thread_id
        #: the votes so far, and whether they have been printed
        self._votes: dict[str, dict[str, Any]] = {}
        self._tallied = False
        #: a program that left with its last turn
        self._leaving: str | None = None
        #: the last profile change (participant, author), if it is the newest line
        self._last_profile_change: tuple[str, str] | None = None

    def tell(self, event: Event) -> list[TranscriptLine]:
        """Return nothing for an event that has no meaning for a person."""
        render = RENDERERS.get(event["type"])
        lines = render(self, event) if render else []
        if lines and event["type"] != JOINED:
            self._last_profile_change = None
        return lines

    def _turn(self, event: Event) -> list[TranscriptLine]:
        turn, roster = turn_from_event(event), self._roster
        speaker = str(turn.get("speakerId") or turn.get("from", ""))
        to = f" → {roster.called(str(turn['to']))}" if turn.get("to") else ""
        number = str(turn.get("turnIndex", "?"))
        head = f"{number:>2} {roster.styled(speaker)}{to}"
        head += kind_suffix(turn)
        if turn.get("spokenBy"):
            head += f" · said by {roster.called(str(turn['spokenBy']))}"
        if turn.get("editedBy"):
            head += f" · edited by {output.one_line(str(turn['editedBy']))}"
        lines = [TranscriptLine(content_text(turn.get("content", "")), head, _cost_suffix(turn))]
        if LEFT_TAG in _tags(turn):
            self._leaving = speaker
            lines.append(note_line(f"let it come back: {self._rejoin_hint(speaker)}"))
        return lines

    def _rejoin_hint(self, speaker: str) -> str:
        name = output.one_line(speaker.removeprefix("host:"))
        return command_hint(f"join {self._thread_id} --as {name} --exec CMD")

    def _opened(self, event: Event) -> list[TranscriptLine]:
        for member in objects_in(event["payload"].get("participants")):
            self._roster.learn(str(member.get("agentId")), member)
        return self._turn(event)

    def _closed(self, event: Event) -> list[TranscriptLine]:
        payload, final = event["payload"], turn_from_event(event)
        lines = self._turn(event) if final.get("role") != "system" else []
        outcome = payload.get("outcome")
        decision = outcome if isinstance(outcome, dict) and outcome.get("text") else None
        minutes = f"Minutes: {command_hint(f'thread export {self._thread_id} -f md')}"
        if decision is None:
            return [*lines, TranscriptLine(f"Closed without a decision. {minutes}")]
        if not self._tallied:
            votes = objects_in(decision.get("votes"))
            lines += self._tally({str(vote.get("by")): vote for vote in votes})
        if str(decision["text"]) not in str(final.get("content")):
            lines.append(note_line(f"decision: {decision['text']}"))
        for each in objects_in(decision.get("dissent")):
            lines.append(note_line(f"dissent: {self._name(each)}: {each.get('text', '')}"))
        word = "Not adopted" if decision.get("adopted") is False else "Decision recorded"
        return [
            *lines,
            TranscriptLine(f"Closed. {word} (turn {payload.get('turnIndex')}). {minutes}"),
        ]

    def _tally(self, votes: dict[str, dict[str, Any]]) -> list[TranscriptLine]:
        if not votes:
            return []
        rows, member_ids = [], [member.agent_id for member in self._roster.members]
        for name in sorted(votes, key=[*member_ids, *votes].index):
            vote = votes[name]
            why = f" ({output.one_line(str(vote['reason']))})" if vote.get("reason") else ""
            word = output.one_line(str(vote.get("vote", "abstain")))
            rows.append(f"{self._roster.called(name)} {word}{why}")
        return [note_line(f"vote: {' · '.join(rows)}")]

    def _name(self, payload: dict[str, Any], key: str = "by") -> str:
        return self._roster.called(str(payload.get(key, "")))

    def _controlled(self, event: Event) -> list[TranscriptLine]:
        return self._steered(event, "control", event["payload"].get("content"))

    def _renamed(self, event: Event) -> list[TranscriptLine]:
        return self._steered(event, "thread.renamed", event["payload"].get("title"))

    def _linked(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        if payload.get("closed") is True:
            return []  # a turn of the host reports the outcome
        return self._steered(event, "thread.linked", {"name": payload.get("title")})

    def _steered(self, event: Event, kind: str, content: Any) -> list[TranscriptLine]:
        from moot.cli.councils.control_lines import control_sentences

        return [note_line(text) for text in control_sentences(self._roster, event, kind, content)]

    def _joined(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        name = str(payload.get("participantId", ""))
        self._roster.learn(name, payload.get("profile"))
        if payload.get("changed") is True:
            return self._changed(name, str(payload.get("by", "")))
        first = payload.get("fromTurn", 0)
        if not isinstance(first, int) or first <= 1:
            return []  # it was there from the start
        return [note_line(f"{self._roster.called(name)} joined (sees turns 0 to {first - 1})")]

    def _changed(self, name: str, by: str) -> list[TranscriptLine]:
        """Report only the first of several changes in a row."""
        last, self._last_profile_change = self._last_profile_change, (name, by)
        if last == (name, by):
            return []
        suffix = "" if name == by else f" by {self._roster.called(by)}"
        return [note_line(f"the profile of {self._roster.called(name)} was changed{suffix}")]

    def _left(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        name, by = payload.get("participantId"), payload.get("by")
        leaving, self._leaving = self._leaving, None
        if name == by:
            return [] if name == leaving else [note_line(f"{self._name(payload)} left")]
        return [note_line(f"{self._name(payload, 'participantId')} left, by {self._name(payload)}")]

    def _set(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        for member in objects_in(payload.get("members")):
            self._roster.learn(str(member.get("agentId")), member.get("profile"))
        mode = _as_object(payload.get("policy")).get("mode", "round-robin")
        return (
            [note_line(f"{self._name(payload)} set the order: {mode}")] if payload.get("by") else []
        )

    def _decided(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        lines = [
            note_line(f"{self._name(one, 'agentId')} is {one.get('reason')} and passed by")
            for one in objects_in(payload.get("skipped"))
        ]
        if payload.get("phase") == "over" and self._votes:
            lines += self._tally(self._votes)
            self._votes, self._tallied = {}, True
        return lines

    def _answered(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        outcome, agent_id = payload.get("outcome"), str(payload.get("agentId", ""))
        if payload.get("task") == "vote" and outcome != "superseded":
            self._votes[agent_id] = _as_object(payload.get("answer"))
            self._tallied = False
        elif payload.get("task") == "speak" and outcome == "passed":
            return [note_line(f"{self._roster.called(agent_id)} has nothing to add")]
        elif payload.get("task") == "speak" and outcome == "superseded":
            return [note_line(f"{self._roster.called(agent_id)} was interrupted")]
        return []

    def _stopped(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        reason = payload.get("reason")
        if reason == "rounds":
            limit = payload.get("limit")
            rounds = format_count(limit, "round") if isinstance(limit, int) else "The rounds"
            return [note_line(f"{rounds} done")]
        sentence = STOP_SENTENCES.get(str(reason))
        return [note_line(sentence)] if sentence else []  # a turn of the host reports a limit

    def _continued(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        rounds = payload.get("rounds")
        more = f", {format_count(rounds, 'more round')}" if isinstance(rounds, int) else ""
        return [note_line(f"{self._name(payload)} let it go on{more}")]

    def _called_vote(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        self._votes, self._tallied = {}, False
        return [note_line(f"{self._name(payload)} put to the vote: {payload.get('decision', '')}")]

    def _tool_asked(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        call = f"{payload.get('toolName')}({output.shorten(payload.get('inputs', {}), 200)})"
        return [
            note_line(f"{self._name(payload, 'agentId')} wants to use {call} · /allow or /deny")
        ]

    def _tool_used(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        return [note_line(f"{self._name(payload, 'agentId')} used {tool_call_text(payload)}")]

    def _tool_answered(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        word = "allowed it" if payload.get("allowed") else "did not allow it"
        return [note_line(f"{self._name(payload)} {word}")]

    def _tool_reopened(self, event: Event) -> list[TranscriptLine]:
        return [note_line("what was allowed on another host is asked again here · /allow or /deny")]

    def _held(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        speaker = self._name(_as_object(payload.get("turn")), "speakerId")
        state = "muted" if payload.get("reason") == "participant_muted" else "paused"
        number = event["sequence"]
        text = f"{speaker} tried to speak while {state} (1 turn held)"
        return [note_line(f"{text} · /admit {number} lets it in, /drop {number} does not")]

    def _settled(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        word = "let a held turn in" if event["type"] == TurnAdmitted.event_type else "dropped it"
        return [note_line(f"{self._name(payload)} {word}")]

    def _ended_badly(self, event: Event) -> list[TranscriptLine]:
        payload = event["payload"]
        why = _as_object(payload.get("error")).get("message", payload.get("reason"))
        return [
            note_line(f"the run {event['type'].removeprefix('run.')}{f': {why}' if why else ''}")
        ]


def _cost_suffix(turn: dict[str, Any]) -> str:
    """Return ``[18 s · demo · 212 tok]``."""
    meta = _as_object(turn.get("meta"))
    if not meta.get("model"):
        return ""
    tokens = sum(meta[key] for key in ("inputTokens", "outputTokens")
                 if isinstance(meta.get(key), int))  # fmt: skip
    took = meta.get("milliseconds")
    span = f"{output.format_span(took / 1000)} · " if isinstance(took, int) else ""
    cut = " · cut off" if meta.get("truncated") else ""
    return click.style(
        f"[{span}{output.one_line(str(meta['model']))} · {tokens} tok{cut}]", dim=True
    )


def kind_suffix(turn: dict[str, Any]) -> str:
    """Return `` · task`` for a turn that is more than words."""
    kind = _as_object(turn.get("meta")).get("kind")
    return f" · {kind}" if kind in ("task", "result") else ""


def _tags(turn: dict[str, Any]) -> list[Any]:
    tags = _as_object(turn.get("meta")).get("tags")
    return tags if isinstance(tags, list) else []


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


RENDERERS: dict[str, Callable[[TranscriptRenderer, Event], list[TranscriptLine]]] = {
    ConversationOpened.event_type: TranscriptRenderer._opened,
    ConversationExchanged.event_type: TranscriptRenderer._turn,
    ConversationEnded.event_type: TranscriptRenderer._closed,
    ThreadControlled.event_type: TranscriptRenderer._controlled,
    ThreadRenamed.event_type: TranscriptRenderer._renamed,
    ThreadLinked.event_type: TranscriptRenderer._linked,
    JOINED: TranscriptRenderer._joined,
    ParticipantLeft.event_type: TranscriptRenderer._left,
    PolicySet.event_type: TranscriptRenderer._set,
    MembersInvited.event_type: TranscriptRenderer._decided,
    InvitationAnswered.event_type: TranscriptRenderer._answered,
    CouncilStopped.event_type: TranscriptRenderer._stopped,
    CouncilContinued.event_type: TranscriptRenderer._continued,
    VoteCalled.event_type: TranscriptRenderer._called_vote,
    ToolCalled.event_type: TranscriptRenderer._tool_used,
    ToolAsked.event_type: TranscriptRenderer._tool_asked,
    ToolAnswered.event_type: TranscriptRenderer._tool_answered,
    ToolReopened.event_type: TranscriptRenderer._tool_reopened,
    TurnHeld.event_type: TranscriptRenderer._held,
    TurnAdmitted.event_type: TranscriptRenderer._settled,
    TurnDropped.event_type: TranscriptRenderer._settled,
    RunFailed.event_type: TranscriptRenderer._ended_badly,
    RunCancelled.event_type: TranscriptRenderer._ended_badly,
}
