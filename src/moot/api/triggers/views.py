"""Show items, deliveries, attempts and dead letters on the wire."""

from msgspec.structs import asdict, replace

from moot.api.runs.snapshot import run_metrics
from moot.api.services import Services
from moot.core.errors import RunNotFound
from moot.core.events import decode, decode_head, iso
from moot.core.payloads.agents import InvocationCompleted
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.runs import DeliveryAttempted
from moot.core.state.run import Run
from moot.core.triggers.subscriptions import RetryPolicy, TriggerSubscription
from moot.engine.host import Host
from moot.store.records import Delivery, DeliveryAttempt
from moot.triggers.inbound.items import REDELIVERED
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.wire.triggers import (
    AttemptPayload,
    AttemptView,
    DeliveryProgress,
    DeliveryView,
    ItemMember,
    ItemRun,
    ItemTurn,
    QueueItemView,
    RetryRule,
    StateChange,
    SubscriptionDeadLetter,
    SubscriptionSummary,
    TriggerBinding,
    VerificationView,
)

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


def item_row(row: Delivery) -> QueueItemView:
    progress = delivery_progress(row)
    return QueueItemView(**asdict(progress), item_id=row.delivery_id, subject=row.subject)


async def item_details(services: Services, row: Delivery) -> QueueItemView:
    """Return an item with its content, run, member and turns.

    The content is left out when it was dropped or is secret.
    """
    host, content = services.host, await services.triggers.items.content(row)
    view = replace(item_row(row), content=content)
    if row.run_id is None:
        return view
    try:
        run = (await host.view(row.tenant, row.run_id)).run
    except RunNotFound:
        return view
    turns = await _list_turns(host, row.tenant, run.run_id)
    return replace(view, run=_item_run(run), member=_item_member(run), turns=turns)


def _item_run(run: Run) -> ItemRun:
    return ItemRun(
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        status=run.status.value,
        started_at=iso(run.started_at * 1000),
        metrics=run_metrics(run),
    )


def _item_member(run: Run) -> ItemMember | None:
    member = run.member
    if member is None:
        return None
    return ItemMember(roster_id=member.roster_id, persona=member.persona, agent_id=member.agent_id)


async def _list_turns(host: Host, tenant: str, run_id: str) -> list[ItemTurn]:
    """Return the first turns in order, by id and name, without their text."""
    turns: list[ItemTurn] = []
    after = -1
    while len(turns) < MOST_TURNS and (rows := await host.store.read(tenant, run_id, after, PAGE)):
        after += len(rows)
        turns += [_turn_row(each) for each in rows if decode_head(each).type in TURN_EVENTS]
    return turns[:MOST_TURNS]


def _turn_row(raw: bytes) -> ItemTurn:
    event = decode(raw)
    match event.payload:
        case ConversationExchanged(turn=turn):
            by = turn.speaker_id
        case payload:
            by = getattr(payload, "agent_id", None)
    return ItemTurn(
        sequence=event.sequence,
        type=event.type,
        at=event.timestamp,
        by=by if isinstance(by, str) else None,
    )


def summary_view(subscription: TriggerSubscription) -> SubscriptionSummary:
    """Return the fields of the protocol."""
    return SubscriptionSummary(
        subscription_id=subscription.subscription_id,
        source=subscription.source,
        state=subscription.state,
        dedup_enabled=subscription.dedup_enabled,
        retry_policy=retry_view(subscription.retry_policy),
        secret_fingerprint=subscription.fingerprint,
    )


def retry_view(policy: RetryPolicy) -> RetryRule:
    return RetryRule(max_attempts=policy.max_attempts, backoff=policy.backoff)


def binding_view(subscription: TriggerSubscription) -> TriggerBinding:
    """Return the target of a subscription, in the host's own form."""
    is_webhook = subscription.source == "webhook"
    return TriggerBinding(
        workflow_id=subscription.workflow_id or None,
        roster_id=subscription.roster_id or None,
        queue=subscription.queue or None,
        schedule_id=subscription.schedule_id or None,
        input_mapping=subscription.input_mapping,
        note=subscription.note,
        until=None if subscription.until is None else iso(subscription.until * 1000),
        verification=VerificationView(mode=subscription.verification) if is_webhook else None,
    )


def delivery_view(row: Delivery) -> DeliveryView:
    """Return a delivery without its content."""
    return DeliveryView(**asdict(delivery_progress(row)), delivery_id=row.delivery_id)


def delivery_progress(row: Delivery) -> DeliveryProgress:
    is_due = row.due_at is not None and row.state in ("retrying", "waiting")
    return DeliveryProgress(
        state=row.state,
        received_at=iso(row.received_at * 1000),
        updated_at=iso(row.updated_at * 1000),
        attempts=[attempt_view(row, number) for number in range(len(row.attempts))],
        run_id=row.run_id or None,
        roster_id=row.member or None,
        reason=row.reason or "",
        next_try_at=iso((row.due_at or 0) * 1000) if is_due else None,
    )


def attempt_view(row: Delivery, number: int) -> AttemptView:
    """Return one attempt with its ``trigger.delivery.attempted`` event.

    A redelivery by hand has no event.
    """
    attempt = row.attempts[number]
    view = AttemptView(
        event_id=attempt.event_id,
        at=iso(attempt.at * 1000),
        outcome=attempt.outcome,
        reason=attempt.reason or None,
    )
    if attempt.outcome == REDELIVERED:
        return view
    payload = attempt_payload(row, attempt, number)
    return replace(view, type=DeliveryAttempted.event_type, payload=payload)


def attempt_payload(row: Delivery, attempt: DeliveryAttempt, number: int) -> AttemptPayload:
    before = [each.outcome for each in row.attempts[:number]]
    since = before[::-1].index(REDELIVERED) if REDELIVERED in before else number
    return AttemptPayload(
        subscription_id=row.subscription,
        dedup_key=row.key,
        attempt=since + 1,
        outcome=attempt.outcome,
        run_id=row.run_id if attempt.outcome == "delivered" else None,
    )


def subscription_dead_letter(
    subscription: TriggerSubscription, row: Delivery
) -> SubscriptionDeadLetter:
    """Return a dead letter in the protocol's form."""
    last = len(row.attempts) - 1
    unverified = row.state == "unverified"
    by_hand = subscription.source == "schedule" and fire_from_row(row).cause in (
        "manual",
        "backfill",
    )
    stops = not (unverified or by_hand or row.attempts[last].unfit)
    return SubscriptionDeadLetter(
        subscription_id=row.subscription,
        attempt_event_id=row.attempts[last].event_id,
        attempt=attempt_payload(row, row.attempts[last], last),
        reason="verification_failed" if unverified else "retries_exhausted",
        dead_lettered_at=iso(row.updated_at * 1000),
        expires_at=iso((row.updated_at + RETENTION_MS) * 1000),
        delivery_id=row.delivery_id,
        state_change=_dead_letter_change(subscription, row) if stops else None,
    )


def _dead_letter_change(subscription: TriggerSubscription, row: Delivery) -> StateChange:
    return StateChange(
        subscription_id=row.subscription,
        source=subscription.source,
        from_state="active",
        to_state="dead-lettered",
        reason="retry-exhausted",
    )
