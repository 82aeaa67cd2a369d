"""Register, pause and remove webhooks; rotate secrets; dead letters."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.core.catalogue import check_event_types
from moot.core.errors import BadRequest
from moot.core.errors.triggers import TenantMembershipRequired
from moot.core.events import iso
from moot.core.triggers.webhooks import Circuit, WebhookRegistration
from moot.store.records import Delivery, DeliveryFilter

Url = Annotated[str, Meta(min_length=1, max_length=2048)]
EventName = Annotated[str, Meta(min_length=1, max_length=128)]
Tag = Annotated[str, Meta(min_length=1, max_length=128)]


class RegisterWebhookBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """``events`` are types of events, or ``*`` for all of them."""

    url: Url
    events: Annotated[list[EventName], Meta(min_length=1, max_length=200)]
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    tenant_id: str | None = None


async def register_webhook(request: Request) -> Reply:
    body = await request.read(RegisterWebhookBody)
    check_event_types(body.events)
    check_own_tenant(request, body.tenant_id)
    hook = await request.services.triggers.webhooks.register(
        request.caller.tenant,
        body.url,
        tuple(dict.fromkeys(body.events)),
        tuple(dict.fromkeys(body.tags)),
        request.caller.id,
    )
    reply = Reply(_secret_view(hook), 201, {"Location": f"/v1/webhooks/{hook.webhook_id}"})
    reply.remembered = encode(webhook_view(hook))  # the secret is never written down
    return reply


async def rotate_webhook_secret(request: Request) -> Reply:
    hook = await request.services.triggers.webhooks.rotate(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    reply = Reply({**_secret_view(hook), "earlierUntil": iso(hook.earlier_until * 1000)})
    reply.remembered = encode(webhook_view(hook))  # the secret is never written down
    return reply


async def remove_webhook(request: Request) -> Reply:
    check_own_tenant(request, request.query.get("tenantId"))
    await request.services.triggers.webhooks.remove(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(None, 204)


async def list_webhooks(request: Request) -> Reply:
    hooks = request.services.triggers.webhooks.all(request.caller.tenant)
    views = [await _webhook_status(request, hook) for hook in hooks]
    return Reply({"webhooks": views, "total": len(hooks)})


async def read_webhook(request: Request) -> Reply:
    triggers = request.services.triggers
    hook = triggers.webhooks.must_find(request.caller.tenant, request.params["webhook_id"])
    return Reply(await _webhook_status(request, hook))


async def pause_webhook(request: Request) -> Reply:
    hook = await request.services.triggers.webhook_deliveries.pause(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(await _webhook_status(request, hook))


async def resume_webhook(request: Request) -> Reply:
    hook = await request.services.triggers.webhook_deliveries.resume(
        request.caller.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(await _webhook_status(request, hook))


async def _webhook_status(request: Request, hook: WebhookRegistration) -> dict[str, Any]:
    """Return a webhook with its receiver's failures and the number of waiting deliveries."""
    tenant, services = request.caller.tenant, request.services
    circuit = await services.triggers.webhook_deliveries.circuit(tenant, hook.webhook_id)
    counts = await services.store.delivery_counts(tenant, hook.webhook_id)
    return {
        **webhook_view(hook),
        **_failure_fields(circuit, services.clock.millis()),
        "deliveries": counts,
        "waiting": counts.get("waiting", 0) + counts.get("retrying", 0),
        "deadLetters": counts.get("dead", 0),
    }


def _failure_fields(circuit: Circuit, now: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"failuresInARow": circuit.row}
    if circuit.error:
        fields |= {"lastError": circuit.error, "lastErrorAt": iso(circuit.failures[-1] * 1000)}
    if (until := circuit.waits(now)) is not None:
        fields["leftAloneUntil"] = iso(until * 1000)
    return fields


async def list_webhook_dead_letters(request: Request) -> Reply:
    tenant, webhook_id = request.caller.tenant, request.params["webhook_id"]
    request.services.triggers.webhooks.must_find(tenant, webhook_id)
    limit = request.integer("limit", 50, 1, 200)
    rows, cursor = await request.services.store.deliveries(
        tenant,
        DeliveryFilter(subscription=webhook_id, states=("dead",)),
        request.query.get("cursor"),
        limit,
    )
    more = {"nextCursor": cursor} if cursor is not None else {}
    return Reply({"deadLetters": [dead_letter_view(each) for each in rows], **more})


