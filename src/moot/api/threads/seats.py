"""Which one of several programs has a name in a thread."""

from typing import Annotated

from msgspec import Meta, Struct

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.threads import councils
from moot.core.conversations import joining
from moot.core.errors import BadRequest, ConversationClosed, Forbidden, NotFound
from moot.core.errors.threads import SeatTaken
from moot.core.events import iso
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.state.seats import holds
from moot.core.text.names import full_name, is_person
from moot.core.threads import seats
from moot.store.protocol import Key

Name = Annotated[str, Meta(min_length=1, max_length=256)]
#: a word that nobody else takes, such as a random one
Word = Annotated[str, Meta(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9._~-]+$(?!\n)")]


class Take(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"as_": "as"}):
    as_: Name
    seat: Word
    #: whoever is in it now loses it
    replace: bool = False


async def take(request: Request) -> Reply:
    """One program at a time has a name. What was seen of the seat is decided upon where the
    commands of the thread are, so that of two who come at once one is refused."""
    run, talk = await councils.place(request)
    asked = await request.read(Take)
    name, services = full_name(asked.as_), request.services
    if not talk.open:
        raise ConversationClosed("The conversation is closed; nobody can join it any more.")
    _check_may(request, name)
    desk, at = services.host.presence, services.clock.millis()
    if not asked.replace and not holds(talk.state, name, asked.seat):
        heard = desk.snapshot(run.run_id, talk).get(name)
        seats.check_free(talk, name, heard, desk.now(), desk.ttl_ms)
    held = talk.state.seats.get(name)
    command = seats.TakeSeat(
        node_id=talk.node_id, name=name, seat=asked.seat, at=at, via=request.caller.id,
        seen=None if held is None else held.seat,
    )  # fmt: skip

    def answer(after: Run) -> Reply:
        since = after.conversations[talk.node_id].state.seats[name].at
        body = {"threadId": thread_id(run, talk), "as": name, "seat": asked.seat}
        return Reply({**body, "since": iso(since * 1000)})

    await services.host.handle(run.tenant, run.run_id, command, request.recording(answer))
    return request.made


async def leave(request: Request) -> Reply:
    run, talk = await councils.place(request)
    seat = request.params["seat"]
    name = next((each for each, held in talk.state.seats.items() if held.seat == seat), None)
    if name is None:
        raise NotFound("Nobody has this seat.", seat=seat)
    _check_may(request, name)
    command = seats.LeaveSeat(node_id=talk.node_id, name=name, seat=seat)
    await request.services.host.handle(run.tenant, run.run_id, command)
    return Reply(b"", 204)


async def keep(request: Request, run: Run, talk: Conversation, key: Key, seat: str) -> None:
    """Raises, and the key is no good, when somebody else has the seat."""
    services = request.services
    now = (await services.host.view(run.tenant, run.run_id)).run.conversations[talk.node_id]
    try:
        must_hold(request, now, key.speaks_as[0], seat)
    except SeatTaken:
        await services.store.revoke_key(run.tenant, key.id, services.clock.millis())
        raise


def must_hold(request: Request, talk: Conversation, name: str, seat: str) -> None:
    if not holds(talk.state, name, seat):
        held, at = talk.state.seats.get(name), request.services.clock.millis()
        raise seats.taken(name, at if held is None else held.at, at)


def _check_may(request: Request, name: str) -> None:
    joining.check(name, "as")
    if is_person(name):
        raise BadRequest("People have no seats: they come and go as they like.", field="as")
    if not request.caller.admin and name not in request.caller.speaks_as:
        raise Forbidden("Only an administrator's key hands out names it is not bound to.")


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/seats", call=take,
        scope="approvals:respond", body=Take, joined=True, errors=(404, 409, 422),
        summary="Be the one program that has a name in a thread",
    ),
    Endpoint(
        method="DELETE", path="/v1/host/moot/threads/{thread_id}/seats/{seat}", call=leave,
        scope="approvals:respond", joined=True, status=204, errors=(404,),
        summary="Have it no longer",
    ),
)  # fmt: skip
