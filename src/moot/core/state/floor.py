"""Fold the floor of a council: invitations, rounds, votes and stops.

Each invitation ends once: by the member's answer, by its silence, or by a person.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from moot.core.payloads.councils import (
    CouncilContinued,
    InvitationAnswered,
    InvitationTask,
    MembersInvited,
    PolicySet,
    VoteCalled,
    WithheldTurn,
)
from moot.core.state.council_policy import SMALL, THREAD_MODES, Policy, policy_from_payload
from moot.core.state.participants import led_members, round_speakers, set_led_members

if TYPE_CHECKING:
    from moot.core.state.conversation import Conversation

#: tasks whose answer is a turn
SPOKEN_TASKS = frozenset({"speak", "synthesise", "summarise"})

#: two agents have answered one another too often
PAIR = "pair"
#: stops that a person's turn lifts; the others need a ``continue``
STOPS_LIFTED_BY_TURN = frozenset({"consecutive", PAIR, "nobody-answered"})
#: the tenant has used up its daily budget
DAY_BUDGET = "budget of the day"
#: the time is over in which agents may speak without a person
RUNWAY = "ttl"
#: stops that are the planned end of a council
NATURAL_STOPS = frozenset({"rounds", "consensus", "moderator"})
#: all invited members failed, declined or were silent; the moderator failed to sum up
NOBODY_ANSWERED, SYNTHESIS_FAILED = "nobody-answered", "synthesis"

#: outcomes without a turn that the member did not choose, and all outcomes without a turn
FAILED_OUTCOMES = frozenset({"silent", "failed", "refused", "muted"})
QUIET_OUTCOMES = FAILED_OUTCOMES | {"passed", "done"}

#: held turns, open tool requests or unpaid calls of one floor
MOST_HELD = 32

#: the end of the year 9999
NEVER = 253_402_300_799_999


class FloorRequest(Struct, omit_defaults=True):
    """A request to invite a member out of turn."""

    why: str
    #: the member that requested it
    by: str | None = None
    #: sequence of the turn that requested it, and whether that turn was for this member alone
    seq: int = 0
    direct: bool = False
    #: the turn is a task; the member's answer is its result
    task: bool = False


class FloorSpending(Struct, omit_defaults=True):
    """Model calls, tokens and money spent by one member or one council."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0


class UnpaidCall(Struct):
    """A model call whose invitation has ended before its cost was known."""

    agent: str
    seq: int


class Invitation(Struct, omit_defaults=True):
    """The host's request to one member to speak, vote or sum up (``wake`` on the wire)."""

    agent: str
    task: InvitationTask
    #: the newest turn that the member answers
    turn: int
    seq: int
    since: int
    due: int
    #: the member does not see turns of other members after this one
    blind: int | None = None
    #: event type -> how many of them the agent has caused
    said: dict[str, int] = {}
    #: tool call that has not returned -> its sequence
    calls: dict[str, int] = {}
    #: the first and the last turn to sum up
    of: tuple[int, int] | None = None
    #: its known cost, and whether it waits for a model
    spent: FloorSpending = msgspec.field(default_factory=FloorSpending)
    asking: bool = False
    #: sequence of the turn that it answers, and whether that turn is a task
    reply: int | None = None
    result: bool = False


class ToolRequest(Struct, omit_defaults=True):
    """A member's request to use a tool that needs a person's approval."""

    agent: str
    tool: str
    wake: str
    since: int
    seq: int
    #: the tool's arguments, abbreviated
    given: str = ""
    allowed: bool | None = None


class TurnSummary(Struct, omit_defaults=True):
    """The newest summary: its own turn, and the turns that it covers."""

    turn: int
    first: int
    until: int


class Floor(Struct, omit_defaults=True):
    """The state of a council."""

    policy: Policy = Policy()
    phase: Literal["talk", "synthesis", "vote", "over"] = "talk"
    round: int = 1
    #: member that had the floor in this round -> the outcome
    had: dict[str, str] = {}
    #: member -> a request to invite it out of turn
    asked: dict[str, FloorRequest] = {}
    #: muted member -> a request that waits for the end of the mute
    later: dict[str, FloorRequest] = {}
    #: ambiguous name in a person's turn -> the members it could mean; and that person
    unclear: dict[str, list[str]] = {}
    unclear_to: str = ""
    #: the host has explained that a message to everyone wakes none of so many members
    hushed: bool = False
    wakes: dict[str, Invitation] = {}
    #: of this round: member -> how urgently it wants to speak; 0 is not at all
    hands: dict[str, float] | None = None
    #: the member that the moderator has chosen
    chosen: str | None = None
    choices: int = 0
    votes: dict[str, Mapping[str, object]] = {}
    #: the moderator's proposal, and the turn it was made in
    proposal: str | None = None
    proposed_in: int = 0
    #: the moderator failed to sum up
    unsummed: bool = False
    #: the person in whose name the council closes after the vote
    closer: str | None = None
    #: a person's turn to all members has no answer in this round yet
    called: bool = False
    called_seq: int = 0
    #: since a person last spoke: turns of members; pair of members -> requests between them
    streak: int = 0
    pairs: dict[str, int] = {}
    spent: FloorSpending = msgspec.field(default_factory=FloorSpending)
    by_agent: dict[str, FloorSpending] = {}
    unpaid: dict[str, UnpaidCall] = {}
    since: int = 0
    stopped: str | None = None
    #: the first turn of a blind round
    opened_turn: int = 0
    #: the newest summary, and the last turn that a summary was requested for
    summary: TurnSummary | None = None
    summed_up: int = 0
    #: request id -> an open request to use a dangerous tool
    asks: dict[str, ToolRequest] = {}
    #: id of a held turn -> the turn
    held: dict[str, WithheldTurn] = {}

    @property
    def threaded(self) -> bool:
        return self.policy.mode in THREAD_MODES


