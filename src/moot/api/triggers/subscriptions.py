"""Subscriptions to what comes in: register, look at, pause, give another secret, remove."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.http import times
from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.api.interrupts import notices
from moot.api.triggers.webhooks import MANAGE, PAGE
from moot.core.errors import BadRequest, NotProvided
from moot.core.events import iso
from moot.core.triggers.subscriptions import ATTEMPTED, Mode, RetryPolicy, Subscription
from moot.store.records import Attempt, Delivery, DeliveryFilter
from moot.triggers.inbound.deliveries import REDELIVERED
from moot.triggers.inbound.items import SOURCES
from moot.triggers.inbound.overview import Page, Whereabouts
from moot.triggers.inbound.subscriptions import Seen, Wanted
from moot.triggers.schedules.fire_rows import fire_of
from moot.triggers.schedules.records import SOURCE as SCHEDULE

#: where strangers send what they have
INGEST = "/v1/host/moot/ingest"
RETENTION_MS = 30 * 24 * 3_600_000
MOST_SHOWN = 50
MOST_LISTED = 1000

RosterId = Annotated[str, Meta(min_length=1, max_length=128)]
WorkflowId = Annotated[str, Meta(min_length=1, max_length=256)]
Mapping = Annotated[dict[str, Annotated[str, Meta(min_length=1, max_length=512)]],
                    Meta(max_length=100)]  # fmt: skip


class Verification(Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode = "required"


class Register(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """``inputMapping``: an input of the workflow, and where in the trigger event it stands
    (``webhook.body.issue.title``). ``rosterId``: the standing agent whose work it is."""

    source: Literal["webhook", "email", "form"]
    workflow_id: WorkflowId
    dedup_enabled: bool = True
    retry_policy: RetryPolicy = RetryPolicy()
    verification: Verification = Verification()
    input_mapping: Mapping = {}
    roster_id: RosterId | None = None


class Change(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """``rosterId`` hands it to a standing agent; null takes it back. ``inputMapping`` takes the
    place of the one before; an empty one fills inputs by their names. ``note``: why it pauses;
    ``until``: when that ends by itself, an ISO time."""

    state: Literal["active", "paused"] | UnsetType = UNSET
    note: Annotated[str, Meta(max_length=500)] = ""
    until: str | None = None
    roster_id: RosterId | UnsetType | None = UNSET
    input_mapping: Mapping | UnsetType = UNSET


async def register(request: Request) -> Reply:
    asked = await request.read(Register)
    if asked.source != "webhook":
        raise NotProvided(
            f"This host takes nothing in by {asked.source}; a webhook it does.",
            capability="triggerBridge.ingestion",
        )
    made = await request.services.triggers.subscriptions.register(
        request.caller.tenant,
        Wanted(
            workflow_id=asked.workflow_id,
            dedup_enabled=asked.dedup_enabled,
            retry_policy=asked.retry_policy,
            verification=asked.verification.mode,
            input_mapping=asked.input_mapping,
            roster_id=asked.roster_id,
        ),
        request.caller.id,
    )
    return _once(request, made, 201)


async def rotate(request: Request) -> Reply:
    seen = await _seen(request)
    fresh = await request.services.triggers.subscriptions.rotate(seen, request.caller.id)
    return _once(request, fresh, 200)


def _once(request: Request, it: Subscription, status: int) -> Reply:
    """The one time that the secret is told; what is remembered of the answer has none."""
    shown = {
        "subscription": it.shown(),
        "binding": {
            "ingestUrl": ingest_url(request, it.subscription_id),
            "secretFingerprint": it.fingerprint,
        },
    }
    if it.earlier is not None:
        shown["binding"]["earlierUntil"] = iso(it.earlier_until * 1000)
    whole = {**shown, "binding": {**shown["binding"], "signingSecret": it.secret}}
    location = {"Location": f"/v1/trigger-subscriptions/{it.subscription_id}"}
    reply = Reply(whole, status, location if status == 201 else {})
    reply.remembered = encode(shown)
    return reply


def ingest_url(request: Request, name: str) -> str:
    return f"{request.services.host.peers.address}{INGEST}/{name}"


async def list_all(request: Request) -> Reply:
    """``inert`` says of each that wakes nobody why: its member is away. Of one source alone, which
    people look at, also what each leads to."""
    limit = request.integer("limit", MOST_LISTED, 1, MOST_LISTED)
    page = await _page(request, limit)
    found = page.found
    where = whereabouts(request)
    reasons = {
        seen.it.subscription_id: why
        for seen in found
        if (why := await where.inert(seen.it.roster_id, seen.it.workflow_id)) is not None
    }
    shown = [seen.it.shown() for seen in found]
    more: dict[str, Any] = {"inert": reasons} if reasons else {}
    if "source" in request.query:
        more["bound"] = {seen.it.subscription_id: bound(seen.it) for seen in found}
    if page.last is not None:
        more["nextCursor"] = page.last
    return Reply({"subscriptions": shown, "total": page.total, **more})


async def _page(request: Request, limit: int) -> Page:
    triggers, tenant = request.services.triggers, request.caller.tenant
    after, source = request.query.get("cursor", ""), request.query.get("source")
    if source is None:
        return await triggers.listening.page(tenant, after, limit)
    known = (*SOURCES, SCHEDULE)
    if source not in known:
        raise BadRequest(f"source is one of {', '.join(known)}.", field="source")
    if source == SCHEDULE:
        own = await triggers.listening.scheduled(tenant)
    else:
        inbound = await triggers.subscriptions.inbound(tenant)
        own = [seen for seen in inbound if seen.it.source == source]
    found = [seen for seen in own if seen.it.subscription_id > after]
    last = found[limit - 1].it.subscription_id if len(found) > limit else None
    return Page(found[:limit], len(own), last)


def whereabouts(request: Request) -> Whereabouts:
    return Whereabouts(request.services.roster, request.caller.tenant)


async def with_inert(request: Request, it: Subscription) -> dict[str, Any]:
    """What it leads to, and why it leads nowhere."""
    why = await whereabouts(request).inert(it.roster_id, it.workflow_id)
    return bound(it) if why is None else {**bound(it), "inert": why}


async def read(request: Request) -> Reply:
    """With its newest deliveries, and what has become of its state."""
    seen = await _seen(request)
    name, tenant = seen.it.subscription_id, seen.tenant
    store = request.services.store
    found, _ = await store.deliveries(tenant, DeliveryFilter(subscription=name), None, MOST_SHOWN)
    changes = await request.services.triggers.listening.changes(seen)
    told = [{**change, "at": iso(change["at"] * 1000)} for change in changes]
    return Reply(
        {
            "subscription": seen.it.shown(),
            "bound": await with_inert(request, seen.it),
            **_where(request, seen.it),
            "counts": await store.delivery_counts(tenant, name),
            "deliveries": [delivery(each) for each in found],
            "stateChanges": told,
        }
    )


def _where(request: Request, it: Subscription) -> dict[str, Any]:
    """To which address strangers send."""
    return {"ingestUrl": ingest_url(request, it.subscription_id)} if it.secret is not None else {}


async def change(request: Request) -> Reply:
    asked = await request.read(Change)
    triggers, by = request.services.triggers, request.caller.id
    seen = await _seen(request)
    if asked == Change(note=asked.note, until=asked.until):
        raise BadRequest("Send state, rosterId or inputMapping.")
    if asked.until is not None and asked.state != "paused":
        raise BadRequest("until is the end of a pause: send it with state paused.", field="until")
    until = times.to_come(asked.until, request.services.clock.millis())
    if asked.input_mapping is not UNSET:
        seen = await triggers.subscriptions.map_inputs(seen, asked.input_mapping, by)
    if asked.roster_id is not UNSET:
        seen = await triggers.listening.hand_to(seen, asked.roster_id, by)
    if asked.state == "paused":
        seen = await triggers.listening.pause(seen, by, asked.note, until)
        triggers.courier.news()  # it may end before the one that was there did
    elif asked.state == "active":
        seen = await triggers.listening.resume(seen, by)
        await notices.changed(request)
    if seen.it.state == "active":
        await triggers.queues.wake(seen)
    return Reply({"subscription": seen.it.shown(), "bound": await with_inert(request, seen.it)})


async def remove(request: Request) -> Reply:
    """With it goes what could not be delivered; runs that it has begun go on."""
    seen, triggers = await _seen(request), request.services.triggers
    await triggers.subscriptions.remove(seen, request.caller.id)
    await triggers.deliveries.let_go(seen)
    return Reply(None, 204)


async def dead_letters(request: Request) -> Reply:
    seen = await _seen(request)
    found, cursor = await request.services.store.deliveries(
        seen.tenant,
        DeliveryFilter(subscription=seen.it.subscription_id, states=("dead", "unverified")),
        request.query.get("cursor"),
        request.integer("limit", 50, 1, 200),
    )
    more = {"nextCursor": cursor} if cursor is not None else {}
    return Reply({"deadLetters": [letter(seen.it, each) for each in found], **more})


async def _seen(request: Request) -> Seen:
    return await request.services.triggers.listening.must_find(
        request.caller.tenant, request.params["subscription_id"]
    )


def bound(it: Subscription) -> dict[str, Any]:
    """What a subscription leads to; the host's own matter."""
    said = {
        "workflowId": it.workflow_id,
        "rosterId": it.roster_id,
        "queue": it.queue,
        "scheduleId": it.schedule_id,
        "inputMapping": it.input_mapping,
        "note": it.note,
        "until": None if it.until is None else iso(it.until * 1000),
        "verification": {"mode": it.verification} if it.source == "webhook" else None,
    }
    return {name: value for name, value in said.items() if value}


