"""Create, list and revoke API keys.

The answer shows the secret once; the store keeps only its hash.
"""

import msgspec
from msgspec.structs import asdict

from moot.api.access.auth import (
    LIVE_PREFIX,
    SCOPES,
    TEST_PREFIX,
    default_scopes,
    is_agent_key,
    new_key,
)
from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.api.views import copy_fields
from moot.core.conversations.participants import check_participant_name
from moot.core.errors import BadRequest, Forbidden, NotFound
from moot.core.text.nearest import describe_nearest
from moot.store.protocol import Key
from moot.wire.keys import CreateKey, KeyList, KeyView, NewKey


async def create_key(request: Request) -> Reply:
    body = await request.read(CreateKey)
    caller, services = request.caller, request.services
    tenant = body.tenant or caller.tenant
    if not caller.admin and (tenant != caller.tenant or body.admin):
        raise Forbidden("Only an administrator's key makes keys of that kind.")
    for name in body.as_:
        check_participant_name(name, "as")
    scopes = default_scopes(body.as_) if body.scopes is None else body.scopes
    _check_scopes(scopes, caller)
    _check_names(body, caller)
    secret = services.clock.new_secret(TEST_PREFIX if body.test else LIVE_PREFIX)
    key = new_key(services.clock, secret, body.name, tenant, scopes, body.as_, body.admin)
    if body.expires_in_s is not None:
        key = msgspec.structs.replace(key, expires_at=key.created_at + body.expires_in_s * 1000)
    # a key does not outlive the key that made it
    if not caller.admin and caller.expires_at is not None:
        expires_at = min(caller.expires_at, key.expires_at or caller.expires_at)
        key = msgspec.structs.replace(key, expires_at=expires_at)
    await services.store.put_key(key)
    view = key_view(key)
    reply = Reply(NewKey(**asdict(view), key=secret), 201, {"Cache-Control": "no-store"})
    reply.remembered = encode(view)  # the secret is never written down
    return reply


def _check_names(body: CreateKey, caller: Key) -> None:
    """Raise Forbidden when the new key would get names that the caller lacks.

    A key without names belongs to a person. A caller with names must pass on some of them.
    """
    if caller.admin:
        return
    if more := set(body.as_) - set(caller.speaks_as):
        raise Forbidden("A key cannot give a name it does not have.", names=sorted(more))
    if caller.speaks_as and not body.as_:
        raise Forbidden(
            "This key speaks as somebody; bind the new one to some of its names: as.",
            names=caller.speaks_as,
        )


def _check_scopes(scopes: list[str], caller: Key) -> None:
    for scope in scopes:
        if scope not in SCOPES:
            hint = describe_nearest(scope, SCOPES, f" Use one of {', '.join(SCOPES)}.")
            raise BadRequest(f"'{scope}' is not a scope.{hint}", field="scopes")
        if not caller.admin and scope not in caller.scopes:
            raise Forbidden("A key cannot give what it does not have.", scopeRequired=scope)


async def list_keys(request: Request) -> Reply:
    tenant = None if request.caller.admin else request.tenant
    keys = await request.store.keys(tenant)
    return Reply(KeyList(keys=[key_view(key) for key in keys]))


async def revoke_key(request: Request) -> Reply:
    tenant = None if request.caller.admin else request.tenant
    services = request.services
    if not request.caller.admin:
        await _check_may_revoke(request)
    is_revoked = await services.store.revoke_key(
        tenant, request.params["key_id"], services.clock.millis()
    )
    if not is_revoked:
        raise NotFound("There is no key with this id.", keyId=request.params["key_id"])
    services.keyring.forget()
    services.host.hub.dismiss(request.params["key_id"])
    return Reply(None, 204)


async def _check_may_revoke(request: Request) -> None:
    """Raise Forbidden unless the caller may revoke this key.

    Only an administrator revokes an administrator's key. An agent revokes only keys of its own
    names.
    """
    caller = request.caller
    for key in await request.store.keys(caller.tenant):
        if key.id != request.params["key_id"]:
            continue
        if key.admin:
            raise Forbidden("Only an administrator's key revokes one.")
        mine = bool(key.speaks_as) and set(key.speaks_as) <= set(caller.speaks_as)
        if is_agent_key(caller) and not mine:
            raise Forbidden("An agent's key revokes keys of its own names only.")


def key_view(key: Key) -> KeyView:
    return copy_fields(KeyView, key)


KEY_ENDPOINTS = (
    Endpoint("POST", "/v1/host/moot/keys", create_key, scope="keys:manage", body=CreateKey,
             status=201, answer=NewKey),
    Endpoint("GET", "/v1/host/moot/keys", list_keys, scope="keys:manage", answer=KeyList),
    Endpoint("DELETE", "/v1/host/moot/keys/{key_id}", revoke_key, scope="keys:manage", status=204),
)  # fmt: skip
