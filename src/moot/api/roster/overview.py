"""Show a standing agent's work: triggers, next fires, recent runs, questions.

A few bounded look-ups read it, also for a dismissed agent.
"""

from msgspec import Struct
from msgspec.structs import asdict, replace

from moot.agents.roster.members import MemberRecord, member_from_record
from moot.api.http.request import Reply, Request
from moot.api.roster.views import check_roster_offered, member_model, member_view, roster_entry
from moot.api.schedules.views import schedule_view
from moot.api.views import copy_fields
from moot.core.errors import NotFound
from moot.core.events import iso
from moot.store.protocol import DAY_MS, RunIndexRow, Tally
from moot.triggers.inbound.overview import Trigger
from moot.wire.roster import (
    MemberDismissal,
    MemberQuestion,
    MemberTrigger,
    MemberView,
    MemberWork,
    MemberWorkflow,
    RecentRun,
)

#: Days in the counts, including today.
DAYS = 14
#: Limits of the overview: runs, triggers, questions.
MOST_RUNS = 20_000
MOST_TRIGGERS = 100
MOST_ASKED = 1000


class MemberProfile(Struct, frozen=True):
    """A standing agent, present or dismissed, and its view."""

    record: MemberRecord
    view: MemberView
    dismissed: MemberDismissal | None = None


async def read_member_work(request: Request) -> Reply:
    check_roster_offered(request)
    profile = await _find_profile(request)
    record, view = profile.record, profile.view
    tenant, name = request.tenant, record.entry.roster_id
    triggers = await request.triggers.listening.of_member(tenant, name)
    waiting = await request.store.asked_by(tenant, name, MOST_ASKED)
    return Reply(
        MemberWork(
            **asdict(roster_entry(record.seen(request.now()))),
            status=view.status,
            hired_at=view.hired_at,
            since=view.since,
            you=request.caller.id,
            portfolio=await _portfolio(request, record, triggers[:MOST_TRIGGERS]),
            triggers=len(triggers),
            waiting=[
                copy_fields(MemberQuestion, item, number=number, id=item.item_id)
                for number, item in waiting
            ],
            hired_by=record.hired_by or None,
            paused=view.paused,
            dismissed=profile.dismissed,
            model=await member_model(request, record),
        )
    )


async def _portfolio(
    request: Request, record: MemberRecord, triggers: list[Trigger]
) -> list[MemberWorkflow]:
    tenant, name = request.tenant, record.entry.roster_id
    store, now = request.store, request.now()
    first = now // DAY_MS - DAYS + 1
    views = [(each.it.workflow_id or "", await _trigger_view(request, each)) for each in triggers]
    newest = {row.workflow_id: row for row in await store.newest_runs(tenant, name, MOST_RUNS)}
    counts = await store.tally(tenant, name, first * DAY_MS, MOST_RUNS)
    portfolio = []
    for flow in dict.fromkeys((*record.entry.workflows, *(flow for flow, _ in views))):
        days, failed = _daily_counts([each for each in counts if each.workflow_id == flow], first)
        portfolio.append(
            MemberWorkflow(
                workflow_id=flow,
                triggers=[view for of, view in views if of == flow],
                days=days,
                runs=sum(days),
                failed=failed,
                last=_recent_run(newest.get(flow)),
            )
        )
    return portfolio


async def _find_profile(request: Request) -> MemberProfile:
    """Return the member's profile. Raise NotFound for an id that never was a member."""
    tenant, services = request.tenant, request.services
    roster_id = request.params["roster_id"].replace("%3A", ":").replace("%3a", ":")
    member = await services.roster.find(tenant, roster_id)
    if member is not None:
        return MemberProfile(member.hired, member_view(request, member.hired))
    versions = await services.roster.history(tenant, roster_id)
    if not versions:
        await services.roster.must_find(tenant, roster_id)
    record, at = member_from_record(versions[0]), iso(versions[0].created_at * 1000)
    view = replace(member_view(request, record), status="dismissed", since=at, paused=None)
    return MemberProfile(record, view, MemberDismissal(by=versions[0].by, at=at))


async def _trigger_view(request: Request, trigger: Trigger) -> MemberTrigger:
    subscription = trigger.it
    view = copy_fields(MemberTrigger, subscription, inert=trigger.inert)
    if subscription.schedule_id is None:
        return view
    return await _add_schedule_times(request, view, subscription.schedule_id)


async def _add_schedule_times(
    request: Request, view: MemberTrigger, schedule_id: str
) -> MemberTrigger:
    schedules = request.triggers.schedules
    try:
        schedule = schedule_view(await schedules.find(request.tenant, schedule_id))
    except NotFound:
        return view  # removed meanwhile
    next_fire_at = schedule.next_fire_at or None
    given = {name: getattr(view, name) for name in ("source", "subscription_id", "queue", "inert")}
    return copy_fields(MemberTrigger, schedule, **given, next_fire_at=next_fire_at)


def _recent_run(row: RunIndexRow | None) -> RecentRun | None:
    if row is None:
        return None
    return copy_fields(RecentRun, row, started_at=iso(row.created_at * 1000))


def _daily_counts(counts: list[Tally], first: int) -> tuple[list[int], int]:
    """Return how many runs started on each day, the oldest first, and how many failed."""
    runs, failed = [0] * DAYS, 0
    for each in counts:
        runs[min(max(each.day - first, 0), DAYS - 1)] += each.count
        failed += each.count if each.status == "failed" else 0
    return runs, failed
