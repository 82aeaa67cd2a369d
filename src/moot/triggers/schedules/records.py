"""A schedule as it is on disk: a record with its spec, a ledger with what was decided, and the
subscription that its deliveries belong to. Of the last only its name is kept; all it says is the
schedule's."""

from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Pause
from moot.core.schedules.model import Fire, Schedule
from moot.core.schedules.model import Ledger as Decided
from moot.core.triggers.subscriptions import Subscription
from moot.store.protocol import Guard, Ledger
from moot.store.records import Record

KIND = "schedule"
SUBSCRIPTION = "subscription"
SOURCE: Final = "schedule"

#: why a subscription stands still, where the protocol has a word for it
STOPPED: dict[str | None, str | None] = {"dead-lettered": "retry-exhausted", "failed": None}

#: runs of a schedule that are remembered as not ended
MOST_GOING = 100


class Plan(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The record: what is to happen, in whose name, and what was last done to it."""

    spec: Schedule
    subscription: str
    #: runs are started in this name
    owner: str
    #: what happened in this version: made, changed, paused, stopped, resumed, removed
    did: str
    pause: Pause | None = None
    #: of a pause that the host made, because runs could not be begun: what the protocol calls it
    stopped: Literal["failed", "dead-lettered"] | None = None


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


_plan = msgspec.json.Decoder(Plan).decode
_book = msgspec.json.Decoder(Book).decode


def plan_of(record: Record) -> Plan:
    return _plan(record.body)


def book_of(ledger: Ledger) -> Book:
    return _book(ledger.body)


def as_planned(it: Subscription, plan: Plan, now: int) -> Subscription:
    """The subscription of a schedule, as it is at a time. It has no state of its own."""
    spec, pause = plan.spec, plan.pause
    paused = pause is not None and pause.holds(now)
    stopped = plan.stopped if paused else None
    off = not spec.enabled or paused
    return replace(
        it,
        state=stopped or ("paused" if off else "active"),
        reason=STOPPED.get(stopped, "operator-paused") if off else None,
        workflow_id=spec.workflow_id,
        roster_id=spec.roster_id,
        note=pause.reason if pause is not None and paused else "",
        until=pause.until if pause is not None and paused else None,
    )


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


def subscription_record(tenant: str, plan: Plan, by: str, now: int, gone: bool = False) -> Record:
    """That there is a subscription, and whose it is."""
    made = Subscription(
        subscription_id=plan.subscription, source=SOURCE, schedule_id=plan.spec.schedule_id,
        owner=plan.owner, created_at=now,
    )  # fmt: skip
    return Record(
        tenant=tenant,
        kind=SUBSCRIPTION,
        name=plan.subscription,
        version=plan.did,
        body=msgspec.json.encode(made),
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
