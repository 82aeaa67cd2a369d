"""Seats: one program at a time has a name in a thread. Who is refused changes nothing."""

from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.caller import Api
from tests.support.api.councils import BO, THREADS, close, join, joined, key_as, person
from tests.support.api.questions import refused, unchanged

REX, FIRST, SECOND = "host:rex", "seat-first", "seat-second"


@pytest.fixture
def room(api: Api) -> str:
    answer = api.post(THREADS, {"title": "Room", "participants": ["eve"]})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["threadId"])


def take(api: Api, room: str, seat: str = FIRST, name: str = "rex", **more: Any) -> httpx.Response:
    return api.post(f"{THREADS}/{room}/seats", {"as": name, "seat": seat, **more})


def leave(api: Api, room: str, seat: str = FIRST) -> httpx.Response:
    return api.call("DELETE", f"{THREADS}/{room}/seats/{seat}")


def kinds(api: Api, room: str) -> list[tuple[str, str | None]]:
    return [(event["type"], event["payload"].get("instead")) for event in api.events(room)
            if event["type"].startswith("moot.seat.")]  # fmt: skip


def test_a_seat_is_one_programs_until_it_leaves_or_is_replaced(api: Api, room: str) -> None:
    made = take(api, room)
    assert made.status_code == 200 and made.json()["as"] == REX
    with unchanged(api, room):
        assert take(api, room).json() == made.json(), "who asks again has it"
        details = refused(take(api, room, SECOND), 409, "seat_taken")
        assert (details["participant"], details["since"]) == (REX, made.json()["since"])
    assert take(api, room, SECOND, replace=True).status_code == 200
    refused(leave(api, room), 404, "not_found")
    assert leave(api, room, SECOND).status_code == 204
    assert take(api, room).status_code == 200
    taken, left = "moot.seat.taken", "moot.seat.left"
    assert kinds(api, room) == [(taken, None), (taken, FIRST), (left, None), (taken, None)]


def test_who_may_not_have_a_seat_is_told_why(api: Api, room: str) -> None:
    assert take(api, room).status_code == 200
    bo, stranger = key_as(api, BO), api.with_key(api.new_key("far", tenant="elsewhere", admin=True))
    with unchanged(api, room):
        refused(take(bo, room, SECOND), 403, "forbidden")
        refused(leave(bo, room), 403, "forbidden")
        refused(take(api, room, SECOND, "user:eve"), 400, "validation_error")
        refused(take(api, room, "short"), 400, "validation_error")
        refused(take(api, room, f"{SECOND}\n"), 400, "validation_error")
        refused(take(api, room, FIRST, "max"), 400, "validation_error")
        for far in (take(stranger, room, SECOND), leave(stranger, room)):
            assert far.status_code == 404
    assert close(api, room).status_code == 200
    refused(take(api, room, SECOND, replace=True), 409, "conversation_closed")


def test_who_has_lost_the_seat_gets_no_key_for_it_and_invites_nobody(api: Api, room: str) -> None:
    take(api, room)
    take(api, room, SECOND, replace=True)
    with unchanged(api, room):
        refused(join(api, room, "rex", seat=FIRST), 409, "seat_taken")
    rex = joined(api, room, "rex", seat=SECOND)
    assert leave(rex, room, SECOND).status_code == 204


def test_who_is_asked_while_nobody_is_there_can_be_taken_on(api: Api, room: str) -> None:
    """The host waits for an answer; that is no sign of a program."""
    assert join(api, room, "rex").status_code == 201
    assert person(api, room, "@rex, are you there?").status_code == 200
    assert take(api, room).status_code == 200
