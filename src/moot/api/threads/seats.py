"""Seats: the claim of one outside program to a participant's name."""

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.threads.lookup import find_thread
from moot.core.conversations.participants import check_participant_name
from moot.core.errors import BadRequest, ConversationClosed, Forbidden, NotFound
from moot.core.errors.threads import SeatTaken
from moot.core.events import iso
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.run import Run
from moot.core.state.thread_controls import has_seat
from moot.core.text.names import full_name, is_person
from moot.core.threads import seats
from moot.store.protocol import Key
from moot.wire.threads import ClaimSeat, SeatView


async def take_seat(request: Request) -> Reply:
    """Take a seat.

    The command carries the seat state that was read, so of two programs at once one is refused.
    """
    run, conversation = await find_thread(request)
    body = await request.read(ClaimSeat)
    name, services = full_name(body.speaks_as), request.services
    if not conversation.open:
        raise ConversationClosed("The conversation is closed; nobody can join it any more.")
    _check_may_take(request, name)
    presence, at = services.host.presence, services.clock.millis()
    if not body.replace and not has_seat(conversation.state, name, body.seat):
        last_sign = presence.snapshot(run.run_id, conversation).get(name)
        seats.check_seat_free(conversation, name, last_sign, presence.now(), presence.ttl_ms)
    holder = conversation.state.seats.get(name)
    command = seats.TakeSeat(
        node_id=conversation.node_id, name=name, seat=body.seat, at=at, via=request.caller.id,
        seen=None if holder is None else holder.seat,
    )  # fmt: skip

    def answer(after: Run) -> Reply:
        since = after.conversations[conversation.node_id].state.seats[name].at
        thread, at = thread_id(run, conversation), iso(since * 1000)
        return Reply(SeatView(thread_id=thread, speaks_as=name, seat=body.seat, since=at))

    await services.host.handle(run.tenant, run.run_id, command, request.record_reply(answer))
    return request.reply


async def leave_seat(request: Request) -> Reply:
    run, conversation = await find_thread(request)
    seat = request.params["seat"]
    name = next(
        (each for each, holder in conversation.state.seats.items() if holder.seat == seat), None
    )
    if name is None:
        raise NotFound("Nobody has this seat.", seat=seat)
    _check_may_take(request, name)
    command = seats.LeaveSeat(node_id=conversation.node_id, name=name, seat=seat)
    await request.services.host.handle(run.tenant, run.run_id, command)
    return Reply(b"", 204)


async def revoke_unless_seated(
    request: Request, run: Run, conversation: Conversation, key: Key, seat: str
) -> None:
    """Revoke the new key and raise SeatTaken when another program has the seat."""
    services = request.services
    now = (await services.host.view(run.tenant, run.run_id)).run.conversations[conversation.node_id]
    try:
        check_holds_seat(request, now, key.speaks_as[0], seat)
    except SeatTaken:
        await services.store.revoke_key(run.tenant, key.id, services.clock.millis())
        raise


def check_holds_seat(request: Request, conversation: Conversation, name: str, seat: str) -> None:
    if not has_seat(conversation.state, name, seat):
        holder, at = conversation.state.seats.get(name), request.services.clock.millis()
        raise seats.seat_taken_error(name, at if holder is None else holder.at, at)


def _check_may_take(request: Request, name: str) -> None:
    check_participant_name(name, "as")
    if is_person(name):
        raise BadRequest("People have no seats: they come and go as they like.", field="as")
    if not request.caller.admin and name not in request.caller.speaks_as:
        raise Forbidden("Only an administrator's key hands out names it is not bound to.")


SEAT_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/seats", call=take_seat,
        scope="approvals:respond", body=ClaimSeat, joined=True, errors=(404, 409, 422),
        summary="Be the one program that has a name in a thread",
        tag="Threads", operation_id="takeSeat", answer=SeatView,
        description="Claims a participant's name for one program, so that two programs never "
        "answer for it at once. Refuses with 409 while another program holds the name, unless "
        "`replace` is set.",
    ),
    Endpoint(
        method="DELETE", path="/v1/host/moot/threads/{thread_id}/seats/{seat}", call=leave_seat,
        scope="approvals:respond", joined=True, status=204, errors=(404,),
        summary="Have it no longer",
        tag="Threads", operation_id="leaveSeat",
        description="Gives up the claim of a program to a participant's name. Refuses a seat that "
        "nobody has with 404.",
    ),
)  # fmt: skip
