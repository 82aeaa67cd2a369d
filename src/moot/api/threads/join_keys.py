"""Keys for one participant of one thread."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from moot.api.access.auth import LIVE_PREFIX, new_key
from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.api.threads import controls, councils, seats
from moot.core.conversations import joining
from moot.core.errors import BadRequest, ConversationClosed, Forbidden
from moot.core.events import iso
from moot.core.state.conversation import thread_id
from moot.core.text.names import full_name, is_person

JOIN_SCOPES = ["runs:read", "approvals:respond"]
JOIN_SECONDS = 7 * 24 * 3600

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Join(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"as_": "as", "expires_in": "expiresInSeconds"},
):
    as_: Name | UnsetType = UNSET
    #: the same as ``as``
    name: Name | UnsetType = UNSET
    #: what is known of him, where he is invited with it
    profile: dict[str, Any] = {}
    expires_in: Annotated[int, Meta(ge=1, le=31_536_000)] = JOIN_SECONDS
    #: the seat that the key is for: none is made for who has lost it
    seat: seats.Word | UnsetType = UNSET


async def join(request: Request) -> Reply:
    """A key for one participant in one thread. It can do nothing else. Where somebody takes part by
    invitation, whoever makes the key invites him with it."""
    run, talk = await councils.place(request)
    asked = await request.read(Join)
    if not talk.open:
        raise ConversationClosed("The conversation is closed; nobody can join it any more.")
    caller, services, name = request.caller, request.services, _name(asked)
    joining.check(name, "as")
    if not caller.admin and name not in caller.speaks_as:
        raise Forbidden("Only an administrator's key hands out names it is not bound to.")
    if asked.seat is not UNSET:
        seats.must_hold(request, talk, name, str(asked.seat))
    if not is_person(name) and joining.needs_seat(talk, name):
        about = {"profile": asked.profile} if asked.profile else {}
        content = {"invite": {"participant_id": name, **about}}
        command = await controls.control(request, talk, content)
        await services.host.handle(run.tenant, run.run_id, command)
    secret = services.clock.new_secret(LIVE_PREFIX)
    scopes = [scope for scope in JOIN_SCOPES if caller.admin or scope in caller.scopes]
    key = new_key(services.clock, secret, f"join {name}"[:128], run.tenant, scopes, [])
    expires_at = key.created_at + asked.expires_in * 1000
    if caller.expires_at is not None:
        expires_at = min(expires_at, caller.expires_at)
    place_of = f"{run.run_id}/{talk.node_id}"
    key = replace(key, speaks_as=[name], expires_at=expires_at, thread=place_of)
    await services.store.put_key(key)
    if asked.seat is not UNSET:  # who takes it over ends the keys there are then: look after that
        await seats.keep(request, run, talk, key, str(asked.seat))
    body = {
        "keyId": key.id,
        "threadId": thread_id(run, talk),
        "as": name,
        "expiresAt": iso(expires_at * 1000),
    }
    reply = Reply({**body, "token": secret}, 201, {"Cache-Control": "no-store"})
    reply.remembered = encode(body)  # the secret is never written down
    return reply


def _name(asked: Join) -> str:
    if (asked.as_ is UNSET) == (asked.name is UNSET):
        raise BadRequest("Say once who joins: as.", field="as")
    return full_name(str(asked.name if asked.as_ is UNSET else asked.as_))


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/threads/{thread_id}/join", call=join,
        scope="approvals:respond", body=Join, status=201,
        summary="Make a key for one participant of one thread", errors=(404, 409, 422),
    ),
)  # fmt: skip
