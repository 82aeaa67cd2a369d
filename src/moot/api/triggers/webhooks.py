"""Register, pause and remove webhooks; rotate secrets; dead letters."""

from msgspec.structs import asdict, replace

from moot.api.http.request import PAGE_QUERY, TEXT, Endpoint, Reply, Request, encode
from moot.api.triggers.views import read_delivery_page
from moot.api.views import copy_fields, iso_or_none
from moot.core.catalogue import check_event_types
from moot.core.errors import BadRequest
from moot.core.errors.triggers import TenantMembershipRequired
from moot.core.events import iso
from moot.core.triggers.webhooks import WebhookRegistration
from moot.store.records import Delivery, DeliveryFilter
from moot.wire.webhooks import (
    RegisterWebhook,
    WebhookAttempt,
    WebhookDeadLetter,
    WebhookDeadLetterList,
    WebhookList,
    WebhookSecret,
    WebhookSummary,
    WebhookView,
)


async def register_webhook(request: Request) -> Reply:
    body = await request.read(RegisterWebhook)
    check_event_types(body.events)
    check_own_tenant(request, body.tenant_id)
    hook = await request.triggers.webhooks.register(
        request.tenant,
        body.url,
        tuple(dict.fromkeys(body.events)),
        tuple(dict.fromkeys(body.tags)),
        request.caller.id,
    )
    reply = Reply(_secret_view(hook), 201, {"Location": f"/v1/webhooks/{hook.webhook_id}"})
    reply.remembered = encode(webhook_view(hook))  # the secret is never written down
    return reply


async def rotate_webhook_secret(request: Request) -> Reply:
    hook = await request.triggers.webhooks.rotate(
        request.tenant, request.params["webhook_id"], request.caller.id
    )
    reply = Reply(replace(_secret_view(hook), earlier_until=iso(hook.earlier_until * 1000)))
    reply.remembered = encode(webhook_view(hook))  # the secret is never written down
    return reply


