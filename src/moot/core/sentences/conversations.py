"""Sentences about conversations: turns, participants, councils and held turns."""

from collections.abc import Iterable

from moot.core.payloads import conversations, councils
from moot.core.payloads.base import Payload
from moot.core.sentences.controls import control_sentence
from moot.core.sentences.sentence import Names, Sentence, SentenceRow, brief
from moot.core.sentences.turns import spoken_turn
from moot.core.state.floor import PAIR
from moot.core.text.quantities import format_count

#: reasons why a council stops, where the name of the limit is not clear enough
STOP_TEXTS = {PAIR: "two agents have answered one another often enough"}
#: ends of a council that are no limits
END_SENTENCES = {
    "consensus": "Nobody has anything to add.",
    "moderator": "The moderator has heard enough.",
}
#: outcomes of an invitation to speak without a turn
SILENT_OUTCOMES = {"passed": "has nothing to add", "superseded": "was interrupted"}


def opening_sentence(founder: str, title: object) -> str:
    return f"{founder} began “{title}”"


def _turn(payload: Payload, names: Names) -> Sentence | None:
    turn = spoken_turn(payload)
    if turn is None:
        return None
    closed = "closed: " if isinstance(payload, conversations.ConversationEnded) else ""
    to = f" → {names(turn.to)}" if turn.to else ""
    return Sentence(brief(turn.content), "turn", f"{closed}{names(turn.speaker)}{to}")


def _linked(payload: conversations.ThreadLinked, names: Names) -> str:
    linker = names("system" if payload.back else payload.by or "")
    end = "was closed" if payload.closed else f"was linked by {linker}"
    return f"the thread “{payload.title}” {end}"


def _joined(payload: conversations.ParticipantJoined, names: Names) -> str:
    participant, sender = names(payload.participant_id), names(payload.by)
    is_own = payload.participant_id == payload.by
    if payload.changed:
        return f"the profile of {participant} was changed{'' if is_own else f' by {sender}'}"
    return f"{sender} joined" if is_own else f"{sender} invited {participant}"


def _left(payload: conversations.ParticipantLeft, names: Names) -> str:
    sender = names(payload.by)
    if payload.participant_id == payload.by:
        return f"{sender} left"
    return f"{sender} sent {names(payload.participant_id)} away"


def _policy_set(payload: councils.PolicySet, names: Names) -> str | None:
    mode = payload.policy.get("mode", "round-robin")
    return f"{names(payload.by)} set the order: {mode}" if payload.by else None


def _invited(payload: councils.MembersInvited, names: Names) -> str | None:
    floor = _row_sentences(payload.wakes, "has the floor", names)
    return "; ".join([*floor, *passed_sentences(payload, names)]) or None


def passed_sentences(payload: councils.MembersInvited, names: Names) -> list[str]:
    """Return sentences about the members that were passed by or called."""
    skipped = _row_sentences(payload.skipped or (), "is passed by", names)
    return [*skipped, *_row_sentences(payload.called or (), "is called", names)]


def _row_sentences(
    rows: Iterable[councils.MemberInvitation | councils.MemberReason], verb: str, names: Names
) -> list[str]:
    return [f"{names(row.agent_id)} {verb}: {row.reason}" for row in rows]


def _answered(payload: councils.InvitationAnswered, names: Names) -> str | None:
    text = SILENT_OUTCOMES.get(payload.outcome) if payload.task == "speak" else None
    return f"{names(payload.agent_id)} {text}" if text else None


def _stopped(payload: councils.CouncilStopped, names: Names) -> str:
    if payload.reason == "rounds" and isinstance(payload.limit, int):
        return f"{format_count(payload.limit, 'round')} done"
    limit = STOP_TEXTS.get(payload.reason, payload.reason)
    return END_SENTENCES.get(payload.reason, f"the council stops: {limit}")


def _continued(payload: councils.CouncilContinued, names: Names) -> str:
    more = f", {format_count(payload.rounds, 'more round')}" if payload.rounds else ""
    return f"{names(payload.by)} let it go on{more}"


def _held(payload: councils.TurnHeld, names: Names) -> str:
    state = "muted" if payload.reason == "participant_muted" else "paused"
    speaker = names(payload.turn.speaker_id)
    return f"{speaker} tried to speak while {state} (1 turn held)"


CONVERSATION_SENTENCES: dict[type, SentenceRow] = {
    conversations.ConversationOpened: _turn,
    conversations.ConversationExchanged: _turn,
    conversations.ConversationEnded: _turn,
    conversations.ThreadControlled: control_sentence,
    conversations.ThreadRenamed: lambda p, names: (
        f"{names(p.by or '')} renamed the thread to “{p.title}”"
    ),
    conversations.ThreadLinked: _linked,
    conversations.PresenceChanged: lambda p, names: f"{names(p.from_)} is {p.state}",
    conversations.ParticipantJoined: _joined,
    conversations.ParticipantLeft: _left,
    conversations.SeatClaimed: lambda p, names: (
        f"a program speaks as {names(p.participant_id)} from here on"
    ),
    conversations.SeatLeft: lambda p, names: f"the program of {names(p.participant_id)} has left",
    councils.PolicySet: _policy_set,
    councils.MembersInvited: _invited,
    councils.InvitationAnswered: _answered,
    councils.MemberHeard: lambda p, names: f"{names(p.agent_id)} is still at work",
    councils.CouncilStopped: _stopped,
    councils.CouncilContinued: _continued,
    councils.VoteCalled: lambda p, names: f"{names(p.by)} put to the vote: {p.decision}",
    councils.TurnHeld: _held,
    councils.TurnAdmitted: lambda p, names: f"{names(p.by)} let a held turn in",
    councils.TurnDropped: lambda p, names: f"{names(p.by)} dropped a held turn",
}