def delivery(row: Delivery) -> dict[str, Any]:
    """Nothing of what came in."""
    said: dict[str, Any] = {
        "deliveryId": row.delivery_id,
        "state": row.state,
        "receivedAt": iso(row.received_at * 1000),
        "updatedAt": iso(row.updated_at * 1000),
        "attempts": [attempted(row, number) for number in range(len(row.attempts))],
    }
    more = {"runId": row.run_id, "rosterId": row.member, "reason": row.reason}
    if row.due_at is not None and row.state in ("retrying", "waiting"):
        more["nextTryAt"] = iso(row.due_at * 1000)
    return {**said, **{name: value for name, value in more.items() if value}}


def attempted(row: Delivery, number: int) -> dict[str, Any]:
    """One try as ``trigger.delivery.attempted`` tells it; beside it, that somebody asked again."""
    found = row.attempts[number]
    said: dict[str, Any] = {
        "eventId": found.event_id,
        "at": iso(found.at * 1000),
        "outcome": found.outcome,
    }
    if found.reason:
        said["reason"] = found.reason
    if found.outcome != REDELIVERED:
        said["type"] = ATTEMPTED
        said["payload"] = payload(row, found, number)
    return said


def payload(row: Delivery, found: Attempt, number: int) -> dict[str, Any]:
    before = [each.outcome for each in row.attempts[:number]]
    since = before[::-1].index(REDELIVERED) if REDELIVERED in before else number
    said = {
        "subscriptionId": row.subscription,
        "dedupKey": row.key,
        "attempt": since + 1,
        "outcome": found.outcome,
    }
    return {**said, "runId": row.run_id} if found.outcome == "delivered" else said


