"""Create keys for one participant of one thread."""

from msgspec import UNSET
from msgspec.structs import replace

from moot.api.access.auth import LIVE_PREFIX, new_key
from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.api.threads import controls, seats
from moot.api.threads.lookup import find_thread
from moot.core.conversations.participants import check_participant_name
from moot.core.errors import BadRequest, ConversationClosed, Forbidden
from moot.core.events import iso
from moot.core.state.conversation import thread_id
from moot.core.state.participants import needs_invitation
from moot.core.text.names import full_name, is_person
from moot.wire.threads import JoinThread, JoinToken

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
        seats.check_holds_seat(request, conversation, name, str(body.seat))
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
        await seats.revoke_unless_seated(request, run, conversation, key, str(body.seat))
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
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/join", call=create_join_key,
        scope="approvals:respond", body=JoinThread, status=201,
        summary="Make a key for one participant of one thread", errors=(404, 409, 422),
        tag="Threads", operation_id="createJoinKey", answer=JoinToken,
        description="Creates a key that speaks as one participant of one thread and can do "
        "nothing else. Invites the participant where that is needed. Only the first answer "
        "contains the token. Only an administrator's key may name any participant; others name "
        "themselves.",
    ),
)  # fmt: skip
