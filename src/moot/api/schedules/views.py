"""Show schedules, their fires and their changes on the wire."""

from typing import Any

from msgspec import UNSET

from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.manual import upcoming_slots
from moot.core.schedules.model import Schedule, ScheduleDraft, ScheduleFacts, SlotLedger
from moot.core.schedules.pauses import blocked_period_at
from moot.core.schedules.slots import timing_from_spec
from moot.core.secrets import mask_value
from moot.core.workflows.flow import Flow
from moot.store.records import Delivery, Record
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.triggers.schedules.records import schedule_from_record
from moot.triggers.schedules.snapshot import ScheduleSnapshot

SHOWN_FIRES = 5

#: Field of a spec -> its name on the wire.
_NAMES = dict(
    zip(ScheduleDraft.__struct_fields__, ScheduleDraft.__struct_encode_fields__, strict=True)
)


def change_view(record: Record) -> dict[str, Any]:
    """Return who did what; for a pause also why."""
    plan, body = schedule_from_record(record), {
        "did": record.version, "by": record.by, "at": iso(record.created_at * 1000),
    }  # fmt: skip
    if record.version in ("paused", "stopped") and plan.pause is not None and plan.pause.reason:
        body["reason"] = plan.pause.reason
    return body


def fire_view(row: Delivery) -> dict[str, Any]:
    """Return a fire, or several skipped ones in a row."""
    fire = fire_from_row(row)
    body: dict[str, Any] = {
        "fireId": row.delivery_id,
        "state": row.state,
        "slot": iso(fire.slot * 1000),
        "dueAt": iso(fire.due * 1000),
        "cause": fire.cause,
        "count": fire.count,
        "decidedAt": iso(row.updated_at * 1000),
    }
    if fire.until is not None:
        body["until"] = iso(fire.until * 1000)
    if row.reason:
        body["reason"] = row.reason
    if row.run_id is not None:
        body["runId"] = row.run_id
    return body


def schedule_view(case: ScheduleSnapshot) -> dict[str, Any]:
    """Return a schedule. One with an unknown zone is ``failed`` and has a ``problem``."""
    try:
        return {**_stored_fields(case), **_timing_fields(case)}
    except ScheduleRefused as refusal:
        return {**_stored_fields(case), "state": "failed", "problem": refusal.message}


def _timing_fields(case: ScheduleSnapshot) -> dict[str, Any]:
    spec, ledger = case.plan.spec, case.book.decided
    return {**times_view(spec, next_fires(spec, ledger, case.seen)), "state": _schedule_state(case)}


def _stored_fields(case: ScheduleSnapshot) -> dict[str, Any]:
    plan, book, spec = case.plan, case.book, case.plan.spec
    body: dict[str, Any] = {
        **spec_fields(spec),
        "scheduleId": spec.schedule_id,
        "subscriptionId": plan.subscription,
        "owner": {"tenantId": case.tenant},
        "going": list(case.seen.going),
        "waiting": len(book.decided.buffered),
        "createdAt": spec.created_at,
        "updatedAt": iso(case.record.created_at * 1000),
    }
    if book.decided.skips:
        body["leftOut"] = [iso(slot * 1000) for slot in book.decided.skips]
    if plan.pause is not None and plan.pause.holds(case.seen.now):
        until = plan.pause.until
        more = {} if until is None else {"until": iso(until * 1000)}
        body["pause"] = {
            "since": iso(plan.pause.since * 1000), "by": plan.pause.by,
            "reason": plan.pause.reason, **more,
        }  # fmt: skip
    if book.last_run is not None and book.last_fire is not None:
        body |= {"lastRunId": book.last_run, "lastFireAt": iso(book.last_fire * 1000)}
    return body


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


def times_view(spec: Schedule, dues: list[int]) -> dict[str, Any]:
    """Return every field of the spec and the next times at which it will start a run."""
    timing, body = timing_from_spec(spec), spec_fields(spec)
    body["timezone"] = timing.zone
    if spec.kind == "words":
        comes_to = timing.cron or f"every {(timing.every or 0) // 1000} s"
        body["comesTo"] = comes_to
    next_times = [iso(due * 1000) for due in dues]
    return {**body, "nextFireAt": next_times[0] if next_times else None, "nextFires": next_times}


def spec_fields(spec: Schedule) -> dict[str, Any]:
    return {
        name: value for field, name in _NAMES.items() if (value := getattr(spec, field)) is not None
    }


def mask_inputs(view: dict[str, Any], flow: Flow | None) -> dict[str, Any]:
    """Mask the secret inputs of a schedule. Without a workflow, all inputs count as secret."""
    if not view.get("inputs"):
        return view
    mode, secret = ("mask", None) if flow is None else (flow.masking, flow.sensitive)
    inputs = {
        name: mask_value(mode, value) if secret is None or name in secret else value
        for name, value in view["inputs"].items()
    }
    return {**view, "inputs": {name: each for name, each in inputs.items() if each is not UNSET}}


def next_fires(spec: Schedule, ledger: SlotLedger, observed: ScheduleFacts) -> list[int]:
    slots = upcoming_slots(spec, ledger, observed, SHOWN_FIRES + len(ledger.skips))
    return [slot.due for slot in slots if slot.skipped is None][:SHOWN_FIRES]
