"""Notices about outgoing webhooks, one for each receiver in trouble.

One notice for each dead letter would hide everything else: a receiver that is away for a day leaves
thousands.
"""

from moot.api.http.request import Request
from moot.core.events import iso
from moot.core.triggers.webhooks import Circuit, WebhookRegistration
from moot.wire.interrupts import InboxNotice


async def list_webhook_notices(request: Request) -> list[InboxNotice]:
    triggers, tenant = request.triggers, request.tenant
    notices = []
    for hook in triggers.webhooks.all(tenant):
        circuit = await triggers.webhook_deliveries.known(tenant, hook.webhook_id)
        counts = await request.store.delivery_counts(tenant, hook.webhook_id)
        waiting, dead = counts.get("waiting", 0) + counts.get("retrying", 0), counts.get("dead", 0)
        if hook.state == "failed" or circuit.failing or dead:
            notices.append(_webhook_notice(hook, circuit, waiting, dead))
    return notices


def _webhook_notice(
    hook: WebhookRegistration, circuit: Circuit, waiting: int, dead: int
) -> InboxNotice:
    failing = circuit.failing and hook.state != "failed"
    parts = [
        *(["was given up; register it again"] if hook.state == "failed" else []),
        *([f"fails: {circuit.error}"] if failing else []),
        *([f"{waiting} wait" if waiting > 1 else "1 waits"] if failing and waiting else []),
        *([f"{dead} dead letters" if dead > 1 else "1 dead letter"] if dead else []),
    ]
    since = circuit.failures[-1] if circuit.failures else hook.created_at
    active = hook.state == "active"
    return InboxNotice(
        id=hook.webhook_id,
        kind="webhook",
        text=f"The webhook {hook.webhook_id} to {_public_url(hook.url)} {'; '.join(parts)}",
        source="outbound",
        subscription_id=hook.webhook_id,
        reason=circuit.error,
        count=waiting + dead,
        actions=[
            *(["resume"] if failing else []),
            *(["redeliver"] if dead and active else []),
            *(["drop"] if dead else []),
        ],
        since=iso(since * 1000),
    )


def _public_url(url: str) -> str:
    """Return the address without its query and fragment, which may hold a secret."""
    return url.partition("?")[0].partition("#")[0]
