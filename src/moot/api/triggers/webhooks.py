"""Webhooks: register, rotate the secret, remove; what could not be delivered."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.core.errors import BadRequest
from moot.core.errors.triggers import TenantMembershipRequired
from moot.core.event_types import check_types
from moot.core.events import iso
from moot.core.triggers.webhooks import Circuit, Webhook
from moot.store.records import Delivery, DeliveryFilter

Url = Annotated[str, Meta(min_length=1, max_length=2048)]
EventName = Annotated[str, Meta(min_length=1, max_length=128)]
Tag = Annotated[str, Meta(min_length=1, max_length=128)]


class Register(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """``events`` are types of events, or ``*`` for all of them."""

    url: Url
    events: Annotated[list[EventName], Meta(min_length=1, max_length=200)]
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    tenant_id: str | None = None


async def register(request: Request) -> Reply:
    asked = await request.read(Register)
    check_types(asked.events)
    keep_to_tenant(request, asked.tenant_id)
    hook = await request.services.triggers.webhooks.register(
        request.caller.tenant,
        asked.url,
        tuple(dict.fromkeys(asked.events)),
        tuple(dict.fromkeys(asked.tags)),
        request.caller.id,
    )
    reply = Reply(_secret(hook), 201, {"Location": f"/v1/webhooks/{hook.webhook_id}"})
    reply.remembered = encode(shown(hook))  # the secret is never written down
    return reply


async def rotate(request: Request) -> Reply:
    hook = await request.services.triggers.webhooks.rotate(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    reply = Reply({**_secret(hook), "earlierUntil": iso(hook.earlier_until * 1000)})
    reply.remembered = encode(shown(hook))  # the secret is never written down
    return reply


async def remove(request: Request) -> Reply:
    keep_to_tenant(request, request.query.get("tenantId"))
    await request.services.triggers.webhooks.remove(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(None, 204)


async def list_webhooks(request: Request) -> Reply:
    found = request.services.triggers.webhooks.all(request.caller.tenant)
    told = [await _doing(request, hook) for hook in found]
    return Reply({"webhooks": told, "total": len(found)})


async def read(request: Request) -> Reply:
    triggers = request.services.triggers
    hook = triggers.webhooks.must_find(request.caller.tenant, request.params["webhook_id"])
    return Reply(await _doing(request, hook))


async def pause(request: Request) -> Reply:
    hook = await request.services.triggers.outgoing.pause(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(await _doing(request, hook))


async def resume(request: Request) -> Reply:
    hook = await request.services.triggers.outgoing.resume(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(await _doing(request, hook))


async def _doing(request: Request, hook: Webhook) -> dict[str, Any]:
    """A webhook, how its receiver does, and how much waits for it."""
    tenant, services = request.caller.tenant, request.services
    circuit = await services.triggers.outgoing.circuit(tenant, hook.webhook_id)
    counts = await services.store.delivery_counts(tenant, hook.webhook_id)
    return {
        **shown(hook),
        **_failing(circuit, services.clock.millis()),
        "deliveries": counts,
        "waiting": counts.get("waiting", 0) + counts.get("retrying", 0),
        "deadLetters": counts.get("dead", 0),
    }


def _failing(circuit: Circuit, now: int) -> dict[str, Any]:
    said: dict[str, Any] = {"failuresInARow": circuit.row}
    if circuit.error:
        said |= {"lastError": circuit.error, "lastErrorAt": iso(circuit.failures[-1] * 1000)}
    if (until := circuit.waits(now)) is not None:
        said["leftAloneUntil"] = iso(until * 1000)
    return said


async def dead_letters(request: Request) -> Reply:
    tenant, webhook_id = request.caller.tenant, request.params["webhook_id"]
    request.services.triggers.webhooks.must_find(tenant, webhook_id)
    limit = request.integer("limit", 50, 1, 200)
    found, cursor = await request.services.store.deliveries(
        tenant,
        DeliveryFilter(subscription=webhook_id, states=("dead",)),
        request.query.get("cursor"),
        limit,
    )
    more = {"nextCursor": cursor} if cursor is not None else {}
    return Reply({"deadLetters": [letter(each) for each in found], **more})


async def redeliver(request: Request) -> Reply:
    tenant, webhook_id = request.caller.tenant, request.params["webhook_id"]
    triggers = request.services.triggers
    triggers.webhooks.must_find(tenant, webhook_id)
    found = await triggers.outgoing.again(tenant, webhook_id, request.params["delivery_id"])
    return Reply(letter(found), 202)


async def drop(request: Request) -> Reply:
    tenant, webhook_id = request.caller.tenant, request.params["webhook_id"]
    triggers = request.services.triggers
    triggers.webhooks.must_find(tenant, webhook_id)
    name = request.params["delivery_id"]
    return Reply(letter(await triggers.outgoing.drop(tenant, webhook_id, name, request.caller.id)))


def shown(hook: Webhook) -> dict[str, Any]:
    return {
        "webhookId": hook.webhook_id,
        "url": hook.url,
        "events": list(hook.events),
        "tags": list(hook.tags),
        "state": hook.state,
        "secretFingerprint": hook.fingerprint,
        "createdAt": iso(hook.created_at * 1000),
    }


def _secret(hook: Webhook) -> dict[str, Any]:
    """The one time that the secret is told."""
    return {
        "webhookId": hook.webhook_id,
        "subscriptionId": hook.webhook_id,
        "secret": hook.secret,
        "secretFingerprint": hook.fingerprint,
    }


def letter(delivery: Delivery) -> dict[str, Any]:
    """Where the event stands that could not be told; not what it says."""
    run_id, _, sequence = delivery.key.rpartition(":")
    return {
        "deliveryId": delivery.delivery_id,
        "runId": run_id,
        "sequence": int(sequence),
        "eventType": delivery.subject,
        "state": delivery.state,
        "reason": delivery.reason,
        "attempts": [
            {"at": iso(each.at * 1000), "outcome": each.outcome, "reason": each.reason}
            for each in delivery.attempts
        ],
        "since": iso(delivery.received_at * 1000),
    }


def keep_to_tenant(request: Request, tenant: str | None) -> None:
    """A tenant that is named must be the caller's own."""
    if tenant is None or tenant == request.caller.tenant:
        return
    if not tenant:
        raise BadRequest("tenantId is empty; leave it out.", field="tenantId")
    raise TenantMembershipRequired(tenant)


