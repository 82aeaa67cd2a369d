"""Seats and keys with which outside programs join a thread."""

from msgspec import UNSET
from msgspec.structs import replace

from moot.api.access.auth import LIVE_PREFIX, new_key
from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.api.threads import controls
from moot.api.threads.lookup import find_thread
from moot.core.conversations.participants import check_participant_name
from moot.core.errors import BadRequest, ConversationClosed, Forbidden, NotFound
from moot.core.errors.threads import SeatTaken
from moot.core.events import iso
from moot.core.state.conversation import Conversation, thread_id
from moot.core.state.participants import needs_invitation
from moot.core.state.run import Run
from moot.core.state.thread_controls import has_seat
from moot.core.text.names import full_name, is_person
from moot.core.threads import seats
from moot.store.protocol import Key
from moot.wire.threads import ClaimSeat, JoinThread, JoinToken, SeatView


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

    return await request.handle(run.run_id, command, answer)


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
    await request.host.handle(run.tenant, run.run_id, command)
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
        holder, at = conversation.state.seats.get(name), request.now()
        raise seats.seat_taken_error(name, at if holder is None else holder.at, at)


def _check_may_take(request: Request, name: str) -> None:
    check_participant_name(name, "as")
    if is_person(name):
        raise BadRequest("People have no seats: they come and go as they like.", field="as")
    if not request.caller.admin and name not in request.caller.speaks_as:
        raise Forbidden("Only an administrator's key hands out names it is not bound to.")


JOIN_SCOPES = ["runs:read", "approvals:respond"]


async def create_join_key(request: Request) -> Reply:
    """Create a key for one participant of one thread. It can do nothing else.

    Where participants need an invitation, this call also invites the participant.
    """
    run, conversation = await find_thread(request)
    body = await request.read(JoinThread)
    if not conversation.open:
        raise ConversationClosed("The conversation is closed; nobody can join it any more.")
    caller, services, name = request.caller, request.services, _joining_name(body)
    check_participant_name(name, "as")
    if not caller.admin and name not in caller.speaks_as:
        raise Forbidden("Only an administrator's key hands out names it is not bound to.")
    if body.seat is not UNSET:
        check_holds_seat(request, conversation, name, str(body.seat))
    if not is_person(name) and needs_invitation(conversation, name):
        profile = {"profile": body.profile} if body.profile else {}
        content = {"invite": {"participant_id": name, **profile}}
        command = await controls.control_command(request, conversation, content)
        await services.host.handle(run.tenant, run.run_id, command)
    secret = services.clock.new_secret(LIVE_PREFIX)
    scopes = [scope for scope in JOIN_SCOPES if caller.admin or scope in caller.scopes]
    key = new_key(services.clock, secret, f"join {name}"[:128], run.tenant, scopes, [])
    expires_at = key.created_at + body.expires_in_seconds * 1000
    if caller.expires_at is not None:
        expires_at = min(expires_at, caller.expires_at)
    place = f"{run.run_id}/{conversation.node_id}"
    key = replace(key, speaks_as=[name], expires_at=expires_at, thread=place)
    await services.store.put_key(key)
    if body.seat is not UNSET:  # another program may have taken the seat meanwhile
        await revoke_unless_seated(request, run, conversation, key, str(body.seat))
    answer = JoinToken(
        key_id=key.id,
        thread_id=thread_id(run, conversation),
        speaks_as=name,
        expires_at=iso(expires_at * 1000),
    )
    reply = Reply(replace(answer, token=secret), 201, {"Cache-Control": "no-store"})
    reply.remembered = encode(answer)  # the secret is never written down
    return reply


def _joining_name(body: JoinThread) -> str:
    if (body.speaks_as is UNSET) == (body.name is UNSET):
        raise BadRequest("Say once who joins: as.", field="as")
    return full_name(str(body.name if body.speaks_as is UNSET else body.speaks_as))


JOIN_ENDPOINTS = (
    Endpoint("POST", "/v1/host/moot/threads/{thread_id}/join", create_join_key,
             scope="approvals:respond", body=JoinThread, status=201, answer=JoinToken),
    Endpoint("POST", "/v1/host/moot/threads/{thread_id}/seats", take_seat,
             scope="approvals:respond", joined=True, body=ClaimSeat, answer=SeatView),
    Endpoint("DELETE", "/v1/host/moot/threads/{thread_id}/seats/{seat}", leave_seat,
             scope="approvals:respond", joined=True, status=204),
)  # fmt: skip
