"""Fold the seats of a thread: which program has a participant's name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.core.events import Event
from moot.core.payloads.base import Payload
from moot.core.payloads.conversations import SeatClaimed, SeatLeft
from moot.core.state.control_content import MOST_NAMES
from moot.core.state.thread_controls import SeatClaim, ThreadControls
from moot.core.text.names import full_name

if TYPE_CHECKING:
    from moot.core.state.run import Run


def has_seat(state: ThreadControls, name: str, seat: str) -> bool:
    claim = state.seats.get(name)
    return claim is not None and claim.seat == seat


def _apply_seat_taken(run: "Run", payload: SeatClaimed, event: Event, at: int) -> None:
    state = _controls_of(run, event)
    if state is not None:
        name, seat = _seat_fields(payload)
        state.seats.pop(name, None)
        state.seats[name] = SeatClaim(seat, at)
        if len(state.seats) > MOST_NAMES:  # the oldest seat is dropped
            state.seats.pop(next(iter(state.seats)))


def _apply_seat_left(run: "Run", payload: SeatLeft, event: Event, at: int) -> None:
    state = _controls_of(run, event)
    if state is not None and has_seat(state, *_seat_fields(payload)):
        state.seats.pop(_seat_fields(payload)[0])


def _controls_of(run: "Run", event: Event) -> ThreadControls | None:
    conversation = None if event.node_id is UNSET else run.conversations.get(event.node_id)
    return None if conversation is None else conversation.state


def _seat_fields(payload: SeatClaimed | SeatLeft) -> tuple[str, str]:
    return full_name(payload.participant_id), payload.seat


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    SeatClaimed: _apply_seat_taken,
    SeatLeft: _apply_seat_left,
}
