"""Fold the controls of a thread: mutes, prods, switches and seats.

A control acts on later events only. The fold never raises: it ignores the parts of a control that
are not valid.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moot.core.payloads.conversations import (
    PresenceChanged,
    SeatClaimed,
    SeatLeft,
    ThreadControlled,
)
from moot.core.state.control_content import (
    MOST_NAMES,
    control_targets,
    duration_ms,
    parse_control,
    switch_value,
)
from moot.core.state.mutes import apply_mute, apply_unmute
from moot.core.text.names import full_name, is_person


class SeatClaim(Struct):
    """The seat of a program: the word it chose for itself, and since when (ms)."""

    seat: str
    at: int


class ThreadControls(Struct, omit_defaults=True):
    """The state that the controls of a thread have led to."""

    paused: bool = False
    #: participant -> end of the mute (ms), 0 for good
    muted: dict[str, int] = {}
    prodded: list[str] = []
    done: list[str] = []
    ttl_until: int | None = None
    discussion: bool = False
    allow_agent_mentions: bool = False
    invited_auto: bool = False
    #: participant -> presence, for presence that is recorded
    presence: dict[str, str] = {}
    #: participants whom a person sent away: they return by invitation, not by speaking
    away: list[str] = []
    #: for undo: ends of the mutes (ms, 0 for good) that were lifted, and the profiles of the
    #: participants who left last
    lifted: dict[str, int] = {}
    gone: dict[str, Mapping[str, object]] = {}
    #: the thread has had an invitation; from then on only members speak
    by_invitation: bool = False
    #: participant -> the one program that has its name
    seats: dict[str, SeatClaim] = {}


#: controls that count only from a person or from the host
PEOPLE_ONLY = frozenset(
    {"mute", "unmute", "pause", "prod", "ttl_seconds", "discussion", "invited_auto"}
)


def is_ttl_over(state: ThreadControls, at: int) -> bool:
    """Return whether the time is over in which agents may speak without a person."""
    return state.ttl_until is not None and at >= state.ttl_until


def apply_speaker(state: ThreadControls, speaker: str) -> None:
    """Clear the speaker's prod and done mark."""
    if speaker in state.prodded:
        state.prodded.remove(speaker)
    if speaker in state.done:
        state.done.remove(speaker)


def apply_presence(state: ThreadControls, payload: PresenceChanged) -> None:
    name = full_name(payload.from_)
    if len(state.presence) < MOST_NAMES or name in state.presence:
        state.presence[name] = payload.state


def has_seat(state: ThreadControls, name: str, seat: str) -> bool:
    claim = state.seats.get(name)
    return claim is not None and claim.seat == seat


def apply_seat(state: ThreadControls, payload: SeatClaimed | SeatLeft, at: int) -> None:
    """Give a participant's name to one program, or take it back from the program that has it."""
    name = full_name(payload.participant_id)
    if isinstance(payload, SeatClaimed):
        state.seats.pop(name, None)
        state.seats[name] = SeatClaim(payload.seat, at)
        if len(state.seats) > MOST_NAMES:  # the oldest seat is dropped
            state.seats.pop(next(iter(state.seats)))
    elif has_seat(state, name, payload.seat):
        state.seats.pop(name)


def apply_control(state: ThreadControls, payload: ThreadControlled, at: int) -> None:
    """Apply each key of the control's content.

    Controls in ``PEOPLE_ONLY`` have no effect from other senders, whatever the log holds.
    """
    content, sender = parse_control(payload.content), payload.from_
    if not isinstance(content, dict):
        return
    is_allowed = is_person(sender) or sender == "system"
    for word, handler in CONTROL_HANDLERS.items():
        if word in content and (is_allowed or word not in PEOPLE_ONLY):
            handler(state, content[word], payload, at)


def _apply_pause(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    if (on := switch_value(value)) is not None:
        state.paused = on


def _apply_prod(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    prodded = dict.fromkeys([*state.prodded, *control_targets(value)])
    state.prodded = list(prodded)[:MOST_NAMES]
    state.done = [name for name in state.done if name not in prodded]


def _apply_done(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    name = full_name(payload.from_)
    if value is True and name not in state.done and len(state.done) < MOST_NAMES:
        state.done.append(name)


def _apply_ttl(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    """Set the time limit; None removes it."""
    duration = duration_ms(value)
    if duration is not None or value is None:
        state.ttl_until = None if duration is None else at + duration


def _apply_discussion(
    state: ThreadControls, value: Any, payload: ThreadControlled, at: int
) -> None:
    if (on := switch_value(value)) is not None:
        mentions = value.get("allow_agent_mentions") if isinstance(value, dict) else None
        state.discussion = on
        state.allow_agent_mentions = mentions if isinstance(mentions, bool) else on


def _apply_invited_auto(
    state: ThreadControls, value: Any, payload: ThreadControlled, at: int
) -> None:
    if (on := switch_value(value)) is not None:
        state.invited_auto = on


#: word of a control -> its handler (invite and uninvite are events of their own)
CONTROL_HANDLERS = {
    "mute": apply_mute,
    "unmute": apply_unmute,
    "pause": _apply_pause,
    "prod": _apply_prod,
    "done": _apply_done,
    "ttl_seconds": _apply_ttl,
    "discussion": _apply_discussion,
    "invited_auto": _apply_invited_auto,
}
