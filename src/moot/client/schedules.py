"""Schedules: every call there is, and the part of the client that makes them."""

from collections.abc import Mapping
from typing import Any

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.http.operation import Again, Sent, given, operation, silent
from moot.wire import schedules as answers


@operation("POST /v1/host/moot/schedules", answers.ScheduleView, Again.ONCE)
def make(schedule: Mapping[str, Any]) -> Sent:
    """Have a workflow run at times to come: ``{"workflowId": …, "kind": "words", …}``."""
    return Sent(body=dict(schedule))


@operation("POST /v1/host/moot/schedules:check", answers.ScheduleTimes)
def check(schedule: Mapping[str, Any]) -> Sent:
    """What a schedule would do, without making it."""
    return Sent(body=dict(schedule))


@operation("GET /v1/host/moot/schedules", answers.Schedules)
def schedules(
    *, roster_id: str | None = None, workflow_id: str | None = None, limit: int = 100,
    cursor: str | None = None,
) -> Sent:  # fmt: skip
    """Schedules and their next times."""
    where = given(rosterId=roster_id, workflowId=workflow_id, limit=limit, cursor=cursor)
    return Sent(query=where)


@operation("GET /v1/host/moot/schedules/{schedule_id}", answers.ScheduleView)
def schedule(schedule_id: str) -> Sent:
    """One of them, and how its fires went."""
    return Sent(schedule_id)


@operation("PATCH /v1/host/moot/schedules/{schedule_id}", answers.ScheduleView, Again.ONCE)
def change(schedule_id: str, changes: Mapping[str, Any]) -> Sent:
    """Change what is named; None takes a field back to its default."""
    return Sent(schedule_id, body=dict(changes))


@silent("DELETE /v1/host/moot/schedules/{schedule_id}")
def remove(schedule_id: str) -> Sent:
    """End it; runs that it has started go on."""
    return Sent(schedule_id)


@operation("POST /v1/host/moot/schedules/{schedule_id}/pause", answers.ScheduleView)
def pause(schedule_id: str, *, reason: str | None = None, until: str | None = None) -> Sent:
    """Start nothing for now; nothing of it is caught up."""
    return Sent(schedule_id, body=given(reason=reason, until=until))


@operation("POST /v1/host/moot/schedules/{schedule_id}/resume", answers.ScheduleView)
def resume(schedule_id: str) -> Sent:
    """End a pause."""
    return Sent(schedule_id, body={})


@operation("POST /v1/host/moot/schedules/{schedule_id}/run", answers.FiresDone, Again.ONCE)
def run(
    schedule_id: str, *, overlap: str | None = None, fire: str | None = None, dry_run: bool = False
) -> Sent:
    """Run now; with ``fire``, run what was missed."""
    return Sent(schedule_id, body=given(overlap=overlap, fire=fire, dryRun=dry_run or None))


@operation("POST /v1/host/moot/schedules/{schedule_id}/skip", answers.Skipped, Again.ONCE)
def skip(
    schedule_id: str, *, fire: str | None = None, undo: bool = False, dry_run: bool = False
) -> Sent:
    """Leave the next time out; with ``fire``, let go what was missed; with ``undo``, take in again
    what was left out last."""
    return Sent(schedule_id, body=given(fire=fire, undo=undo or None, dryRun=dry_run or None))


@operation("POST /v1/host/moot/schedules/{schedule_id}/backfill", answers.FiresDone, Again.ONCE)
def backfill(
    schedule_id: str, since: str, to: str, *, overlap: str | None = None, dry_run: bool = False
) -> Sent:
    """Run times of the past that have had no run, both ends included."""
    more = given(overlap=overlap, dryRun=dry_run or None)
    return Sent(schedule_id, body={"from": since, "to": to, **more})


@operation("GET /v1/host/moot/schedules/{schedule_id}/fires", answers.Fires)
def fires(
    schedule_id: str, *, state: str | None = None, limit: int = 50, cursor: str | None = None
) -> Sent:
    """What became of its times, newest first."""
    return Sent(schedule_id, query=given(state=state, limit=limit, cursor=cursor))


@operation("GET /v1/host/moot/schedules/{schedule_id}/history", answers.ScheduleChanges)
def history(schedule_id: str) -> Sent:
    """Who did what to it, newest first."""
    return Sent(schedule_id)


class Schedules(Of):
    make = waits(make)
    check = waits(check)
    list = waits(schedules)
    get = waits(schedule)
    change = waits(change)
    remove = waits(remove)
    pause = waits(pause)
    resume = waits(resume)
    run = waits(run)
    skip = waits(skip)
    backfill = waits(backfill)
    fires = waits(fires)
    history = waits(history)


class AsyncSchedules(AsyncOf):
    make = awaits(make)
    check = awaits(check)
    list = awaits(schedules)
    get = awaits(schedule)
    change = awaits(change)
    remove = awaits(remove)
    pause = awaits(pause)
    resume = awaits(resume)
    run = awaits(run)
    skip = awaits(skip)
    backfill = awaits(backfill)
    fires = awaits(fires)
    history = awaits(history)