def letter(it: Subscription, row: Delivery) -> dict[str, Any]:
    """A dead letter as the protocol has it."""
    last = len(row.attempts) - 1
    unverified = row.state == "unverified"
    said: dict[str, Any] = {
        "subscriptionId": row.subscription,
        "attemptEventId": row.attempts[last].event_id,
        "attempt": payload(row, row.attempts[last], last),
        "reason": "verification_failed" if unverified else "retries_exhausted",
        "deadLetteredAt": iso(row.updated_at * 1000),
        "expiresAt": iso((row.updated_at + RETENTION_MS) * 1000),
        "deliveryId": row.delivery_id,
    }
    by_hand = it.source == "schedule" and fire_of(row).cause in ("manual", "backfill")
    if not (unverified or by_hand or row.attempts[last].unfit):  # these end nothing but themselves
        said["stateChange"] = {
            "subscriptionId": row.subscription, "source": it.source, "fromState": "active",
            "toState": "dead-lettered", "reason": "retry-exhausted",
        }  # fmt: skip
    return said


ROOT = "/v1/trigger-subscriptions"
ONE = f"{ROOT}/{{subscription_id}}"
ENDPOINTS = (
    Endpoint(
        method="GET", path=ROOT, call=list_all, scope=MANAGE, summary="What is listened to",
        query={
            "limit": ({"type": "integer", "minimum": 1, "maximum": MOST_LISTED}, "at most so many"),
            "cursor": ({"type": "string"}, "where the page before ended"),
            "source": ({"type": "string"}, "only those of queues, or of webhooks"),
        },
    ),
    Endpoint(
        method="POST", path=ROOT, call=register, body=Register, scope=MANAGE, beside="runs:create",
        status=201,
        summary="Let a webhook start runs; the answer has the secret, this once",
        errors=(404, 501),
    ),
    Endpoint(
        method="GET", path=ONE, call=read, scope=MANAGE, errors=(404,),
        summary="A subscription, its newest deliveries, the history of its state",
    ),
    Endpoint(
        method="PATCH", path=ONE, call=change, body=Change, scope=MANAGE, beside="runs:create",
        errors=(404, 409),
        summary="Pause or resume it, hand it to a standing agent, map its inputs",
    ),
    Endpoint(
        method="DELETE", path=ONE, call=remove, scope=MANAGE, status=204, errors=(404, 409),
        summary="Listen no longer",
    ),
    Endpoint(
        method="POST", path=f"{ONE}/rotate-secret", call=rotate, scope=MANAGE,
        beside="runs:create", errors=(404, 409),
        summary="Another secret; the one before stays good for a day",
    ),
    Endpoint(
        method="GET", path=f"{ONE}/dead-letters", call=dead_letters, scope=MANAGE, query=PAGE,
        summary="What could not be delivered, newest first", errors=(404,),
    ),
)  # fmt: skip
