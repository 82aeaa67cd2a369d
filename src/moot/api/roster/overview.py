"""A standing agent at a glance: what wakes it, when next, how it went lately, what it asks.

Read in a few look-ups that are bounded whatever it has done so far; also of one that was let go.
"""

from typing import Any

from msgspec import Struct

from moot.agents.roster.members import Hired, decoded
from moot.api.http.request import Reply, Request
from moot.api.roster.views import model_of, offered, shown
from moot.api.schedules.views import shown as schedule_shown
from moot.core.errors import NotFound
from moot.core.events import iso
from moot.store.protocol import RunRow
from moot.store.tallies import DAY_MS, Tally
from moot.triggers.inbound.overview import Trigger

#: days that are counted, this one included
DAYS = 14
#: of its runs, those that are looked at; of what wakes it, what is shown
MOST_RUNS = 20_000
MOST_TRIGGERS = 100
MOST_ASKED = 1000
#: of a schedule, what its times are told by
TIMES = ("kind", "words", "cronExpr", "intervalSeconds", "at", "timezone", "nextFireAt", "problem")


class Person(Struct, frozen=True):
    """Whoever it is, or was."""

    hired: Hired
    said: dict[str, Any]


async def work(request: Request) -> Reply:
    offered(request)
    person = await _person(request)
    tenant, name = request.caller.tenant, person.hired.entry.roster_id
    store, now = request.services.store, request.services.clock.millis()
    first = now // DAY_MS - DAYS + 1
    triggers = await request.services.triggers.listening.of_member(tenant, name)
    told = [
        (each.it.workflow_id or "", await _trigger(request, each))
        for each in triggers[:MOST_TRIGGERS]
    ]
    newest = {row.workflow_id: row for row in await store.newest_runs(tenant, name, MOST_RUNS)}
    counts = await store.tally(tenant, name, first * DAY_MS, MOST_RUNS)
    names = dict.fromkeys((*person.hired.entry.workflows, *(flow for flow, _ in told)))
    portfolio = [
        {
            "workflowId": flow,
            "triggers": [trigger for of, trigger in told if of == flow],
            **_last(newest.get(flow)),
            **_days([each for each in counts if each.workflow_id == flow], first),
        }
        for flow in names
    ]
    asked = [
        {
            "number": number, "id": item.item_id, "runId": item.run_id, "kind": item.kind,
            "question": item.question, "actions": item.actions, "askedBy": item.asked_by,
        }
        for number, item in await store.asked_by(tenant, name, MOST_ASKED)
    ]  # fmt: skip
    body = {"portfolio": portfolio, "triggers": len(triggers), "waiting": asked}
    model = await model_of(request, person.hired)
    return Reply({**person.said, **({} if model is None else {"model": model}), **body})


async def _person(request: Request) -> Person:
    """Raises NotFound for who never was a member."""
    tenant, services = request.caller.tenant, request.services
    roster_id = request.params["roster_id"].replace("%3A", ":").replace("%3a", ":")
    seat = await services.roster.find(tenant, roster_id)
    if seat is not None:
        hired, said = seat.hired, shown(request, seat.hired)
    else:
        known = await services.roster.history(tenant, roster_id)
        if not known:
            await services.roster.must_find(tenant, roster_id)
        hired, at = decoded(known[0]), iso(known[0].created_at * 1000)
        said = {**shown(request, hired), "status": "dismissed", "since": at}
        said["dismissed"] = {"by": known[0].by, "at": at}
        said.pop("paused", None)
    you = {"you": request.caller.id}
    return Person(hired, {**said, **({"hiredBy": hired.hired_by} if hired.hired_by else {}), **you})


async def _trigger(request: Request, trigger: Trigger) -> dict[str, Any]:
    it = trigger.it
    said: dict[str, Any] = {"source": it.source, "subscriptionId": it.subscription_id,
                            "state": it.state}  # fmt: skip
    if it.queue is not None:
        said["queue"] = it.queue
    if it.schedule_id is not None:
        said |= {"scheduleId": it.schedule_id, **await _times(request, it.schedule_id)}
    return said if trigger.inert is None else {**said, "inert": trigger.inert}


async def _times(request: Request, schedule_id: str) -> dict[str, Any]:
    schedules = request.services.triggers.schedules
    try:
        found = schedule_shown(await schedules.find(request.caller.tenant, schedule_id))
    except NotFound:
        return {}  # removed meanwhile
    return {name: found[name] for name in (*TIMES, "state") if found.get(name) is not None}


def _last(row: RunRow | None) -> dict[str, Any]:
    if row is None:
        return {}
    said = {"runId": row.run_id, "status": row.status, "startedAt": iso(row.created_at * 1000)}
    if row.ended_at is not None:
        said["endedAt"] = iso(row.ended_at * 1000)
    return {"last": said}


def _days(counts: list[Tally], first: int) -> dict[str, Any]:
    """How many runs were begun on each day, the oldest first."""
    runs, failed = [0] * DAYS, 0
    for each in counts:
        runs[min(max(each.day - first, 0), DAYS - 1)] += each.count
        failed += each.count if each.status == "failed" else 0
    return {"days": runs, "runs": sum(runs), "failed": failed}
