"""Show items, deliveries, attempts and dead letters on the wire."""

from typing import Any

from moot.api.runs.snapshot import run_metrics
from moot.api.services import Services
from moot.core.errors import RunNotFound
from moot.core.events import decode, decode_head, iso
from moot.core.payloads.agents import InvocationCompleted
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.runs import DeliveryAttempted
from moot.core.triggers.subscriptions import TriggerSubscription
from moot.engine.host import Host
from moot.store.records import Delivery, DeliveryAttempt
from moot.triggers.inbound.items import REDELIVERED
from moot.triggers.schedules.fire_rows import fire_from_row

ITEM_STATES = frozenset({"waiting", "retrying", "delivered", "dead", "dropped"})
#: State of an item -> status in the answer to a push.
ITEM_STATUSES = {
    "delivered": "accepted",
    "waiting": "waiting",
    "retrying": "retrying",
    "dead": "dead",
    "dropped": "dropped",
}
#: Events that count as turns.
TURN_EVENTS = frozenset({ConversationExchanged.event_type, InvocationCompleted.event_type})
MOST_TURNS = 200
PAGE = 1000

RETENTION_MS = 30 * 24 * 3_600_000


def item_row(row: Delivery) -> dict[str, Any]:
    view = delivery_view(row)
    view["itemId"] = view.pop("deliveryId")
    return {**view, "subject": row.subject} if row.subject else view


async def item_details(services: Services, row: Delivery) -> dict[str, Any]:
    """Return an item with its content, run, member and turns.

    The content is left out when it was dropped or is secret.
    """
    view, host = item_row(row), services.host
    content = await services.triggers.items.content(row)
    if content is not None:
        view["content"] = content
    if row.run_id is None:
        return view
    try:
        run = (await host.view(row.tenant, row.run_id)).run
    except RunNotFound:
        return view
    view["run"] = {
        "runId": run.run_id,
        "workflowId": run.workflow_id,
        "status": run.status.value,
        "startedAt": iso(run.started_at * 1000),
        "metrics": run_metrics(run),
    }
    if run.member is not None:
        member = run.member
        view["member"] = {
            "rosterId": member.roster_id,
            "persona": member.persona,
            "agentId": member.agent_id,
        }
    view["turns"] = await _list_turns(host, row.tenant, run.run_id)
    return view


async def _list_turns(host: Host, tenant: str, run_id: str) -> list[dict[str, Any]]:
    """Return the first turns in order, by id and name, without their text."""
    turns: list[dict[str, Any]] = []
    after = -1
    while len(turns) < MOST_TURNS and (rows := await host.store.read(tenant, run_id, after, PAGE)):
        after += len(rows)
        turns += [_turn_row(each) for each in rows if decode_head(each).type in TURN_EVENTS]
    return turns[:MOST_TURNS]


def _turn_row(raw: bytes) -> dict[str, Any]:
    event = decode(raw)
    match event.payload:
        case ConversationExchanged(turn=turn):
            by = turn.get("speakerId")
        case payload:
            by = getattr(payload, "agent_id", None)
    view = {"sequence": event.sequence, "type": event.type, "at": event.timestamp}
    return {**view, "by": by} if isinstance(by, str) else view


def binding_view(subscription: TriggerSubscription) -> dict[str, Any]:
    """Return what a subscription starts, in the host's own form."""
    fields = {
        "workflowId": subscription.workflow_id,
        "rosterId": subscription.roster_id,
        "queue": subscription.queue,
        "scheduleId": subscription.schedule_id,
        "inputMapping": subscription.input_mapping,
        "note": subscription.note,
        "until": None if subscription.until is None else iso(subscription.until * 1000),
        "verification": {"mode": subscription.verification}
        if subscription.source == "webhook"
        else None,
    }
    return {name: value for name, value in fields.items() if value}


def delivery_view(row: Delivery) -> dict[str, Any]:
    """Return a delivery without its content."""
    view: dict[str, Any] = {
        "deliveryId": row.delivery_id,
        "state": row.state,
        "receivedAt": iso(row.received_at * 1000),
        "updatedAt": iso(row.updated_at * 1000),
        "attempts": [attempt_view(row, number) for number in range(len(row.attempts))],
    }
    more = {"runId": row.run_id, "rosterId": row.member, "reason": row.reason}
    if row.due_at is not None and row.state in ("retrying", "waiting"):
        more["nextTryAt"] = iso(row.due_at * 1000)
    return {**view, **{name: value for name, value in more.items() if value}}


def attempt_view(row: Delivery, number: int) -> dict[str, Any]:
    """Return one attempt with its ``trigger.delivery.attempted`` event.

    A redelivery by hand has no event.
    """
    attempt = row.attempts[number]
    view: dict[str, Any] = {
        "eventId": attempt.event_id,
        "at": iso(attempt.at * 1000),
        "outcome": attempt.outcome,
    }
    if attempt.reason:
        view["reason"] = attempt.reason
    if attempt.outcome != REDELIVERED:
        view["type"] = DeliveryAttempted.event_type
        view["payload"] = attempt_payload(row, attempt, number)
    return view


def attempt_payload(row: Delivery, attempt: DeliveryAttempt, number: int) -> dict[str, Any]:
    before = [each.outcome for each in row.attempts[:number]]
    since = before[::-1].index(REDELIVERED) if REDELIVERED in before else number
    payload = {
        "subscriptionId": row.subscription,
        "dedupKey": row.key,
        "attempt": since + 1,
        "outcome": attempt.outcome,
    }
    return {**payload, "runId": row.run_id} if attempt.outcome == "delivered" else payload


def subscription_dead_letter(subscription: TriggerSubscription, row: Delivery) -> dict[str, Any]:
    """Return a dead letter in the protocol's form."""
    last = len(row.attempts) - 1
    unverified = row.state == "unverified"
    view: dict[str, Any] = {
        "subscriptionId": row.subscription,
        "attemptEventId": row.attempts[last].event_id,
        "attempt": attempt_payload(row, row.attempts[last], last),
        "reason": "verification_failed" if unverified else "retries_exhausted",
        "deadLetteredAt": iso(row.updated_at * 1000),
        "expiresAt": iso((row.updated_at + RETENTION_MS) * 1000),
        "deliveryId": row.delivery_id,
    }
    by_hand = subscription.source == "schedule" and fire_from_row(row).cause in (
        "manual",
        "backfill",
    )
    if not (
        unverified or by_hand or row.attempts[last].unfit
    ):  # these do not stop the subscription
        view["stateChange"] = {
            "subscriptionId": row.subscription, "source": subscription.source,
            "fromState": "active",
            "toState": "dead-lettered", "reason": "retry-exhausted",
        }  # fmt: skip
    return view
