"""Fold the floor of a council: invitations, rounds, votes and stops.

Each invitation ends once: by the member's answer, by its silence, or by a person.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from moot.core.payloads.councils import CouncilStopped, InvitationTask, MembersInvited, PolicySet
from moot.core.state.council_policy import SMALL, THREAD_MODES, Policy, policy_from_payload
from moot.core.text.names import full_name, is_person

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


class FloorMember(Struct, omit_defaults=True):
    """A member of a council."""

    profile: dict[str, Any] = {}
    #: the host answers for the member when it knows the agent; otherwise the council waits
    driven: bool = True
    #: a program that reads the thread by itself: the host calls it and does not wait
    outside: bool = False
    #: an agent invited the member, and it has not spoken yet
    guest: bool = False


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
    members: dict[str, FloorMember] = {}
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
    votes: dict[str, dict[str, Any]] = {}
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
    held: dict[str, dict[str, Any]] = {}

    @property
    def mode(self) -> str:
        """The mode of taking turns; ``auto`` depends on the number of members."""
        if self.policy.mode != "auto":
            return self.policy.mode
        here = sum(not member.guest for member in self.members.values())
        return "small" if here <= SMALL else "large"

    @property
    def threaded(self) -> bool:
        return self.policy.mode in THREAD_MODES

    @property
    def speakers(self) -> list[str]:
        """The members of a round: all but the moderator, unless it is the only member."""
        moderator = self.policy.moderator
        return [name for name in self.members if name != moderator] or list(self.members)


#: in ``unclear``: not a name, but a message to everyone where there are too many members
TO_MANY = ""
#: the reason of a request that no name caused
TO_ALL = "a person spoke to all"


def pair_key(one: str, other: str) -> str:
    return "|".join(sorted((one, other)))


# -- the fold ---------------------------------------------------------------------------------


def apply_participation_set(
    floor: Floor | None, payload: PolicySet, turn: int, at: int
) -> Floor | None:
    """Set the policy and the members. An invalid policy changes nothing."""
    policy = policy_from_payload(payload.policy)
    if policy is None:
        return floor
    members = {
        item.agent_id: FloorMember(
            profile=item.profile or {}, driven=item.driven is not False, outside=item.outside
        )
        for item in payload.members
        if not is_person(item.agent_id)
    }
    if floor is None:
        floor = Floor(policy=policy, members=members, since=at, opened_turn=turn)
        is_called = payload.called is not False
        floor.called = is_called and floor.mode != "large"
        if is_called:
            hush_large_thread(floor)
        return floor
    is_new_mode = policy.mode != floor.policy.mode and floor.phase != "vote"
    floor.policy, floor.members = policy, members
    if is_new_mode:  # a new mode begins with its first round
        floor.phase, floor.round, floor.opened_turn = "talk", 1, turn
        floor.had, floor.hands, floor.chosen, floor.choices = {}, None, None, 0
        floor.called = False
    floor.unsummed = False
    return floor


def hush_large_thread(floor: Floor, speaker: str = "") -> None:
    """Have the host explain, once, that a message to everyone wakes no member of a large thread."""
    if floor.policy.mode == "auto" and floor.mode == "large" and not floor.hushed:
        floor.unclear, floor.unclear_to, floor.hushed = {TO_MANY: []}, speaker, True


def apply_participation_decided(
    floor: Floor, payload: MembersInvited, sequence: int, at: int
) -> None:
    """Record new invitations, and the members that were skipped or called."""
    if payload.round != floor.round:
        floor.round, floor.had, floor.hands = payload.round, {}, None
    if payload.phase != floor.phase:
        floor.phase = payload.phase
    for item in payload.skipped or []:
        floor.had[item.agent_id] = item.reason
        _remove_request(floor, item.agent_id)
    for item in payload.called or []:
        floor.had[item.agent_id] = "called"
        _remove_request(floor, item.agent_id)
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


def extend_silence(floor: Floor, invitation: Invitation, at: int, silent_ms: int = 0) -> None:
    """Count the silence of an active member from ``at``."""
    if invitation.due != NEVER:
        invitation.due = max(invitation.due, at + floor.policy.limits.silence * 1000 - silent_ms)


def positive_int(value: Any) -> int:
    return value if type(value) is int and 0 < value < 2**53 else 0


def apply_participation_stopped(floor: Floor, payload: CouncilStopped) -> None:
    """Stop the council. It invites no member until a person continues it."""
    reason = payload.reason
    if reason in NATURAL_STOPS:
        floor.phase = "synthesis" if floor.policy.moderator in floor.members else "over"
    else:
        floor.stopped = reason


def add_floor_member(
    floor: Floor, name: str, profile: dict[str, Any], outside: bool, by: str
) -> None:
    """Add a member; people need no floor.

    In a thread earlier turns do not concern a new member. A member that an agent invited is a
    guest and does not count for the thread's size.
    """
    if is_person(name):
        return
    member = floor.members.get(name)
    if floor.threaded and member is None:
        floor.had[name] = "joined"
    guest = not is_person(by) and full_name(by) != name
    guest = guest if member is None else member.guest and guest
    floor.members[name] = FloorMember(profile=profile, outside=outside, guest=guest)


def remove_floor_member(floor: Floor, name: str) -> None:
    floor.members.pop(name, None)
    floor.later.pop(name, None)
    _remove_request(floor, name)
    floor.asks = {
        request_id: request for request_id, request in floor.asks.items() if request.agent != name
    }
    floor.wakes = {
        invitation_id: invitation
        for invitation_id, invitation in floor.wakes.items()
        if invitation.agent != name
    }
