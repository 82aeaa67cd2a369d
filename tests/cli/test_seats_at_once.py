"""One program has a name in a thread, also when several come at one instant."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from outsiders import THREADS, Room

from moot.cli.joining.join_key import GuestParticipant
from moot.cli.shared.client import Api
from moot.cli.shared.errors import CommandError
from moot.config.server_location import ServerLocation
from real_server import ServerProcess

AT_ONCE = 6


def came(
    inn: ServerProcess, room: Room, key: str, replace: bool
) -> list[GuestParticipant | CommandError]:
    """Several come in together."""
    start, place = Barrier(AT_ONCE), ServerLocation(inn.url, key, inn.database, named=True)

    def join(_: int) -> GuestParticipant | CommandError:
        start.wait(30)
        try:
            return GuestParticipant(Api(place), room.id, "rex", {"client": "x"}, replace)
        except CommandError as refused:
            return refused

    with ThreadPoolExecutor(AT_ONCE) as many:
        return list(many.map(join, range(AT_ONCE)))


def heard(guest: GuestParticipant) -> bool:
    try:
        guest.say("Here.")
    except CommandError:
        return False
    return True


@pytest.mark.parametrize("replace", [False, True], ids=["free", "replaced"])
def test_of_several_who_come_at_once_one_has_the_name(
    inn: ServerProcess, room: Room, replace: bool
) -> None:
    if replace:
        came(inn, room, inn.key, False)
    found = came(inn, room, inn.key, replace)
    guests = [each for each in found if isinstance(each, GuestParticipant) and heard(each)]
    assert len(guests) == 1 and "rex" in room.members()
    refused = [each for each in found if isinstance(each, CommandError)]
    assert replace or len(refused) == AT_ONCE - 1
    assert all("here already, since" in str(each) and "--replace" in str(each) for each in refused)
    run, verified, _ = inn.request("POST", f"/v1/host/moot/runs/{room.id}:verify", b"{}")
    assert run == 200 and verified["identical"], verified
    guests[0].leave()
    assert "rex" not in room.members()
    again = GuestParticipant(guests[0]._host, room.id, "rex", {"client": "x"})
    again.leave()


def test_who_shares_one_key_has_one_name_all_the_same(inn: ServerProcess, room: Room) -> None:
    room.moot("thread", "invite", room.id, "rex")
    status, made, _ = inn.request("POST", f"{THREADS}/{room.id}/join", b'{"as":"rex"}')
    assert status == 201
    found = came(inn, room, made["token"], False)
    assert sum(isinstance(each, GuestParticipant) for each in found) == 1


def test_who_could_not_come_in_leaves_the_seat_free(inn: ServerProcess, room: Room) -> None:
    place = ServerLocation(inn.url, inn.key, inn.database, named=True)
    with pytest.raises(CommandError, match="bytes in all"):
        GuestParticipant(Api(place), room.id, "rex", {"client": "x" * 5000})
    GuestParticipant(Api(place), room.id, "rex", {"client": "x"}).leave()
