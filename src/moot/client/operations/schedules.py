"""Schedules: their operations, and their resource of the client."""

from collections.abc import Mapping
from types import NoneType
from typing import Any

from moot.client.http.methods import Resource, S, client_method
from moot.client.http.operation import RequestParts, Retry, operation
from moot.core.schedules.model import OverlapPolicy
from moot.wire.schedules import (
    BackfillSchedule,
    ChangeSchedule,
    CheckedSchedule,
    FireList,
    FireResultList,
    PauseSchedule,
    RunSchedule,
    ScheduleChangeList,
    ScheduleDetail,
    ScheduleList,
    ScheduleView,
    SkipResult,
    SkipSlot,
)

#: the fields of a schedule: JSON, or the request itself
ScheduleFields = Mapping[str, Any] | ChangeSchedule


@operation("POST /v1/host/moot/schedules", ScheduleView, Retry.ONCE)
def create_schedule(schedule: ScheduleFields) -> RequestParts:
    """Schedule a workflow: ``{"workflowId": …, "kind": "words", …}``."""
    return RequestParts(body=schedule)


@operation("POST /v1/host/moot/schedules:check", CheckedSchedule)
def check_schedule(schedule: ScheduleFields) -> RequestParts:
    """Preview the times of a schedule without creating it."""
    return RequestParts(body=schedule)


@operation("GET /v1/host/moot/schedules", ScheduleList)
def list_schedules(
    *, roster_id: str | None = None, workflow_id: str | None = None, limit: int = 100,
    cursor: str | None = None,
) -> RequestParts:  # fmt: skip
    """List schedules and their next times."""
    query = {"rosterId": roster_id, "workflowId": workflow_id, "limit": limit, "cursor": cursor}
    return RequestParts(query=query)


@operation("GET /v1/host/moot/schedules/{schedule_id}", ScheduleDetail)
def get_schedule(schedule_id: str) -> RequestParts:
    """Get a schedule and the states of its fires."""
    return RequestParts(schedule_id)


@operation("PATCH /v1/host/moot/schedules/{schedule_id}", ScheduleView, Retry.ONCE)
def change_schedule(schedule_id: str, changes: ScheduleFields) -> RequestParts:
    """Change the named fields; None resets a field to its default."""
    return RequestParts(schedule_id, body=changes)


@operation("DELETE /v1/host/moot/schedules/{schedule_id}", NoneType)
def remove_schedule(schedule_id: str) -> RequestParts:
    """Remove a schedule. Runs that it has started continue."""
    return RequestParts(schedule_id)


@operation("POST /v1/host/moot/schedules/{schedule_id}/pause", ScheduleView)
def pause_schedule(
    schedule_id: str, *, reason: str | None = None, until: str | None = None
) -> RequestParts:
    """Start no runs for now. Slots during the pause are not caught up."""
    return RequestParts(schedule_id, body=PauseSchedule(reason=reason or "", until=until))


@operation("POST /v1/host/moot/schedules/{schedule_id}/resume", ScheduleView)
def resume_schedule(schedule_id: str) -> RequestParts:
    """End a pause."""
    return RequestParts(schedule_id, body={})


@operation("POST /v1/host/moot/schedules/{schedule_id}/run", FireResultList, Retry.ONCE)
def run_schedule(
    schedule_id: str, *, overlap: OverlapPolicy | None = None, fire: str | None = None,
    dry_run: bool = False,
) -> RequestParts:  # fmt: skip
    """Run now, or with ``fire`` run a missed slot."""
    return RequestParts(schedule_id, body=RunSchedule(overlap=overlap, fire=fire, dry_run=dry_run))


@operation("POST /v1/host/moot/schedules/{schedule_id}/skip", SkipResult, Retry.ONCE)
def skip_slot(
    schedule_id: str, *, fire: str | None = None, undo: bool = False, dry_run: bool = False
) -> RequestParts:
    """Skip the next slot.

    With ``fire``, dismiss a missed slot; with ``undo``, restore the slot that was skipped last.
    """
    return RequestParts(schedule_id, body=SkipSlot(fire=fire, undo=undo, dry_run=dry_run))


@operation("POST /v1/host/moot/schedules/{schedule_id}/backfill", FireResultList, Retry.ONCE)
def backfill_schedule(
    schedule_id: str, since: str, to: str, *, overlap: OverlapPolicy | None = None,
    dry_run: bool = False,
) -> RequestParts:  # fmt: skip
    """Run past slots that had no run, both ends included."""
    body = BackfillSchedule(since=since, to=to, overlap=overlap, dry_run=dry_run)
    return RequestParts(schedule_id, body=body)


@operation("GET /v1/host/moot/schedules/{schedule_id}/fires", FireList)
def list_fires(
    schedule_id: str, *, state: str | None = None, limit: int = 50, cursor: str | None = None
) -> RequestParts:
    """List the fires of a schedule, newest first."""
    return RequestParts(schedule_id, query={"state": state, "limit": limit, "cursor": cursor})


@operation("GET /v1/host/moot/schedules/{schedule_id}/history", ScheduleChangeList)
def list_schedule_changes(schedule_id: str) -> RequestParts:
    """List the changes of a schedule, newest first."""
    return RequestParts(schedule_id)


class SchedulesResource(Resource[S]):
    """All schedules."""

    make = client_method(create_schedule)
    check = client_method(check_schedule)
    list = client_method(list_schedules)
    get = client_method(get_schedule)
    change = client_method(change_schedule)
    remove = client_method(remove_schedule)
    pause = client_method(pause_schedule)
    resume = client_method(resume_schedule)
    run = client_method(run_schedule)
    skip = client_method(skip_slot)
    backfill = client_method(backfill_schedule)
    fires = client_method(list_fires)
    history = client_method(list_schedule_changes)
