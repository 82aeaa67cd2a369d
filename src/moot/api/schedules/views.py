"""How schedules, their fires and what was done to them look on the wire."""

from typing import Any

from msgspec import UNSET

from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.decide import bar_at
from moot.core.schedules.manual import upcoming
from moot.core.schedules.model import Ledger, Schedule, ScheduleDraft, Seen
from moot.core.schedules.slots import timing_of
from moot.core.secrets import masked
from moot.core.workflows.graph import Flow
from moot.store.protocol import Delivery
from moot.store.records import Record
from moot.triggers.schedules.fire_rows import fire_of
from moot.triggers.schedules.records import plan_of
from moot.triggers.schedules.snapshot import Case

SHOWN = 5

#: fields of a spec -> their names on the wire
_NAMES = dict(
    zip(ScheduleDraft.__struct_fields__, ScheduleDraft.__struct_encode_fields__, strict=True)
)


def changed(record: Record) -> dict[str, Any]:
    """Who did what; of a pause, why."""
    plan, body = plan_of(record), {
        "did": record.version, "by": record.by, "at": iso(record.created_at * 1000),
    }  # fmt: skip
    if record.version in ("paused", "stopped") and plan.pause is not None and plan.pause.reason:
        body["reason"] = plan.pause.reason
    return body


def fired(row: Delivery) -> dict[str, Any]:
    """A fire, or several skipped ones in a row."""
    fire = fire_of(row)
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


def shown(case: Case) -> dict[str, Any]:
    """One whose zone is not known any more is shown, too, and says so."""
    try:
        return {**_kept(case), **_going(case)}
    except ScheduleRefused as refusal:
        return {**_kept(case), "state": "failed", "problem": refusal.message}


def _going(case: Case) -> dict[str, Any]:
    spec, kept = case.plan.spec, case.book.decided
    return {**times(spec, next_fires(spec, kept, case.seen)), "state": _state(case)}


def _kept(case: Case) -> dict[str, Any]:
    plan, book, spec = case.plan, case.book, case.plan.spec
    body: dict[str, Any] = {
        **fields(spec),
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


def _state(case: Case) -> str:
    """``held`` is what its member makes of it, ``failed`` and ``dead-lettered`` what could not be
    begun; ``ended`` has no time left."""
    spec, kept, now = case.plan.spec, case.book.decided, case.seen.now
    if (bar := bar_at(spec, kept, Seen(now=now), now)) is not None:
        return case.plan.stopped or bar.reason if bar.reason == "paused" else bar.reason
    if any(each.holds(now) for each in case.seen.bars):
        return "held"
    return "active" if upcoming(spec, kept, case.seen, 1) or kept.buffered else "ended"


def times(spec: Schedule, dues: list[int]) -> dict[str, Any]:
    """Every field of the spec, and the next times at which it will start something."""
    timing, body = timing_of(spec), fields(spec)
    body["timezone"] = timing.zone
    if spec.kind == "words":
        comes_to = timing.cron or f"every {(timing.every or 0) // 1000} s"
        body["comesTo"] = comes_to
    found = [iso(due * 1000) for due in dues]
    return {**body, "nextFireAt": found[0] if found else None, "nextFires": found}


def fields(spec: Schedule) -> dict[str, Any]:
    return {
        name: value for field, name in _NAMES.items() if (value := getattr(spec, field)) is not None
    }


def veiled(said: dict[str, Any], flow: Flow | None) -> dict[str, Any]:
    """The schedule without what its inputs keep secret. Without a workflow, all of them do."""
    if not said.get("inputs"):
        return said
    mode, secret = ("mask", None) if flow is None else (flow.masking, flow.sensitive)
    inputs = {
        name: masked(mode, value) if secret is None or name in secret else value
        for name, value in said["inputs"].items()
    }
    return {**said, "inputs": {name: each for name, each in inputs.items() if each is not UNSET}}


def next_fires(spec: Schedule, kept: Ledger, seen: Seen) -> list[int]:
    found = upcoming(spec, kept, seen, SHOWN + len(kept.skips))
    return [each.due for each in found if each.skipped is None][:SHOWN]
