"""Schedules on disk: the record, the ledger, and the subscription.

The subscription of a schedule stores only its name; its state follows from the schedule."""

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import PausePeriod
from moot.core.errors.schedules import ScheduleRefused
from moot.core.schedules.model import Fire, Schedule, SlotLedger
from moot.core.schedules.parse import has_new_times
from moot.core.triggers.subscriptions import TriggerSubscription
from moot.store.records import LedgerRow, Record, new_record

SCHEDULE_KIND = "schedule"
SUBSCRIPTION_KIND = "subscription"
SCHEDULE_SOURCE: Final = "schedule"

#: why the host stopped a schedule -> the reason that the protocol gives
PAUSE_REASONS: dict[str | None, str | None] = {"dead-lettered": "retry-exhausted", "failed": None}

#: the most unfinished runs that a ledger remembers
MOST_GOING = 100


class ScheduleRecord(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The record: the spec, its owner, and the last change."""

    spec: Schedule
    subscription: str
    #: the principal of the runs
    owner: str
    #: the change of this version: made, changed, paused, stopped, resumed, removed
    did: str
    pause: PausePeriod | None = None
    #: set when the host paused the schedule because runs could not start
    stopped: Literal["failed", "dead-lettered"] | None = None


class LastSkip(Struct, frozen=True, rename="camel"):
    """The newest fire, if it is a skip that the next skip may extend."""

    key: str
    fire: Fire


class ScheduleLedger(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The ledger: the decisions, and the runs that had not ended at the last look."""

    decided: SlotLedger
    going: tuple[str, ...] = ()
    tail: LastSkip | None = None
    last_run: str | None = None
    last_fire: int | None = None
    #: the last value, as JSON, of a condition that waits for a change
    observed: str | None = None


_decode_schedule = msgspec.json.Decoder(ScheduleRecord).decode
_decode_ledger = msgspec.json.Decoder(ScheduleLedger).decode


def schedule_from_record(record: Record) -> ScheduleRecord:
    return _decode_schedule(record.body)


def schedule_ledger_from_row(ledger: LedgerRow) -> ScheduleLedger:
    return _decode_ledger(ledger.body)


def with_schedule_state(
    subscription: TriggerSubscription, schedule: ScheduleRecord, now: int
) -> TriggerSubscription:
    """Return the subscription of a schedule with its state at a time. It has no stored state."""
    spec, pause = schedule.spec, schedule.pause
    pause = pause if pause is not None and pause.holds(now) else None
    stopped = None if pause is None else schedule.stopped
    off = not spec.enabled or pause is not None
    return replace(
        subscription,
        state=stopped or ("paused" if off else "active"),
        reason=PAUSE_REASONS.get(stopped, "operator-paused") if off else None,
        workflow_id=spec.workflow_id,
        roster_id=spec.roster_id,
        note="" if pause is None else pause.reason,
        until=None if pause is None else pause.until,
    )


def schedule_row(
    tenant: str, schedule: ScheduleRecord, by: str, now: int, gone: bool = False
) -> Record:
    place = tenant, SCHEDULE_KIND, schedule.spec.schedule_id
    return new_record(place, schedule.did, schedule, by, now, gone)


def subscription_row(
    tenant: str, schedule: ScheduleRecord, by: str, now: int, gone: bool = False
) -> Record:
    """Return the record of the subscription: its name, source and owner."""
    subscription = TriggerSubscription(
        subscription_id=schedule.subscription, source=SCHEDULE_SOURCE, owner=schedule.owner,
        schedule_id=schedule.spec.schedule_id, created_at=now,
    )  # fmt: skip
    place = tenant, SUBSCRIPTION_KIND, schedule.subscription
    return new_record(place, schedule.did, subscription, by, now, gone)


def ledger_row(
    tenant: str,
    schedule_id: str,
    schedule_ledger: ScheduleLedger,
    before: int,
    due_at: int | None,
    gone: bool = False,
) -> LedgerRow:
    """Return the next revision of a ledger; ``before`` is the revision it follows."""
    return LedgerRow(
        tenant=tenant, kind=SCHEDULE_KIND, name=schedule_id, revision=before + 1,
        body=msgspec.json.encode(schedule_ledger), due_at=due_at, gone=gone,
    )  # fmt: skip


class _EnabledPatch(Struct):
    """The switch in a patch of a schedule."""

    enabled: Any = None


def disables_schedule(patch: bytes) -> bool:
    try:
        return msgspec.json.decode(patch, type=_EnabledPatch).enabled is False
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False  # the full parse reports the error


def changes_times(old: Schedule, new: Schedule) -> bool:
    try:
        return has_new_times(old, new)
    except ScheduleRefused:
        return True  # the old times cannot be parsed any more