#: in ``unclear``: not a name, but a message to everyone where there are too many members
TO_MANY = ""
#: the reason of a request that no name caused
TO_ALL = "a person spoke to all"


def current_mode(conversation: "Conversation", floor: Floor) -> str:
    """Return the mode of taking turns; ``auto`` depends on the number of members."""
    if floor.policy.mode != "auto":
        return floor.policy.mode
    here = sum(not member.guest for member in led_members(conversation).values())
    return "small" if here <= SMALL else "large"


def pair_key(one: str, other: str) -> str:
    return "|".join(sorted((one, other)))


# -- the fold ---------------------------------------------------------------------------------


def apply_participation_set(conversation: "Conversation", payload: PolicySet, at: int) -> None:
    """Set the policy and the members. An invalid policy changes nothing."""
    policy = policy_from_payload(payload.policy)
    if policy is None:
        return
    floor, turn = conversation.floor, conversation.turns
    set_led_members(conversation, payload.members)
    if floor is None:
        floor = conversation.floor = Floor(policy=policy, since=at, opened_turn=turn)
        if payload.called is not False:
            floor.called = current_mode(conversation, floor) != "large"
            hush_large_thread(conversation, floor)
        return
    is_new_mode = policy.mode != floor.policy.mode and floor.phase != "vote"
    floor.policy, floor.unsummed = policy, False
    if is_new_mode:  # a new mode begins with its first round
        floor.phase, floor.round, floor.opened_turn = "talk", 1, turn
        floor.had, floor.hands, floor.chosen, floor.choices = {}, None, None, 0
        floor.called = False


def hush_large_thread(conversation: "Conversation", floor: Floor, speaker: str = "") -> None:
    """Have the host explain, once, that a message to everyone wakes no member of a large thread."""
    is_large = floor.policy.mode == "auto" and current_mode(conversation, floor) == "large"
    if is_large and not floor.hushed:
        floor.unclear, floor.unclear_to, floor.hushed = {TO_MANY: []}, speaker, True


def apply_participation_decided(
    floor: Floor, payload: MembersInvited, sequence: int, at: int
) -> None:
    """Record new invitations, and the members that were skipped or called."""
    if payload.round != floor.round:
        floor.round, floor.had, floor.hands = payload.round, {}, None
    if payload.phase != floor.phase:
        floor.phase = payload.phase
    skipped = [(row.agent_id, row.reason) for row in payload.skipped or []]
    called = [(row.agent_id, "called") for row in payload.called or []]
    for name, outcome in [*skipped, *called]:
        floor.had[name] = outcome
        _remove_request(floor, name)
    if payload.unclear is not None:
        floor.unclear = {}
    limit = floor.policy.limits.silence * 1000
    for invited in payload.wakes:
        floor.wakes[invited.wake_id] = Invitation(
            agent=invited.agent_id, task=invited.task, turn=invited.turn or 0, seq=sequence,
            since=at, due=at + limit, blind=invited.blind, of=invited.of, reply=invited.reply_to,
            result=invited.result,
        )  # fmt: skip
        if invited.task != "summarise":
            _remove_request(floor, invited.agent_id)


def _remove_request(floor: Floor, name: str) -> None:
    floor.asked.pop(name, None)
    if name == floor.chosen:
        floor.chosen = None


def apply_participation_stopped(conversation: "Conversation", floor: Floor, reason: str) -> None:
    """Stop the council. It invites no member until a person continues it."""
    if reason in NATURAL_STOPS:
        floor.phase = "synthesis" if floor.policy.moderator in led_members(conversation) else "over"
    else:
        floor.stopped = reason


def drop_member_requests(floor: Floor, name: str) -> None:
    """Drop the invitations and requests of a member that leaves."""
    floor.later.pop(name, None)
    _remove_request(floor, name)
    floor.asks = {key: request for key, request in floor.asks.items() if request.agent != name}
    floor.wakes = {key: each for key, each in floor.wakes.items() if each.agent != name}


