"""Work out the addressees of a turn: its address, names in its text, or everyone.

The fold keeps requests to members only, never the text of a turn.
"""

from typing import Any

from msgspec.structs import replace

from moot.core.payloads.conversations import Turn
from moot.core.payloads.councils import PolicySet
from moot.core.state import thread_controls
from moot.core.state.floor import (
    DAY_BUDGET,
    FAILED_OUTCOMES,
    NOBODY_ANSWERED,
    STOPS_LIFTED_BY_TURN,
    TO_ALL,
    Floor,
    FloorRequest,
    FloorSpending,
    hush_large_thread,
    pair_key,
)
from moot.core.state.floor_continuation import ask_failed_members_again
from moot.core.state.thread_controls import ThreadControls
from moot.core.text import mentions
from moot.core.text.names import full_name

#: stops that a person's turn never lifts
LASTING_STOPS = frozenset({DAY_BUDGET, "close"})


def apply_turn_to_floor(floor: Floor, turn: Turn, state: ThreadControls, seq: int, at: int) -> None:
    role = turn.role
    if role == "user":
        _apply_person_turn(floor, turn, state, seq, at)
    elif role == "agent" and floor.summary is not None and floor.summary.turn < 0:
        floor.summary.turn = turn.turn_index or 0
    elif role == "agent":
        _apply_member_turn(floor, turn, state, seq)


def apply_opening_addressees(floor: Floor, payload: PolicySet, speaker: str, seq: int) -> None:
    """Request the members that the opening turn names instead of all members.

    Where a name is ambiguous, the host asks about it first.
    """
    members, unclear = payload.asked or [], payload.unclear or {}
    reason = f"addressed by {speaker}"
    requests = {name: FloorRequest(reason, seq=seq) for name in floor.members if name in members}
    if requests or unclear:
        floor.asked, floor.called, floor.hushed = requests, False, False
        floor.unclear, floor.unclear_to = unclear, speaker if unclear else ""


def _apply_member_turn(floor: Floor, turn: Turn, state: ThreadControls, seq: int) -> None:
    speaker = full_name(turn.from_)
    floor.streak += 1
    if speaker in floor.members:
        floor.members[speaker].guest = False
    if floor.proposed_in < 0:
        floor.proposed_in = turn.turn_index or 0
    if floor.had.get(speaker, "failed") in FAILED_OUTCOMES:
        floor.had[speaker] = "spoke"
    to = _direct_addressee(turn)
    if to is not None:
        is_allowed = state.allow_agent_mentions or floor.threaded or floor.mode == "addressed"
        names = [to] if is_allowed and to in floor.members else []
    else:
        is_allowed = state.allow_agent_mentions or floor.mode == "addressed"
        names = _mentioned_members(floor, turn, state).names if is_allowed else []
    for name in names:
        _request_member(
            floor,
            name,
            speaker,
            FloorRequest(f"addressed by {speaker}", speaker, seq, to is not None),
        )
        if name in floor.asked and is_task(turn):
            floor.asked[name].task = True


def _request_member(floor: Floor, name: str, by: str, request: FloorRequest) -> None:
    if name != by and name not in floor.asked:  # a member cannot request itself
        key = pair_key(by, name)
        floor.pairs[key] = floor.pairs.get(key, 0) + 1
        floor.asked[name] = request


def _apply_person_turn(floor: Floor, turn: Turn, state: ThreadControls, seq: int, at: int) -> None:
    floor.streak, floor.pairs = 0, {}
    if floor.policy.renews:
        floor.spent, floor.by_agent, floor.since = FloorSpending(), {}, at
    is_lifted = (
        floor.stopped not in LASTING_STOPS
        if floor.policy.renews
        else floor.stopped in STOPS_LIFTED_BY_TURN
    )
    if floor.stopped is not None and is_lifted:
        if floor.stopped == NOBODY_ANSWERED:
            ask_failed_members_again(floor)
        floor.stopped = None
        floor.asked = {name: request for name, request in floor.asked.items() if request.by is None}
    if (
        isinstance(turn.meta, dict) and turn.meta.get("note") is True
    ) or floor.policy.interject == "note":
        return
    _request_addressees(floor, turn, state, seq)


def _request_addressees(floor: Floor, turn: Turn, state: ThreadControls, seq: int) -> None:
    """Request the named members first; a turn without names may be for all members."""
    to, speaker = _direct_addressee(turn), turn.from_
    mentioned = _mentioned_members(floor, turn, state) if to is None else mentions.Mentions([])
    names = mentioned.names if to is None else [to] if to in floor.members else []
    direct = to is not None
    requests = {
        name: FloorRequest(f"addressed by {speaker}", None, seq, direct, is_task(turn))
        for name in names
    }
    rest = {name: request for name, request in floor.asked.items() if name not in requests}
    floor.asked = {**requests, **rest}
    if floor.threaded and mentioned.unclear:
        floor.unclear = mentioned.unclear
        floor.unclear_to = speaker
    elif to is None and not names and _is_for_all(floor, state):
        floor.called, floor.had, floor.called_seq, floor.hushed = True, {}, seq, False
        _request_busy_members(floor, state, seq)
    elif to is None and not names and "@" not in str(turn.content):
        hush_large_thread(floor, speaker)


def _request_busy_members(floor: Floor, state: ThreadControls, seq: int) -> None:
    """Request members again that are answering: they will not see this turn before they finish."""
    if floor.policy.interject == "interrupt":
        return  # they begin again and see the turn then
    for invitation in floor.wakes.values():
        if invitation.task == "speak" and invitation.agent not in state.done:
            floor.asked.setdefault(invitation.agent, FloorRequest(TO_ALL, seq=seq))


def _is_for_all(floor: Floor, state: ThreadControls) -> bool:
    """Return whether a turn without addressees is for all members."""
    return floor.mode in ("declared", "small") or (floor.threaded and state.invited_auto)


def _direct_addressee(turn: Turn) -> str | None:
    return turn.to if turn.to != "all" else None


def is_task(turn: Turn) -> bool:
    return isinstance(turn.meta, dict) and turn.meta.get("kind") == "task"


def _mentioned_members(floor: Floor, turn: Turn, state: ThreadControls) -> mentions.Mentions:
    """Return the mentioned members. A name that a person has never means a member."""
    profiles: dict[str, dict[str, Any]] = {
        name: {} for name in thread_controls.people_present(state)
    }
    profiles |= {name: member.profile for name, member in floor.members.items()}
    mentioned = mentions.find_mentions(turn.content, profiles)
    return replace(mentioned, names=[name for name in mentioned.names if name in floor.members])
