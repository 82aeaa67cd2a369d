"""Who has which seat, given the log."""

from typing import TYPE_CHECKING

from msgspec import UNSET

from moot.core.events import Event
from moot.core.state.thread_controls import MOST_NAMES, Held, ThreadState
from moot.core.text.names import full_name

if TYPE_CHECKING:
    from moot.core.state.run import Run

TAKEN, LEFT = "moot.seat.taken", "moot.seat.left"


def holds(state: ThreadState, name: str, seat: str) -> bool:
    held = state.seats.get(name)
    return held is not None and held.seat == seat


def _taken(run: "Run", event: Event, at: int) -> None:
    state = _state(run, event)
    if state is not None:
        name, seat = _about(event)
        state.seats.pop(name, None)
        state.seats[name] = Held(seat, at)
        if len(state.seats) > MOST_NAMES:  # who came first has it no longer
            state.seats.pop(next(iter(state.seats)))


def _left(run: "Run", event: Event, at: int) -> None:
    state = _state(run, event)
    if state is not None and holds(state, *_about(event)):
        state.seats.pop(_about(event)[0])


def _state(run: "Run", event: Event) -> ThreadState | None:
    talk = None if event.node_id is UNSET else run.conversations.get(event.node_id)
    return None if talk is None else talk.state


def _about(event: Event) -> tuple[str, str]:
    said = event.payload
    return full_name(str(said.get("participantId", ""))), str(said.get("seat", ""))


HANDLERS = {TAKEN: _taken, LEFT: _left}
