"""Show items, deliveries, attempts and dead letters on the wire."""

from collections.abc import Iterable

from msgspec.structs import asdict, replace

from moot.api.http.request import Request
from moot.api.runs.snapshot import run_metrics
from moot.api.services import Services
from moot.api.views import copy_fields, iso_or_none
from moot.core.errors import BadRequest, RunNotFound
from moot.core.events import decode, decode_head, iso
from moot.core.payloads.agents import InvocationCompleted
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.runs import DeliveryAttempted
from moot.core.triggers.subscriptions import TriggerSubscription
from moot.engine.host import Host
from moot.store.records import Delivery, DeliveryAttempt, DeliveryFilter
from moot.triggers.inbound.items import REDELIVERED
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.wire import triggers

ITEM_STATES = frozenset({"waiting", "retrying", "delivered", "dead", "dropped"})
#: Events that count as turns.
TURN_EVENTS = frozenset({ConversationExchanged.event_type, InvocationCompleted.event_type})
MOST_TURNS = 200
PAGE = 1000

RETENTION_MS = 30 * 24 * 3_600_000


async def read_delivery_page(
    request: Request, tenant: str, where: DeliveryFilter
) -> tuple[list[Delivery], str | None]:
    """Return the page of deliveries that the query asks for, and the cursor after it."""
    limit = request.integer("limit", 50, 1, 200)
    return await request.store.deliveries(tenant, where, request.query.get("cursor"), limit)


def parse_words(request: Request, name: str, allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a query parameter. Raise BadRequest for one that is not allowed."""
    words = tuple(filter(None, request.query.get(name, "").split(",")))
    if unknown := set(words).difference(allowed):
        raise BadRequest(
            f"There is no {name} '{min(unknown)[:32]}'; there are {', '.join(sorted(allowed))}.",
            field=name,
        )
    return words


def item_row(row: Delivery) -> triggers.QueueItemView:
    progress = delivery_progress(row)
    return triggers.QueueItemView(**asdict(progress), item_id=row.delivery_id, subject=row.subject)


async def item_details(services: Services, row: Delivery) -> triggers.QueueItemView:
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
    ran = copy_fields(triggers.ItemRun, run, metrics=run_metrics(run))
    member = None if run.member is None else copy_fields(triggers.ItemMember, run.member)
    return replace(view, run=ran, member=member, turns=turns)


async def _list_turns(host: Host, tenant: str, run_id: str) -> list[triggers.ItemTurn]:
    """Return the first turns in order, by id and name, without their text."""
    turns: list[triggers.ItemTurn] = []
    after = -1
    while len(turns) < MOST_TURNS and (rows := await host.store.read(tenant, run_id, after, PAGE)):
        after += len(rows)
        turns += [_turn_row(each) for each in rows if decode_head(each).type in TURN_EVENTS]
    return turns[:MOST_TURNS]


def _turn_row(raw: bytes) -> triggers.ItemTurn:
    event = decode(raw)
    match event.payload:
        case ConversationExchanged(turn=turn):
            by = turn.speaker_id
        case payload:
            by = getattr(payload, "agent_id", None)
    return triggers.ItemTurn(
        sequence=event.sequence,
        type=event.type,
        at=event.timestamp,
        by=by if isinstance(by, str) else None,
    )


def summary_view(subscription: TriggerSubscription) -> triggers.SubscriptionSummary:
    """Return the fields of the protocol."""
    rule = copy_fields(triggers.RetryRule, subscription.retry_policy)
    view, fingerprint = triggers.SubscriptionSummary, subscription.fingerprint
    return copy_fields(view, subscription, retry_policy=rule, secret_fingerprint=fingerprint)


def binding_view(subscription: TriggerSubscription) -> triggers.TriggerBinding:
    """Return the target of a subscription, in the host's own form."""
    is_webhook = subscription.source == "webhook"
    return copy_fields(
        triggers.TriggerBinding,
        subscription,
        workflow_id=subscription.workflow_id or None,
        roster_id=subscription.roster_id or None,
        queue=subscription.queue or None,
        schedule_id=subscription.schedule_id or None,
        verification=triggers.VerificationView(mode=subscription.verification)
        if is_webhook
        else None,
    )


def delivery_view(row: Delivery) -> triggers.DeliveryView:
    """Return a delivery without its content."""
    return triggers.DeliveryView(**asdict(delivery_progress(row)), delivery_id=row.delivery_id)


def delivery_progress(row: Delivery) -> triggers.DeliveryProgress:
    is_due = row.state in ("retrying", "waiting")
    return copy_fields(
        triggers.DeliveryProgress,
        row,
        attempts=[attempt_view(row, number) for number in range(len(row.attempts))],
        run_id=row.run_id or None,
        roster_id=row.member or None,
        reason=row.reason or "",
        next_try_at=iso_or_none(row.due_at) if is_due else None,
    )


def attempt_view(row: Delivery, number: int) -> triggers.AttemptView:
    """Return one attempt with its ``trigger.delivery.attempted`` event.

    A redelivery by hand has no event.
    """
    attempt = row.attempts[number]
    view = copy_fields(triggers.AttemptView, attempt, reason=attempt.reason or None)
    if attempt.outcome == REDELIVERED:
        return view
    payload = attempt_payload(row, attempt, number)
    return replace(view, type=DeliveryAttempted.event_type, payload=payload)


def attempt_payload(
    row: Delivery, attempt: DeliveryAttempt, number: int
) -> triggers.AttemptPayload:
    before = [each.outcome for each in row.attempts[:number]]
    since = before[::-1].index(REDELIVERED) if REDELIVERED in before else number
    return triggers.AttemptPayload(
        subscription_id=row.subscription,
        dedup_key=row.key,
        attempt=since + 1,
        outcome=attempt.outcome,
        run_id=row.run_id if attempt.outcome == "delivered" else None,
    )


def subscription_dead_letter(
    subscription: TriggerSubscription, row: Delivery
) -> triggers.SubscriptionDeadLetter:
    """Return a dead letter in the protocol's form."""
    last = len(row.attempts) - 1
    unverified = row.state == "unverified"
    by_hand = subscription.source == "schedule" and fire_from_row(row).cause in (
        "manual",
        "backfill",
    )
    stops = not (unverified or by_hand or row.attempts[last].unfit)
    change = triggers.StateChange(
        subscription_id=row.subscription,
        source=subscription.source,
        from_state="active",
        to_state="dead-lettered",
        reason="retry-exhausted",
    )
    return triggers.SubscriptionDeadLetter(
        subscription_id=row.subscription,
        attempt_event_id=row.attempts[last].event_id,
        attempt=attempt_payload(row, row.attempts[last], last),
        reason="verification_failed" if unverified else "retries_exhausted",
        dead_lettered_at=iso(row.updated_at * 1000),
        expires_at=iso((row.updated_at + RETENTION_MS) * 1000),
        delivery_id=row.delivery_id,
        state_change=change if stops else None,
    )
