"""Seats: which of several programs holds a participant's name.

A program names the seat it saw before it takes one. If another program was faster, the host refuses
it.
"""

from msgspec import Struct

from moot.core.conversations import turns
from moot.core.errors import BadRequest
from moot.core.errors.threads import SeatTaken
from moot.core.events import NewEvent, iso
from moot.core.payloads.conversations import SeatClaimed, SeatLeft
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.state.thread_controls import has_seat
from moot.core.threads.presence import TTL_MS, PresenceRecord
from moot.core.workflows.flow import Flow


class TakeSeat(Struct, frozen=True, kw_only=True):
    """Give a participant's name to one program."""

    node_id: str
    name: str
    #: the program's own id of its seat
    seat: str
    at: int
    #: the seat that the program saw, or None when it saw none
    seen: str | None = None
    #: the key of the request
    via: str = ""


class LeaveSeat(Struct, frozen=True, kw_only=True):
    """Give up a seat. A program that has taken it since keeps it."""

    node_id: str
    name: str
    seat: str


def take_seat(run: Run, flow: Flow, command: TakeSeat) -> list[NewEvent]:
    conversation = turns.require_open(run.conversations.get(command.node_id), run, command.node_id)
    seat = conversation.state.seats.get(command.name)
    if seat is not None and seat.seat == command.seat:
        return []
    if (seat.seat if seat is not None else None) != command.seen:
        since = command.at if seat is None else seat.at
        raise seat_taken_error(command.name, since, command.at)
    if any(other.seat == command.seat for other in conversation.state.seats.values()):
        raise BadRequest("Somebody else has this seat; take a random word.", field="seat")
    payload = SeatClaimed(
        conversation_id=conversation.conversation_id,
        participant_id=command.name,
        seat=command.seat,
        via=command.via,
        instead=command.seen,
    )
    return [NewEvent(payload, command.node_id, cause=conversation.last_seq)]


def leave_seat(run: Run, flow: Flow, command: LeaveSeat) -> list[NewEvent]:
    conversation, name, seat = turns.find_open(run, command.node_id), command.name, command.seat
    if conversation is None or not has_seat(conversation.state, name, seat):
        return []
    talk = conversation.conversation_id
    payload = SeatLeft(conversation_id=talk, participant_id=name, seat=seat)
    return [NewEvent(payload, command.node_id, cause=conversation.last_seq)]


def check_seat_free(
    conversation: Conversation,
    name: str,
    presence: PresenceRecord | None,
    now: int,
    ttl_ms: int = TTL_MS,
) -> None:
    """Raise SeatTaken while a program uses the name or has just taken it.

    ``now`` is in microseconds.
    """
    seat = conversation.state.seats.get(name)
    last_report = 0 if presence is None or presence.state == "offline" else presence.at
    taken_at = 0 if seat is None else seat.at * 1000
    if presence is None or taken_at > presence.at:
        last_report = taken_at
    if last_report and now - last_report <= ttl_ms * 1000:
        raise seat_taken_error(name, taken_at // 1000 or last_report // 1000, last_report // 1000)


def seat_taken_error(name: str, since: int, last_report: int) -> SeatTaken:
    """Return the error. Times are in milliseconds."""
    return SeatTaken(
        f"{name.removeprefix('host:')} is here already. Take another name, or its place: replace.",
        participant=name,
        since=iso(since * 1000),
        heardAt=iso(last_report * 1000),
    )
