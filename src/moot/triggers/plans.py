"""A schedule as it is on disk: a record with its spec, a ledger with what was decided, and the
subscription that its deliveries belong to."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.roster import Pause
from moot.core.schedule import Fire, Schedule
from moot.core.schedule import Ledger as Decided
from moot.store.protocol import Guard, Ledger
from moot.store.standing import Record

KIND = "schedule"
SUBSCRIPTION = "subscription"
SOURCE = "schedule"

#: runs of a schedule that are remembered as not ended
MOST_GOING = 100


class Plan(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The record: what is to happen, in whose name, and what was last done to it."""

    spec: Schedule
    subscription: str
    #: runs are started in this name
    owner: str
    #: what happened in this version: made, changed, paused, resumed, removed
    did: str
    pause: Pause | None = None


class Tail(Struct, frozen=True, rename="camel"):
    """The newest row of its fires, if it is a skip that the next one may be put into."""

    key: str
    fire: Fire


class Book(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The ledger: what was decided, and which of its runs were not seen to end."""

    decided: Decided
    going: tuple[str, ...] = ()
    tail: Tail | None = None
    last_run: str | None = None
    last_fire: int | None = None
    #: of a condition that waits for a change: what it came to at the slot before, as JSON
    observed: str | None = None


class Subscribed(Struct):
    """What a schedule needs to know of its subscription."""

    state: str = "active"


_plan = msgspec.json.Decoder(Plan).decode
_book = msgspec.json.Decoder(Book).decode
_subscribed = msgspec.json.Decoder(Subscribed).decode


def plan_of(record: Record) -> Plan:
    return _plan(record.body)


def book_of(ledger: Ledger) -> Book:
    return _book(ledger.body)


def delivers(record: Record) -> bool:
    """Whether a subscription is one that lets anything through."""
    return _subscribed(record.body).state == "active"


def guard_of(record: Record) -> Guard:
    return Guard(tenant=record.tenant, kind=record.kind, name=record.name, revision=record.revision)


def plan_record(tenant: str, plan: Plan, by: str, now: int, gone: bool = False) -> Record:
    return Record(
        tenant=tenant,
        kind=KIND,
        name=plan.spec.schedule_id,
        version=plan.did,
        body=msgspec.json.encode(plan),
        created_at=now,
        by=by,
        gone=gone,
    )


def subscription_record(
    tenant: str, plan: Plan, by: str, now: int, state: str = "active", gone: bool = False
) -> Record:
    """The subscription of source ``schedule`` that belongs to a schedule."""
    body: dict[str, Any] = {
        "subscriptionId": plan.subscription,
        "source": SOURCE,
        "state": state,
        "dedupEnabled": True,
        "workflowId": plan.spec.workflow_id,
        "scheduleId": plan.spec.schedule_id,
    }
    if plan.spec.roster_id is not None:
        body["rosterId"] = plan.spec.roster_id
    return Record(
        tenant=tenant,
        kind=SUBSCRIPTION,
        name=plan.subscription,
        version=plan.did,
        body=msgspec.json.encode(body),
        created_at=now,
        by=by,
        gone=gone,
    )


def ledger_row(
    tenant: str, schedule_id: str, book: Book, before: int, due_at: int | None, gone: bool = False
) -> Ledger:
    """The next revision of a schedule's ledger; ``before`` is that of the one it follows."""
    return Ledger(
        tenant=tenant,
        kind=KIND,
        name=schedule_id,
        revision=before + 1,
        body=msgspec.json.encode(book),
        due_at=due_at,
        gone=gone,
    )
