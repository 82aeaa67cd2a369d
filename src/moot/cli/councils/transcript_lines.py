"""Render the events of a council: numbered turns, and sentences between them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from moot.cli.councils.members import CouncilRoster
from moot.cli.shared import output
from moot.cli.shared.command_hint import command_hint
from moot.core.events import Event
from moot.core.payloads import agents, conversations, councils, runs
from moot.core.sentences.controls import control_sentences
from moot.core.sentences.conversations import passed_sentences
from moot.core.sentences.table import text_of
from moot.core.sentences.turns import RecordedTurn, spoken_turn

#: the tag on the last turn of a program that leaves
LEFT_TAG = "left"
#: reasons of a stop that no turn of the host reports
UNREPORTED_STOPS = ("rounds", "consensus", "moderator")
PAUSED = "paused the agents"


class TranscriptLine(NamedTuple):
    """One entry of a transcript: speaker, text and cost."""

    text: str
    head: str = ""
    tail: str = ""
    #: a note about the conversation, not a turn
    quiet: bool = False
    #: a command to copy, on its own line that is never broken
    command: str = ""


TranscriptLines = list[TranscriptLine]


def note_line(text: str) -> TranscriptLine:
    return TranscriptLine(output.one_line(text), click.style("   —", dim=True), quiet=True)


def label_decision(text: str, adopted: bool) -> tuple[str, str]:
    """Return ``Decision:`` or ``Not adopted:``, and the text without that label."""
    return ("Decision:", text) if adopted else ("Not adopted:", text.removeprefix("Not adopted: "))


def content_text(content: Any) -> str:
    return output.safe_lines(content) if isinstance(content, str) else output.shorten(content, 2000)


class TranscriptRenderer:
    """Renders events in order. Some sentences depend on earlier events."""

    def __init__(self, roster: CouncilRoster, thread_id: str) -> None:
        self._roster, self._thread_id = roster, thread_id
        #: the votes so far, and whether they have been printed
        self._votes: dict[str, Mapping[str, Any]] = {}
        self._tallied = False
        #: a program that left with its last turn
        self._leaving: str | None = None
        #: the last profile change (participant, author), if it is the newest line
        self._last_profile_change: tuple[str, str] | None = None

    def tell(self, event: Event) -> TranscriptLines:
        """Return nothing for an event that has no meaning for a person."""
        render = RENDERERS.get(type(event.payload))
        lines = render(self, event.payload, event) if render else []
        if lines and not isinstance(event.payload, conversations.ParticipantJoined):
            self._last_profile_change = None
        return lines

    def _note(self, payload: Any, event: Event) -> TranscriptLines:
        match payload:
            case conversations.ThreadLinked(closed=True):
                return []  # a turn of the host reports it
            case councils.CouncilStopped(reason=reason) if reason not in UNREPORTED_STOPS:
                return []
            case councils.VoteCalled():
                self._votes, self._tallied = {}, False
            case _:
                pass
        text = text_of(payload, self._roster.called)
        hint = HINTS.get(type(payload), "").format(event.sequence)
        return [note_line(f"{text}{hint}")] if text else []

    def _turn(self, payload: Any, event: Event) -> TranscriptLines:
        turn = spoken_turn(payload)
        return self._turn_lines(turn) if turn else []

    def _turn_lines(self, turn: RecordedTurn) -> TranscriptLines:
        roster = self._roster
        to = f" → {roster.called(turn.to)}" if turn.to else ""
        number = "?" if turn.index is None else str(turn.index)
        head = f"{number:>2} {roster.styled(turn.speaker)}{to}"
        head += f" · {turn.kind}" if turn.kind else ""
        head += f" · said by {roster.called(turn.spoken_by)}" if turn.spoken_by else ""
        head += f" · edited by {output.one_line(turn.edited_by)}" if turn.edited_by else ""
        lines = [TranscriptLine(content_text(turn.content), head, _cost_suffix(turn.meta))]
        if LEFT_TAG in turn.tags:
            self._leaving = turn.speaker
            name = output.one_line(turn.speaker.removeprefix("host:"))
            rejoin = command_hint(f"join {self._thread_id} --as {name} --exec CMD")
            lines.append(note_line(f"let it come back: {rejoin}"))
        return lines

    def _opened(self, payload: conversations.ConversationOpened, event: Event) -> TranscriptLines:
        for member in payload.participants or ():
            self._roster.learn(str(member.get("agentId")), member)
        return self._turn(payload, event)

    def _closed(self, payload: conversations.ConversationEnded, event: Event) -> TranscriptLines:
        final = payload.final_turn
        lines = self._turn(payload, event) if final.role != "system" else []
        outcome = payload.outcome
        decision = outcome if isinstance(outcome, dict) and outcome.get("text") else None
        minutes = f"Minutes: {command_hint(f'thread export {self._thread_id} -f md')}"
        if decision is None:
            return [*lines, TranscriptLine(f"Closed without a decision. {minutes}")]
        if not self._tallied:
            votes = {str(vote.get("by")): vote for vote in _objects_in(decision.get("votes"))}
            lines += self._tally(votes)
        if str(decision["text"]) not in str(final.body):
            lines.append(note_line(f"decision: {decision['text']}"))
        for each in _objects_in(decision.get("dissent")):
            author = self._roster.called(str(each.get("by", "")))
            lines.append(note_line(f"dissent: {author}: {each.get('text', '')}"))
        word = "Not adopted" if decision.get("adopted") is False else "Decision recorded"
        return [*lines, TranscriptLine(f"Closed. {word} (turn {payload.turn_index}). {minutes}")]

    def _tally(self, votes: Mapping[str, Mapping[str, Any]]) -> TranscriptLines:
        if not votes:
            return []
        rows, member_ids = [], [member.agent_id for member in self._roster.members]
        for name in sorted(votes, key=[*member_ids, *votes].index):
            vote = votes[name]
            why = f" ({output.one_line(str(vote['reason']))})" if vote.get("reason") else ""
            word = output.one_line(str(vote.get("vote", "abstain")))
            rows.append(f"{self._roster.called(name)} {word}{why}")
        return [note_line(f"vote: {' · '.join(rows)}")]

    def _controlled(self, payload: conversations.ThreadControlled, event: Event) -> TranscriptLines:
        return [
            note_line(f"{text}; /resume to go on" if text.endswith(PAUSED) else text)
            for text in control_sentences(payload, self._roster.called)
        ]

    def _joined(self, payload: conversations.ParticipantJoined, event: Event) -> TranscriptLines:
        """Report only the first of several profile changes in a row."""
        name = payload.participant_id
        self._roster.learn(name, payload.profile)
        if payload.changed:
            last, self._last_profile_change = self._last_profile_change, (name, payload.by)
            return [] if last == (name, payload.by) else self._note(payload, event)
        if payload.from_turn <= 1:
            return []  # it was there from the start
        text = text_of(payload, self._roster.called)
        return [note_line(f"{text} (sees turns 0 to {payload.from_turn - 1})")]

    def _left(self, payload: conversations.ParticipantLeft, event: Event) -> TranscriptLines:
        leaving, self._leaving = self._leaving, None
        is_reported = payload.participant_id == payload.by == leaving
        return [] if is_reported else self._note(payload, event)

    def _set(self, payload: councils.PolicySet, event: Event) -> TranscriptLines:
        for member in payload.members:
            self._roster.learn(member.agent_id, member.profile)
        return self._note(payload, event)

    def _invited(self, payload: councils.MembersInvited, event: Event) -> TranscriptLines:
        """Report who was passed by, and the votes at the end; rows below have the rest."""
        lines = [note_line(text) for text in passed_sentences(payload, self._roster.called)]
        if payload.phase == "over" and self._votes:
            lines += self._tally(self._votes)
            self._votes, self._tallied = {}, True
        return lines

    def _answered(self, payload: councils.InvitationAnswered, event: Event) -> TranscriptLines:
        if payload.task == "vote" and payload.outcome != "superseded":
            self._votes[payload.agent_id] = payload.answer or {}
            self._tallied = False
        return self._note(payload, event)


def _cost_suffix(meta: Mapping[str, Any]) -> str:
    """Return ``[18 s · demo · 212 tok]``."""
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


def _objects_in(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


#: what a person may type after an event, with the place for its sequence
HINTS: dict[type, str] = {
    councils.ToolAsked: " · /allow or /deny",
    councils.ToolReopened: " · /allow or /deny",
    councils.TurnHeld: " · /admit {0} lets it in, /drop {0} does not",
}

#: events that are a note and nothing else
NOTED = (
    conversations.ThreadRenamed, conversations.ThreadLinked, councils.CouncilContinued,
    councils.CouncilStopped, councils.VoteCalled, agents.ToolCalled, councils.ToolAsked,
    councils.ToolAnswered, councils.ToolReopened, councils.TurnHeld, councils.TurnAdmitted,
    councils.TurnDropped, runs.RunFailed, runs.RunCancelled,
)  # fmt: skip

RENDERERS: dict[type, Callable[[TranscriptRenderer, Any, Event], TranscriptLines]] = {
    conversations.ConversationOpened: TranscriptRenderer._opened,
    conversations.ConversationExchanged: TranscriptRenderer._turn,
    conversations.ConversationEnded: TranscriptRenderer._closed,
    conversations.ThreadControlled: TranscriptRenderer._controlled,
    conversations.ParticipantJoined: TranscriptRenderer._joined,
    conversations.ParticipantLeft: TranscriptRenderer._left,
    councils.PolicySet: TranscriptRenderer._set,
    councils.MembersInvited: TranscriptRenderer._invited,
    councils.InvitationAnswered: TranscriptRenderer._answered,
    **dict.fromkeys(NOTED, TranscriptRenderer._note),
}
