"""Operations on schedules."""

from collections.abc import Mapping
from typing import Any

from moot.client.http.operation import (
    RequestParts,
    Retry,
    operation,
    operation_without_answer,
    without_none,
)
from moot.wire.schedules import (
    CheckedSchedule,
    FireList,
    FireResultList,
    PauseSchedule,
    ScheduleChangeList,
    ScheduleDetail,
    ScheduleList,
    ScheduleView,
    SkipResult,
    SkipSlot,
)


@operation("POST /v1/host/moot/schedules", ScheduleView, Retry.ONCE)
def create_schedule(schedule: Mapping[str, Any]) -> RequestParts:
    """Schedule a workflow: ``{"workflowId": …, "kind": "words", …}``."""
    return RequestParts(body=dict(schedule))


@operation("POST /v1/host/moot/schedules:check", CheckedSchedule)
def check_schedule(schedule: Mapping[str, Any]) -> RequestParts:
    """Preview the times of a schedule without creating it."""
    return RequestParts(body=dict(schedule))


@operation("GET /v1/host/moot/schedules", ScheduleList)
def list_schedules(
    *, roster_id: str | None = None, workflow_id: str | None = None, limit: int = 100,
    cursor: str | None = None,
) -> RequestParts:  # fmt: skip
    """List schedules and their next times."""
    query = without_none(rosterId=roster_id, workflowId=workflow_id, limit=limit, cursor=cursor)
    return RequestParts(query=query)


@operation("GET /v1/host/moot/schedules/{schedule_id}", ScheduleDetail)
def get_schedule(schedule_id: str) -> RequestParts:
    """Get a schedule and the states of its fires."""
    return RequestParts(schedule_id)


@operation("PATCH /v1/host/moot/schedules/{schedule_id}", ScheduleView, Retry.ONCE)
def change_schedule(schedule_id: str, changes: Mapping[str, Any]) -> RequestParts:
    """Change the named fields; None resets a field to its default."""
    return RequestParts(schedule_id, body=dict(changes))


@operation_without_answer("DELETE /v1/host/moot/schedules/{schedule_id}")
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
    schedule_id: str, *, overlap: str | None = None, fire: str | None = None, dry_run: bool = False
) -> RequestParts:
    """Run now, or with ``fire`` run a missed slot."""
    return RequestParts(
        schedule_id, body=without_none(overlap=overlap, fire=fire, dryRun=dry_run or None)
    )


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
    schedule_id: str, since: str, to: str, *, overlap: str | None = None, dry_run: bool = False
) -> RequestParts:
    """Run past slots that had no run, both ends included."""
    more = without_none(overlap=overlap, dryRun=dry_run or None)
    return RequestParts(schedule_id, body={"from": since, "to": to, **more})


@operation("GET /v1/host/moot/schedules/{schedule_id}/fires", FireList)
def list_fires(
    schedule_id: str, *, state: str | None = None, limit: int = 50, cursor: str | None = None
) -> RequestParts:
    """List the fires of a schedule, newest first."""
    return RequestParts(schedule_id, query=without_none(state=state, limit=limit, cursor=cursor))


@operation("GET /v1/host/moot/schedules/{schedule_id}/history", ScheduleChangeList)
def list_schedule_changes(schedule_id: str) -> RequestParts:
    """List the changes of a schedule, newest first."""
    return RequestParts(schedule_id)
