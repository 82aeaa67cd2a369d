"""Which one of several programs has a name in a conversation.

Whoever takes a seat says whom he saw in it. Where somebody else has come before him he is refused,
so that of two who come at one instant one has it.
"""

from typing import Any

from msgspec import Struct

from moot.core.conversations import turns
from moot.core.errors import BadRequest
from moot.core.errors.threads import SeatTaken
from moot.core.events import NewEvent, iso
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.core.state.seats import LEFT, TAKEN, holds
from moot.core.threads.presence import TTL_MS, Here
from moot.core.workflows.graph import Flow


class TakeSeat(Struct, frozen=True, kw_only=True):
    """A program is the one that has a name from now on."""

    node_id: str
    name: str
    #: the program's own word for its being there
    seat: str
    at: int
    #: the seat in which somebody was when it was looked for; None when there was none
    seen: str | None = None
    #: the key it is done with
    via: str = ""


class LeaveSeat(Struct, frozen=True, kw_only=True):
    """It has the name no longer; who has come in its place stays."""

    node_id: str
    name: str
    seat: str


def take(run: Run, flow: Flow, given: TakeSeat) -> list[NewEvent]:
    talk = turns.must_be_open(run.conversations.get(given.node_id), run, given.node_id)
    held = talk.state.seats.get(given.name)
    if held is not None and held.seat == given.seat:
        return []
    if (held.seat if held is not None else None) != given.seen:
        raise taken(given.name, held.at if held is not None else given.at, given.at)
    if any(each.seat == given.seat for each in talk.state.seats.values()):
        raise BadRequest("Somebody else has this seat; take a random word.", field="seat")
    payload: dict[str, Any] = {
        "conversationId": talk.conversation_id,
        "participantId": given.name,
        "seat": given.seat,
        "via": given.via,
    }
    if given.seen is not None:
        payload["instead"] = given.seen
    return [NewEvent(TAKEN, payload, given.node_id, cause=talk.last_seq)]


def leave(run: Run, flow: Flow, given: LeaveSeat) -> list[NewEvent]:
    talk = run.conversations.get(given.node_id)
    if (
        talk is None
        or not talk.open
        or not run.going
        or not holds(talk.state, given.name, given.seat)
    ):
        return []
    payload = {
        "conversationId": talk.conversation_id,
        "participantId": given.name,
        "seat": given.seat,
    }
    return [NewEvent(LEFT, payload, given.node_id, cause=talk.last_seq)]


def check_free(
    talk: Conversation, name: str, heard: Here | None, now: int, ttl_ms: int = TTL_MS
) -> None:
    """Raises where somebody is here under the name: he was heard of, or has come just now. µs"""
    held = talk.state.seats.get(name)
    last = 0 if heard is None or heard.state == "offline" else heard.at
    came = 0 if held is None else held.at * 1000
    if heard is None or came > heard.at:
        last = came
    if last and now - last <= ttl_ms * 1000:
        raise taken(name, came // 1000 or last // 1000, last // 1000)


def taken(name: str, since: int, heard: int) -> SeatTaken:
    """Times in ms."""
    return SeatTaken(
        f"{name.removeprefix('host:')} is here already. Take another name, or its place: replace.",
        participant=name,
        since=iso(since * 1000),
        heardAt=iso(heard * 1000),
    )