def end_invitation(conversation: "Conversation", floor: Floor, payload: InvitationAnswered) -> None:
    """Remove an invitation and apply the member's answer to it."""
    invitation_id = payload.wake_id
    invitation = floor.wakes.pop(invitation_id, None)
    floor.asks = {key: each for key, each in floor.asks.items() if each.wake != invitation_id}
    if invitation is None:
        return
    outcome = payload.outcome
    if outcome == "superseded" and invitation.task != "speak":
        return  # the host no longer wants this answer
    answer = payload.answer or {}
    match invitation.task:
        case "speak":
            _end_speech(floor, invitation, outcome)
        case "hand":
            _apply_raised_hand(floor, invitation.agent, answer, outcome)
        case "choose":
            floor.choices += 1
            _apply_choice(conversation, floor, answer)
        case "synthesise":
            _apply_synthesis(floor, answer, outcome)
        case "summarise":
            _apply_summary(floor, invitation, outcome)
        case "vote":
            floor.votes[invitation.agent] = answer if outcome == "answered" else {"vote": "abstain"}


def _end_speech(floor: Floor, invitation: Invitation, outcome: str) -> None:
    if outcome != "superseded":
        floor.had[invitation.agent] = outcome
        return
    floor.had.pop(invitation.agent, None)
    seq, task = invitation.reply or 0, invitation.result
    request = FloorRequest("was interrupted", seq=seq, task=task)
    floor.asked.setdefault(invitation.agent, request)


def _apply_raised_hand(floor: Floor, name: str, answer: Mapping[str, object], outcome: str) -> None:
    floor.hands = floor.hands or {}
    wants = answer.get("urgency") if answer.get("raised") is True else 0
    floor.hands[name] = float(wants) if isinstance(wants, int | float) else 0.0
    if outcome in FAILED_OUTCOMES:
        floor.had[name] = outcome


def _apply_synthesis(floor: Floor, answer: Mapping[str, object], outcome: str) -> None:
    floor.unsummed = outcome in FAILED_OUTCOMES
    if not floor.unsummed:
        floor.proposal = str(answer.get("decision") or "") or None
        floor.proposed_in = -1 if outcome == "spoke" else 0  # the turn is the next event
        floor.phase = "vote" if floor.policy.vote and floor.proposal else "over"


def _apply_summary(floor: Floor, invitation: Invitation, outcome: str) -> None:
    first, floor.summed_up = invitation.of or (0, 0)
    if outcome == "spoke":  # the turn is the next event
        floor.summary = TurnSummary(-1, first, floor.summed_up)


def _apply_choice(conversation: "Conversation", floor: Floor, answer: Mapping[str, object]) -> None:
    """Apply the moderator's choice. An invalid one means the next member in the declared order."""
    speakers = round_speakers(conversation)
    if answer.get("stop") is True:
        floor.had = dict.fromkeys(speakers, "moderator")
        floor.round = floor.policy.rounds + 1
        return
    wanted = answer.get("next")
    if isinstance(wanted, str) and wanted in speakers:
        floor.chosen = wanted
        return
    waiting = [name for name in speakers if name not in floor.had]
    if not waiting:
        floor.had = {}  # begin again after the last one
    floor.chosen = next(iter(waiting or speakers), None)


def apply_participation_continued(floor: Floor, payload: CouncilContinued, at: int) -> None:
    """Continue a stopped council, with new rounds if it was over."""
    ask_failed_members_again(floor)
    floor.stopped, floor.streak, floor.pairs, floor.since = None, 0, {}, at
    floor.spent, floor.by_agent = FloorSpending(), {}
    floor.called = True
    floor.unsummed = False  # the moderator is asked once more
    more = max(0, payload.rounds or 0)
    if floor.phase == "over" or more:
        rounds = floor.policy.rounds + (more or 1)
        floor.policy = msgspec.structs.replace(floor.policy, rounds=min(rounds, 1000))
        floor.phase, floor.votes, floor.proposal, floor.closer = "talk", {}, None, None
        if floor.round < floor.policy.rounds:
            floor.round, floor.had, floor.hands = floor.round + 1, {}, None


def ask_failed_members_again(floor: Floor) -> None:
    """Forget the outcomes of members that failed in this round."""
    failed = {name for name, outcome in floor.had.items() if outcome in FAILED_OUTCOMES}
    floor.had = {name: outcome for name, outcome in floor.had.items() if name not in failed}
    if floor.hands is not None:
        floor.hands = {name: urgency for name, urgency in floor.hands.items() if name not in failed}
    if floor.stopped == NOBODY_ANSWERED:
        floor.choices = 0


def apply_vote_called(floor: Floor, payload: VoteCalled, at: int) -> None:
    """Put a person's proposal to the vote. Pending requests to speak are dropped."""
    decision = payload.decision
    if decision != floor.proposal:
        floor.proposal, floor.proposed_in = decision, 0
    floor.phase, floor.votes, floor.asked, floor.later = "vote", {}, {}, {}
    floor.closer = payload.by if payload.close else None
    floor.stopped, floor.streak, floor.pairs, floor.since = None, 0, {}, at
    floor.spent, floor.by_agent, floor.unsummed = FloorSpending(), {}, False
