"""Show a standing agent's work: triggers, next fires, recent runs, questions.

A few bounded look-ups read it, also for a dismissed agent.
"""

from typing import Any

from msgspec import Struct

from moot.agents.roster.members import MemberRecord, member_from_record
from moot.api.http.request import Reply, Request
from moot.api.roster.views import check_roster_offered, member_model, member_view
from moot.api.schedules.views import schedule_view
from moot.core.errors import NotFound
from moot.core.events import iso
from moot.store.counts import DAY_MS, Tally
from moot.store.protocol import RunIndexRow
from moot.triggers.inbound.overview import Trigger

#: Days in the counts, including today.
DAYS = 14
#: Limits of the overview: runs, triggers, questions.
MOST_RUNS = 20_000
MOST_TRIGGERS = 100
MOST_ASKED = 1000
#: Fields of a schedule that describe its times.
TIMES = ("kind", "words", "cronExpr", "intervalSeconds", "at", "timezone", "nextFireAt", "problem")


class MemberProfile(Struct, frozen=True):
    """A standing agent, present or dismissed, and its view."""

    record: MemberRecord
    view: dict[str, Any]


async def read_member_work(request: Request) -> Reply:
    check_roster_offered(request)
    profile = await _find_profile(request)
    tenant, name = request.caller.tenant, profile.record.entry.roster_id
    store, now = request.services.store, request.services.clock.millis()
    first = now // DAY_MS - DAYS + 1
    triggers = await request.services.triggers.listening.of_member(tenant, name)
    trigger_views = [
        (each.it.workflow_id or "", await _trigger_view(request, each))
        for each in triggers[:MOST_TRIGGERS]
    ]
    newest = {row.workflow_id: row for row in await store.newest_runs(tenant, name, MOST_RUNS)}
    counts = await store.tally(tenant, name, first * DAY_MS, MOST_RUNS)
    names = dict.fromkeys((*profile.record.entry.workflows, *(flow for flow, _ in trigger_views)))
    portfolio = [
        {
            "workflowId": flow,
            "triggers": [trigger for of, trigger in trigger_views if of == flow],
            **_last_run(newest.get(flow)),
            **_daily_counts([each for each in counts if each.workflow_id == flow], first),
        }
        for flow in names
    ]
    questions = [
        {
            "number": number, "id": item.item_id, "runId": item.run_id, "kind": item.kind,
            "question": item.question, "actions": item.actions, "askedBy": item.asked_by,
        }
        for number, item in await store.asked_by(tenant, name, MOST_ASKED)
    ]  # fmt: skip
    body = {"portfolio": portfolio, "triggers": len(triggers), "waiting": questions}
    model = await member_model(request, profile.record)
    return Reply({**profile.view, **({} if model is None else {"model": model}), **body})


async def _find_profile(request: Request) -> MemberProfile:
    """Return the member's profile. Raise NotFound for an id that never was a member."""
    tenant, services = request.caller.tenant, request.services
    roster_id = request.params["roster_id"].replace("%3A", ":").replace("%3a", ":")
    member = await services.roster.find(tenant, roster_id)
    if member is not None:
        record, view = member.hired, member_view(request, member.hired)
    else:
        versions = await services.roster.history(tenant, roster_id)
        if not versions:
            await services.roster.must_find(tenant, roster_id)
        record, at = member_from_record(versions[0]), iso(versions[0].created_at * 1000)
        view = {**member_view(request, record), "status": "dismissed", "since": at}
        view["dismissed"] = {"by": versions[0].by, "at": at}
        view.pop("paused", None)
    you = {"you": request.caller.id}
    return MemberProfile(
        record, {**view, **({"hiredBy": record.hired_by} if record.hired_by else {}), **you}
    )


async def _trigger_view(request: Request, trigger: Trigger) -> dict[str, Any]:
    subscription = trigger.it
    view: dict[str, Any] = {
        "source": subscription.source,
        "subscriptionId": subscription.subscription_id,
        "state": subscription.state,
    }
    if subscription.queue is not None:
        view["queue"] = subscription.queue
    if subscription.schedule_id is not None:
        view |= {
            "scheduleId": subscription.schedule_id,
            **await _schedule_times(request, subscription.schedule_id),
        }
    return view if trigger.inert is None else {**view, "inert": trigger.inert}


async def _schedule_times(request: Request, schedule_id: str) -> dict[str, Any]:
    schedules = request.services.triggers.schedules
    try:
        view = schedule_view(await schedules.find(request.caller.tenant, schedule_id))
    except NotFound:
        return {}  # removed meanwhile
    return {name: view[name] for name in (*TIMES, "state") if view.get(name) is not None}


def _last_run(row: RunIndexRow | None) -> dict[str, Any]:
    if row is None:
        return {}
    run = {"runId": row.run_id, "status": row.status, "startedAt": iso(row.created_at * 1000)}
    if row.ended_at is not None:
        run["endedAt"] = iso(row.ended_at * 1000)
    return {"last": run}


def _daily_counts(counts: list[Tally], first: int) -> dict[str, Any]:
    """Return how many runs started on each day, the oldest first."""
    runs, failed = [0] * DAYS, 0
    for each in counts:
        runs[min(max(each.day - first, 0), DAYS - 1)] += each.count
        failed += each.count if each.status == "failed" else 0
    return {"days": runs, "runs": sum(runs), "failed": failed}