async def remove_webhook(request: Request) -> Reply:
    check_own_tenant(request, request.query.get("tenantId"))
    await request.triggers.webhooks.remove(
        request.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(None, 204)


async def list_webhooks(request: Request) -> Reply:
    hooks = request.triggers.webhooks.all(request.tenant)
    views = [await _webhook_status(request, hook) for hook in hooks]
    return Reply(WebhookList(webhooks=views, total=len(hooks)))


async def read_webhook(request: Request) -> Reply:
    triggers = request.triggers
    hook = triggers.webhooks.must_find(request.tenant, request.params["webhook_id"])
    return Reply(await _webhook_status(request, hook))


async def pause_webhook(request: Request) -> Reply:
    hook = await request.triggers.webhook_deliveries.pause(
        request.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(await _webhook_status(request, hook))


async def resume_webhook(request: Request) -> Reply:
    hook = await request.triggers.webhook_deliveries.resume(
        request.tenant, request.params["webhook_id"], request.caller.id
    )
    return Reply(await _webhook_status(request, hook))


async def _webhook_status(request: Request, hook: WebhookRegistration) -> WebhookView:
    """Return a webhook with its receiver's failures and the number of waiting deliveries."""
    tenant, services = request.tenant, request.services
    circuit = await services.triggers.webhook_deliveries.circuit(tenant, hook.webhook_id)
    counts = await services.store.delivery_counts(tenant, hook.webhook_id)
    until = circuit.waits(services.clock.millis())
    return WebhookView(
        **asdict(webhook_view(hook)),
        failures_in_a_row=circuit.row,
        last_error=circuit.error or None,
        last_error_at=iso(circuit.failures[-1] * 1000) if circuit.error else None,
        left_alone_until=iso_or_none(until),
        deliveries=counts,
        waiting=counts.get("waiting", 0) + counts.get("retrying", 0),
        dead_letters=counts.get("dead", 0),
    )


async def list_webhook_dead_letters(request: Request) -> Reply:
    tenant, webhook_id = request.tenant, request.params["webhook_id"]
    request.triggers.webhooks.must_find(tenant, webhook_id)
    where = DeliveryFilter(subscription=webhook_id, states=("dead",))
    rows, cursor = await read_delivery_page(request, tenant, where)
    letters = [dead_letter_view(each) for each in rows]
    return Reply(WebhookDeadLetterList(dead_letters=letters, next_cursor=cursor))


async def redeliver_dead_letter(request: Request) -> Reply:
    tenant, webhook_id = request.tenant, request.params["webhook_id"]
    triggers = request.triggers
    triggers.webhooks.must_find(tenant, webhook_id)
    delivery = await triggers.webhook_deliveries.again(
        tenant, webhook_id, request.params["delivery_id"]
    )
    return Reply(dead_letter_view(delivery), 202)


async def drop_dead_letter(request: Request) -> Reply:
    tenant, webhook_id = request.tenant, request.params["webhook_id"]
    triggers = request.triggers
    triggers.webhooks.must_find(tenant, webhook_id)
    name = request.params["delivery_id"]
    return Reply(
        dead_letter_view(
            await triggers.webhook_deliveries.drop(tenant, webhook_id, name, request.caller.id)
        )
    )


def webhook_view(hook: WebhookRegistration) -> WebhookSummary:
    return copy_fields(
        WebhookSummary,
        hook,
        events=list(hook.events),
        tags=list(hook.tags),
        secret_fingerprint=hook.fingerprint,
    )


def _secret_view(hook: WebhookRegistration) -> WebhookSecret:
    """Return the secret, this one time."""
    fingerprint, name = hook.fingerprint, hook.webhook_id
    return WebhookSecret(
        webhook_id=name, subscription_id=name, secret=hook.secret, secret_fingerprint=fingerprint
    )


def dead_letter_view(delivery: Delivery) -> WebhookDeadLetter:
    """Return a dead letter: the place of its event, without the content."""
    run_id, _, sequence = delivery.key.rpartition(":")
    return WebhookDeadLetter(
        delivery_id=delivery.delivery_id,
        run_id=run_id,
        sequence=int(sequence),
        event_type=delivery.subject,
        state=delivery.state,
        reason=delivery.reason,
        attempts=[copy_fields(WebhookAttempt, each) for each in delivery.attempts],
        since=iso(delivery.received_at * 1000),
    )


def check_own_tenant(request: Request, tenant: str | None) -> None:
    """Raise unless the named tenant is the caller's own."""
    if tenant is None or tenant == request.tenant:
        return
    if not tenant:
        raise BadRequest("tenantId is empty; leave it out.", field="tenantId")
    raise TenantMembershipRequired(tenant)


MANAGE = "webhooks:manage"
HOST = "/v1/host/moot/webhooks"
WEBHOOK_ENDPOINTS = (
    Endpoint("POST", "/v1/webhooks", register_webhook, scope=MANAGE, body=RegisterWebhook,
             status=201, answer=(WebhookSecret, WebhookSummary)),
    Endpoint("DELETE", "/v1/webhooks/{webhook_id}", remove_webhook, scope=MANAGE,
             query={"tenantId": TEXT}, status=204),
    Endpoint("POST", "/v1/webhooks/{webhook_id}/rotate-secret", rotate_webhook_secret, scope=MANAGE,
             answer=(WebhookSecret, WebhookSummary)),
    Endpoint("GET", HOST, list_webhooks, scope=MANAGE, answer=WebhookList),
    Endpoint("GET", f"{HOST}/{{webhook_id}}", read_webhook, scope=MANAGE, answer=WebhookView),
    Endpoint("POST", f"{HOST}/{{webhook_id}}/pause", pause_webhook, scope=MANAGE,
             answer=WebhookView),
    Endpoint("POST", f"{HOST}/{{webhook_id}}/resume", resume_webhook, scope=MANAGE,
             answer=WebhookView),
    Endpoint("GET", f"{HOST}/{{webhook_id}}/dead-letters", list_webhook_dead_letters, scope=MANAGE,
             query=PAGE_QUERY, answer=WebhookDeadLetterList),
    Endpoint("POST", f"{HOST}/{{webhook_id}}/dead-letters/{{delivery_id}}:redeliver",
             redeliver_dead_letter, scope=MANAGE, status=202, answer=WebhookDeadLetter),
    Endpoint("POST", f"{HOST}/{{webhook_id}}/dead-letters/{{delivery_id}}:drop", drop_dead_letter,
             scope=MANAGE, answer=WebhookDeadLetter),
)  # fmt: skip