MANAGE = "webhooks:manage"
HOST = "/v1/host/moot/webhooks"
PAGE: dict[str, tuple[dict[str, Any], str]] = {
    "limit": ({"type": "integer", "minimum": 1, "maximum": 200}, "at most so many"),
    "cursor": ({"type": "string"}, "where the page before ended"),
}
ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/webhooks", call=register, body=Register, scope=MANAGE,
        status=201, summary="Be told of events; the answer has the secret, this once",
    ),
    Endpoint(
        method="DELETE", path="/v1/webhooks/{webhook_id}", call=remove, scope=MANAGE, status=204,
        query={"tenantId": ({"type": "string"}, "the caller's own, where it is named")},
        summary="Be told nothing more", errors=(404,),
    ),
    Endpoint(
        method="POST", path="/v1/webhooks/{webhook_id}/rotate-secret", call=rotate, scope=MANAGE,
        summary="Another secret; the one before stays good for a day", errors=(404,),
    ),
    Endpoint(
        method="GET", path=HOST, call=list_webhooks, scope=MANAGE, summary="Who is told what",
    ),
    Endpoint(
        method="GET", path=f"{HOST}/{{webhook_id}}", call=read, scope=MANAGE,
        summary="A webhook, and how its receiver does", errors=(404,),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/pause", call=pause, scope=MANAGE,
        summary="Call it no more, and keep what happens for it", errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/resume", call=resume, scope=MANAGE,
        summary="Call it again at once, also after failures", errors=(404, 409),
    ),
    Endpoint(
        method="GET", path=f"{HOST}/{{webhook_id}}/dead-letters", call=dead_letters, scope=MANAGE,
        query=PAGE, summary="What could not be delivered, newest first", errors=(404,),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/dead-letters/{{delivery_id}}:redeliver",
        call=redeliver, scope=MANAGE, status=202, summary="Try a dead letter once more",
        errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/dead-letters/{{delivery_id}}:drop",
        call=drop, scope=MANAGE, summary="Take a dead letter off the list", errors=(404, 409),
    ),
)  # fmt: skip
