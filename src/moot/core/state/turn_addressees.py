"""Work out the addressees of a turn: its address, names in its text, or everyone.

The fold keeps requests to members only, never the text of a turn.
"""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from moot.core.payloads.conversations import Turn
from moot.core.payloads.councils import PolicySet
from moot.core.state.floor import (
    DAY_BUDGET,
    FAILED_OUTCOMES,
    NOBODY_ANSWERED,
    STOPS_LIFTED_BY_TURN,
    TO_ALL,
    Floor,
    FloorRequest,
    FloorSpending,
    ask_failed_members_again,
    current_mode,
    hush_large_thread,
    pair_key,
)
from moot.core.state.participants import find_participant, is_led, led_members, member_profiles
from moot.core.state.tasks import turn_kind
from moot.core.text import mentions
from moot.core.text.names import full_name

if TYPE_CHECKING:
    from moot.core.state.conversation import Conversation

#: stops that a person's turn never lifts
LASTING_STOPS = frozenset({DAY_BUDGET, "close"})


def apply_turn_to_floor(
    conversation: "Conversation", floor: Floor, turn: Turn, seq: int, at: int
) -> None:
    if turn.role == "user":
        _apply_person_turn(conversation, floor, turn, seq, at)
    elif turn.role == "agent" and floor.summary is not None and floor.summary.turn < 0:
        floor.summary.turn = conversation.turns
    elif turn.role == "agent":
        _apply_member_turn(conversation, floor, turn, seq)


def apply_opening_addressees(
    conversation: "Conversation", floor: Floor, payload: PolicySet, speaker: str
) -> None:
    """Request the members that the opening turn names instead of all members.

    Where a name is ambiguous, the host asks about it first.
    """
    asked, unclear = payload.asked or [], payload.unclear or {}
    request = f"addressed by {speaker}"
    requests = {
        name: FloorRequest(request, seq=conversation.opened_seq)
        for name in led_members(conversation)
        if name in asked
    }
    if requests or unclear:
        floor.asked, floor.called, floor.hushed = requests, False, False
        floor.unclear, floor.unclear_to = unclear, speaker if unclear else ""


def _apply_member_turn(conversation: "Conversation", floor: Floor, turn: Turn, seq: int) -> None:
    speaker = full_name(turn.from_)
    floor.streak += 1
    find_participant(conversation, speaker).guest = False
    if floor.proposed_in < 0:
        floor.proposed_in = conversation.turns
    if floor.had.get(speaker, "failed") in FAILED_OUTCOMES:
        floor.had[speaker] = "spoke"
    to, reason = _direct_addressee(turn), f"addressed by {speaker}"
    for name in _addressed_by_member(conversation, floor, turn, to):
        if name != speaker and name not in floor.asked:  # a member cannot request itself
            key = pair_key(speaker, name)
            floor.pairs[key] = floor.pairs.get(key, 0) + 1
            floor.asked[name] = FloorRequest(reason, speaker, seq, to is not None)
        if name in floor.asked and turn_kind(turn) == "task":
            floor.asked[name].task = True


def _addressed_by_member(
    conversation: "Conversation", floor: Floor, turn: Turn, to: str | None
) -> list[str]:
    """Return the members that a member may address: by name, in a thread only directly."""
    is_open = conversation.state.allow_agent_mentions or floor.policy.mode == "addressed"
    if to is None:
        return _mentioned_members(conversation, turn).names if is_open else []
    is_allowed = is_open or floor.threaded
    return [to] if is_allowed and is_led(conversation, to) else []


def _apply_person_turn(
    conversation: "Conversation", floor: Floor, turn: Turn, seq: int, at: int
) -> None:
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
    is_note = isinstance(turn.meta, dict) and turn.meta.get("note") is True
    if not is_note and floor.policy.interject != "note":
        _request_addressees(conversation, floor, turn, seq)


def _request_addressees(conversation: "Conversation", floor: Floor, turn: Turn, seq: int) -> None:
    """Request the named members first; a turn without names may be for all members."""
    to, speaker, is_task = _direct_addressee(turn), turn.from_, turn_kind(turn) == "task"
    if to is None:
        mentioned = _mentioned_members(conversation, turn)
    else:
        mentioned = mentions.Mentions([to] if is_led(conversation, to) else [])
    reason, is_direct = f"addressed by {speaker}", to is not None
    requests = {
        name: FloorRequest(reason, None, seq, is_direct, is_task) for name in mentioned.names
    }
    rest = {name: request for name, request in floor.asked.items() if name not in requests}
    floor.asked = {**requests, **rest}
    if floor.threaded and mentioned.unclear:
        floor.unclear, floor.unclear_to = mentioned.unclear, speaker
    elif to is not None or requests:
        return
    elif _is_for_all(conversation, floor):
        floor.called, floor.had, floor.called_seq, floor.hushed = True, {}, seq, False
        _request_busy_members(conversation, floor, seq)
    elif "@" not in str(turn.content):
        hush_large_thread(conversation, floor, speaker)


def _request_busy_members(conversation: "Conversation", floor: Floor, seq: int) -> None:
    """Request members again that are answering: they will not see this turn before they finish."""
    if floor.policy.interject == "interrupt":
        return  # they begin again and see the turn then
    for invitation in floor.wakes.values():
        if invitation.task == "speak" and invitation.agent not in conversation.state.done:
            floor.asked.setdefault(invitation.agent, FloorRequest(TO_ALL, seq=seq))


def _is_for_all(conversation: "Conversation", floor: Floor) -> bool:
    """Return whether a turn without addressees is for all members."""
    if floor.threaded and conversation.state.invited_auto:
        return True
    return current_mode(conversation, floor) in ("declared", "small")


def _direct_addressee(turn: Turn) -> str | None:
    return turn.to if turn.to != "all" else None


def _mentioned_members(conversation: "Conversation", turn: Turn) -> mentions.Mentions:
    """Return the mentioned members. A name that a person has never means a member."""
    if not mentions.has_mention(turn.content):
        return mentions.Mentions([])
    mentioned = mentions.find_mentions(turn.content, member_profiles(conversation))
    members = [name for name in mentioned.names if is_led(conversation, name)]
    return replace(mentioned, names=members)
