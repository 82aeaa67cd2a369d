"""Keys: made, listed, revoked. The secret is shown once and kept only as a hash."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from moot.api.access.auth import LIVE_PREFIX, SCOPES, TEST_PREFIX, is_agents, new_key, usual_scopes
from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.core.conversations import joining
from moot.core.errors import BadRequest, Forbidden, NotFound
from moot.core.events import iso
from moot.core.text.nearest import nearest
from moot.store.protocol import Key

Name = Annotated[
    str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@:-]*$(?!\n)")
]


class CreateKey(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"as_": "as"}
):
    name: Name
    tenant: Name | None = None
    scopes: list[str] | None = None
    as_: list[Annotated[str, Meta(min_length=1, max_length=256)]] = []
    admin: bool = False
    test: bool = False
    expires_in_s: Annotated[int, Meta(ge=1, le=3_153_600_000)] | None = None


async def create(request: Request) -> Reply:
    asked = await request.read(CreateKey)
    caller, services = request.caller, request.services
    tenant = asked.tenant or caller.tenant
    if not caller.admin and (tenant != caller.tenant or asked.admin):
        raise Forbidden("Only an administrator's key makes keys of that kind.")
    for name in asked.as_:
        joining.check(name, "as")
    scopes = usual_scopes(asked.as_) if asked.scopes is None else asked.scopes
    _check_scopes(scopes, caller)
    _check_names(asked, caller)
    secret = services.clock.new_secret(TEST_PREFIX if asked.test else LIVE_PREFIX)
    key = new_key(services.clock, secret, asked.name, tenant, scopes, asked.as_, asked.admin)
    if asked.expires_in_s is not None:
        key = msgspec.structs.replace(key, expires_at=key.created_at + asked.expires_in_s * 1000)
    if not caller.admin and caller.expires_at is not None:  # nothing outlives what it came from
        expires_at = min(caller.expires_at, key.expires_at or caller.expires_at)
        key = msgspec.structs.replace(key, expires_at=expires_at)
    await services.store.put_key(key)
    reply = Reply({**shown(key), "key": secret}, 201, {"Cache-Control": "no-store"})
    reply.remembered = encode(shown(key))  # the secret is never written down
    return reply


def _check_names(asked: CreateKey, caller: Key) -> None:
    """A key that is bound to nobody is a person's: whoever is bound to names gives some of them."""
    if caller.admin:
        return
    if more := set(asked.as_) - set(caller.speaks_as):
        raise Forbidden("A key cannot give a name it does not have.", names=sorted(more))
    if caller.speaks_as and not asked.as_:
        raise Forbidden(
            "This key speaks as somebody; bind the new one to some of its names: as.",
            names=caller.speaks_as,
        )


def _check_scopes(scopes: list[str], caller: Key) -> None:
    for scope in scopes:
        if scope not in SCOPES:
            meant = nearest(scope, SCOPES)
            hint = f" Did you mean '{meant}'?" if meant else f" Use one of {', '.join(SCOPES)}."
            raise BadRequest(f"'{scope}' is not a scope.{hint}", field="scopes")
        if not caller.admin and scope not in caller.scopes:
            raise Forbidden("A key cannot give what it does not have.", scopeRequired=scope)


async def list_keys(request: Request) -> Reply:
    tenant = None if request.caller.admin else request.caller.tenant
    return Reply({"keys": [shown(key) for key in await request.services.store.keys(tenant)]})


async def revoke(request: Request) -> Reply:
    tenant = None if request.caller.admin else request.caller.tenant
    services = request.services
    if not request.caller.admin:
        await _check_may_revoke(request)
    found = await services.store.revoke_key(
        tenant, request.params["key_id"], services.clock.millis()
    )
    if not found:
        raise NotFound("There is no key with this id.", keyId=request.params["key_id"])
    services.keyring.forget()
    services.host.hub.dismiss(request.params["key_id"])
    return Reply(None, 204)


async def _check_may_revoke(request: Request) -> None:
    """Only an administrator takes an administrator's key away, and only a person a person's."""
    caller = request.caller
    for key in await request.services.store.keys(caller.tenant):
        if key.id != request.params["key_id"]:
            continue
        if key.admin:
            raise Forbidden("Only an administrator's key revokes one.")
        mine = bool(key.speaks_as) and set(key.speaks_as) <= set(caller.speaks_as)
        if is_agents(caller) and not mine:
            raise Forbidden("An agent's key revokes keys of its own names only.")


def shown(key: Key) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant,
        "scopes": key.scopes,
        "as": key.speaks_as,
        "admin": key.admin,
        "test": key.test,
        "createdAt": iso(key.created_at * 1000),
    }
    if key.revoked_at is not None:
        body["revokedAt"] = iso(key.revoked_at * 1000)
    if key.expires_at is not None:
        body["expiresAt"] = iso(key.expires_at * 1000)
    if key.thread is not None:
        body["thread"] = key.thread
    return body


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/host/moot/keys", call=create, scope="keys:manage",
        body=CreateKey, status=201, summary="Make a key; its secret is shown once",
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/keys", call=list_keys, scope="keys:manage",
        summary="List keys",
    ),
    Endpoint(
        method="DELETE", path="/v1/host/moot/keys/{key_id}", call=revoke, scope="keys:manage",
        status=204, summary="Revoke a key", errors=(404,),
    ),
)  # fmt: skip