async def redeliver_dead_letter(request: Request) -> Reply:
    tenant, webhook_id = request.caller.tenant, request.params["webhook_id"]
    triggers = request.services.triggers
    triggers.webhooks.must_find(tenant, webhook_id)
    delivery = await triggers.webhook_deliveries.again(
        tenant, webhook_id, request.params["delivery_id"]
    )
    return Reply(dead_letter_view(delivery), 202)


async def drop_dead_letter(request: Request) -> Reply:
    tenant, webhook_id = request.caller.tenant, request.params["webhook_id"]
    triggers = request.services.triggers
    triggers.webhooks.must_find(tenant, webhook_id)
    name = request.params["delivery_id"]
    return Reply(
        dead_letter_view(
            await triggers.webhook_deliveries.drop(tenant, webhook_id, name, request.caller.id)
        )
    )


def webhook_view(hook: WebhookRegistration) -> dict[str, Any]:
    return {
        "webhookId": hook.webhook_id,
        "url": hook.url,
        "events": list(hook.events),
        "tags": list(hook.tags),
        "state": hook.state,
        "secretFingerprint": hook.fingerprint,
        "createdAt": iso(hook.created_at * 1000),
    }


def _secret_view(hook: WebhookRegistration) -> dict[str, Any]:
    """Return the secret, this one time."""
    return {
        "webhookId": hook.webhook_id,
        "subscriptionId": hook.webhook_id,
        "secret": hook.secret,
        "secretFingerprint": hook.fingerprint,
    }


def dead_letter_view(delivery: Delivery) -> dict[str, Any]:
    """Return a dead letter: the place of its event, without the content."""
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


def check_own_tenant(request: Request, tenant: str | None) -> None:
    """Raise unless the named tenant is the caller's own."""
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
WEBHOOK_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/webhooks", call=register_webhook, body=RegisterWebhookBody,
        scope=MANAGE,
        status=201, summary="Be told of events; the answer has the secret, this once",
    ),
    Endpoint(
        method="DELETE", path="/v1/webhooks/{webhook_id}", call=remove_webhook, scope=MANAGE,
        status=204,
        query={"tenantId": ({"type": "string"}, "the caller's own, where it is named")},
        summary="Be told nothing more", errors=(404,),
    ),
    Endpoint(
        method="POST", path="/v1/webhooks/{webhook_id}/rotate-secret", call=rotate_webhook_secret,
        scope=MANAGE,
        summary="Another secret; the one before stays good for a day", errors=(404,),
    ),
    Endpoint(
        method="GET", path=HOST, call=list_webhooks, scope=MANAGE, summary="Who is told what",
    ),
    Endpoint(
        method="GET", path=f"{HOST}/{{webhook_id}}", call=read_webhook, scope=MANAGE,
        summary="A webhook, and how its receiver does", errors=(404,),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/pause", call=pause_webhook, scope=MANAGE,
        summary="Call it no more, and keep what happens for it", errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/resume", call=resume_webhook, scope=MANAGE,
        summary="Call it again at once, also after failures", errors=(404, 409),
    ),
    Endpoint(
        method="GET", path=f"{HOST}/{{webhook_id}}/dead-letters", call=list_webhook_dead_letters,
        scope=MANAGE,
        query=PAGE, summary="What could not be delivered, newest first", errors=(404,),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/dead-letters/{{delivery_id}}:redeliver",
        call=redeliver_dead_letter, scope=MANAGE, status=202, summary="Try a dead letter once more",
        errors=(404, 409),
    ),
    Endpoint(
        method="POST", path=f"{HOST}/{{webhook_id}}/dead-letters/{{delivery_id}}:drop",
        call=drop_dead_letter, scope=MANAGE, summary="Take a dead letter off the list",
        errors=(404, 409),
    ),
)  # fmt: skip
