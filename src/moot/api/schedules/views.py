"""Show schedules, their fires and their changes on the wire."""

from msgspec import UNSET
from msgspec.structs import replace

from moot.api.views import copy_fields, iso_or_none
from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.manual import upcoming_slots
from moot.core.schedules.model import Schedule, ScheduleFacts, SlotLedger
from moot.core.schedules.pauses import blocked_period_at
from moot.core.schedules.slots import timing_from_spec
from moot.core.secrets import mask_value
from moot.core.workflows.flow import Flow
from moot.store.records import Delivery, Record
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.triggers.schedules.records import schedule_from_record
from moot.triggers.schedules.snapshot import ScheduleSnapshot
from moot.wire.schedules import (
    CheckedSchedule,
    FireView,
    Owner,
    ScheduleChange,
    SchedulePause,
    ScheduleView,
)

SHOWN_FIRES = 5


def change_view(record: Record) -> ScheduleChange:
    """Return who did what; for a pause also why."""
    pause = schedule_from_record(record).pause
    is_pause = record.version in ("paused", "stopped") and pause is not None
    return ScheduleChange(
        did=record.version,
        by=record.by,
        at=iso(record.created_at * 1000),
        reason=(pause.reason or None) if is_pause and pause is not None else None,
    )


def fire_view(row: Delivery) -> FireView:
    """Return a fire, or several skipped ones in a row."""
    fire = fire_from_row(row)
    return FireView(
        fire_id=row.delivery_id,
        state=row.state,
        slot=iso(fire.slot * 1000),
        due_at=iso(fire.due * 1000),
        cause=fire.cause,
        count=fire.count,
        decided_at=iso(row.updated_at * 1000),
        until=iso_or_none(fire.until),
        reason=row.reason or None,
        run_id=row.run_id,
    )


def schedule_view(case: ScheduleSnapshot) -> ScheduleView:
    """Return a schedule. One with an unknown zone is ``failed`` and has a ``problem``."""
    stored = _stored_view(case)
    try:
        spec = case.plan.spec
        times = _time_fields(spec, next_fires(spec, case.book.decided, case.seen))
        return replace(stored, **times, state=_schedule_state(case))
    except ScheduleRefused as refusal:
        return replace(stored, problem=refusal.message)


def _stored_view(case: ScheduleSnapshot) -> ScheduleView:
    plan, book, spec = case.plan, case.book, case.plan.spec
    has_fired = book.last_run is not None and book.last_fire is not None
    return copy_fields(
        ScheduleView,
        spec,
        subscription_id=plan.subscription,
        owner=Owner(tenant_id=case.tenant),
        state="failed",
        going=list(case.seen.going),
        waiting=len(book.decided.buffered),
        updated_at=iso(case.record.created_at * 1000),
        left_out=[iso(slot * 1000) for slot in book.decided.skips],
        pause=_pause_view(case),
        last_run_id=book.last_run if has_fired else None,
        last_fire_at=iso((book.last_fire or 0) * 1000) if has_fired else None,
    )


def _pause_view(case: ScheduleSnapshot) -> SchedulePause | None:
    pause = case.plan.pause
    if pause is None or not pause.holds(case.seen.now):
        return None
    return copy_fields(SchedulePause, pause)


def _schedule_state(case: ScheduleSnapshot) -> str:
    """Return the state.

    ``held``: its member is away. ``failed``, ``dead-lettered``: runs could not start. ``ended``: no
    slot is left.
    """
    spec, ledger, now = case.plan.spec, case.book.decided, case.seen.now
    if (bar := blocked_period_at(spec, ledger, ScheduleFacts(now=now), now)) is not None:
        return case.plan.stopped or bar.reason if bar.reason == "paused" else bar.reason
    if any(each.holds(now) for each in case.seen.bars):
        return "held"
    return "active" if upcoming_slots(spec, ledger, case.seen, 1) or ledger.buffered else "ended"


def checked_schedule(spec: Schedule, dues: list[int]) -> CheckedSchedule:
    """Return every field of the spec and the next times at which it will start a run."""
    return copy_fields(CheckedSchedule, spec, **_time_fields(spec, dues), ok=True)


def _time_fields(spec: Schedule, dues: list[int]) -> dict[str, object]:
    timing, times = timing_from_spec(spec), [iso(due * 1000) for due in dues]
    fields: dict[str, object] = {
        "timezone": timing.zone,
        "next_fire_at": times[0] if times else None,
        "next_fires": times,
    }
    if spec.kind == "words":
        fields["comes_to"] = timing.cron or f"every {(timing.every or 0) // 1000} s"
    return fields


def mask_inputs(inputs: dict[str, object], flow: Flow | None) -> dict[str, object]:
    """Mask the secret inputs of a schedule. Without a workflow, all inputs count as secret."""
    mode, secret = ("mask", None) if flow is None else (flow.masking, flow.sensitive)
    masked = {
        name: mask_value(mode, value) if secret is None or name in secret else value
        for name, value in inputs.items()
    }
    return {name: each for name, each in masked.items() if each is not UNSET}


def next_fires(spec: Schedule, ledger: SlotLedger, observed: ScheduleFacts) -> list[int]:
    slots = upcoming_slots(spec, ledger, observed, SHOWN_FIRES + len(ledger.skips))
    return [slot.due for slot in slots if slot.skipped is None][:SHOWN_FIRES]
