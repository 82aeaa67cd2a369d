"""Show standing agents: duty, budget and history."""

import msgspec
from msgspec.structs import asdict, replace

from moot.agents.roster.members import (
    MemberEntry,
    MemberRecord,
    MemberVersion,
    PausePeriod,
    member_from_record,
)
from moot.api.http.request import Reply, Request
from moot.api.views import copy_fields
from moot.core.errors import NotFound, NotProvided
from moot.core.events import iso
from moot.engine.effects.budgets import WARN_AT, AgentBudgets
from moot.store.records import Record
from moot.wire.roster import (
    AgentRef,
    BudgetUse,
    FieldChange,
    LeftTrigger,
    MemberChange,
    MemberDetail,
    MemberHistory,
    MemberList,
    MemberPause,
    MemberView,
    RosterEntry,
)
from moot.wire.schedules import Owner

#: Rows of a member's history in one answer.
MOST_HISTORY = 100


def check_roster_offered(request: Request) -> None:
    if not request.services.has_roster:
        raise NotProvided("This host keeps no roster (MOOT_ROSTER).", capability="agents.roster")


async def find_member(request: Request) -> MemberVersion:
    check_roster_offered(request)
    return await request.services.roster.must_find(request.tenant, _roster_id(request))


def _roster_id(request: Request) -> str:
    return request.params["roster_id"].replace("%3A", ":").replace("%3a", ":")


async def list_members(request: Request) -> Reply:
    check_roster_offered(request)
    members = await request.services.roster.all(request.tenant)
    rows = [
        replace(
            await view_with_budget(request, member), model=await member_model(request, member.hired)
        )
        for member in members
    ]
    return Reply(MemberList(roster=rows, total=len(members)))


async def read_member(request: Request) -> Reply:
    member = await find_member(request)
    rows = await _history_rows(request, member.entry.roster_id)
    return Reply(MemberDetail(**asdict(await view_with_budget(request, member)), history=rows))


async def read_member_history(request: Request) -> Reply:
    """Return who did what with a member, also with a dismissed one."""
    check_roster_offered(request)
    name = _roster_id(request)
    rows = await _history_rows(request, name)
    if not rows:
        await request.services.roster.must_find(request.tenant, name)
    answer = MemberHistory(roster_id=name, history=rows)
    if await request.services.roster.find(request.tenant, name) is None:
        answer = replace(answer, left=await left_triggers(request, name))
    return Reply(answer)


async def left_triggers(request: Request, roster_id: str) -> list[LeftTrigger]:
    """Return the paused triggers of a former member with this id."""
    subscriptions = await request.triggers.leaving.left(request.tenant, roster_id)
    return [copy_fields(LeftTrigger, each) for each in subscriptions]


async def _history_rows(request: Request, name: str) -> list[MemberChange]:
    records = (await request.services.roster.history(request.tenant, name))[: MOST_HISTORY + 1]
    versions = [member_from_record(record) for record in records]
    rows = [
        _change_view(record, version, before)
        for record, version, before in zip(records, versions, [*versions, None][1:], strict=True)
    ]
    return rows[:MOST_HISTORY]


def _change_view(
    record: Record, version: MemberRecord, before: MemberRecord | None
) -> MemberChange:
    change = MemberChange(at=iso(record.created_at * 1000), by=record.by, did=version.did)
    if version.did == "changed" and before is not None:
        return replace(change, changes=changed_fields(before, version))
    if version.did == "paused" and version.pause is not None:
        pause = _pause_view(version.pause)
        return replace(change, by=pause.by, reason=pause.reason, until=pause.until)
    return change


def _pause_view(pause: PausePeriod) -> MemberPause:
    return copy_fields(MemberPause, pause, reason=pause.reason or None)


async def view_with_budget(request: Request, member: MemberVersion) -> MemberView:
    """Return a member with the used share of each of its limits."""
    view = member_view(request, member.hired)
    if member.hired.budget is None:
        return view
    services = request.services
    allowances = AgentBudgets(services.store, services.clock, services.roster)
    uses = [
        BudgetUse(
            limit=bound.name,
            most=bound.most,
            used=bound.used,
            state=_budget_state(bound.share),
            unpriced=await _unpriced_model(request, member, bound.name),
        )
        for bound in await allowances.bounds(request.tenant, member)
    ]
    return replace(view, budget=uses)


async def _unpriced_model(request: Request, member: MemberVersion, limit: str) -> str | None:
    """Return the model whose calls a money limit cannot count, because it has no price."""
    book = request.services.book
    if book is None or not limit.startswith("money"):
        return None
    model = await member_model(request, member.hired)
    return None if model is None or book.has_price(model) else model


async def member_model(request: Request, record: MemberRecord) -> str | None:
    """Return the model of the version the member is bound to, or of the newest."""
    agents, ref = request.services.agents, record.entry.agent_ref
    try:
        agent = await agents.must_find_by_id(request.tenant, ref.agent_id)
    except NotFound:
        return None
    bound = None
    if ref.version is not None:
        bound = await agents.at(request.tenant, agent.name, ref.version)
    return (bound or agent).model


def _budget_state(share: float) -> str:
    if share >= 1:
        return "used up"
    return "nearly used up" if share >= WARN_AT else "ok"


def member_view(request: Request, record: MemberRecord) -> MemberView:
    now = request.now()
    off, is_paused = record.off_duty(now), record.off_duty(now) == "paused"
    return MemberView(
        **asdict(roster_entry(record.seen(now))),
        status=off or "on-duty",
        hired_at=iso(record.hired_at * 1000),
        since=iso(record.since(now) * 1000),
        paused=_pause_view(record.pause) if is_paused and record.pause is not None else None,
    )


def roster_entry(entry: MemberEntry) -> RosterEntry:
    """Return a member in the form of the protocol."""
    return copy_fields(
        RosterEntry,
        entry,
        agent_ref=copy_fields(AgentRef, entry.agent_ref),
        owner=copy_fields(Owner, entry.owner),
        workflows=list(entry.workflows),
    )


def changed_fields(was: MemberRecord, now: MemberRecord) -> list[FieldChange]:
    """Return each changed field with both values, in the order they are shown.

    None means absent.
    """
    before, after = _record_fields(was), _record_fields(now)
    return [
        FieldChange(name=name, before=before.get(name), after=after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _record_fields(record: MemberRecord) -> dict[str, object]:
    limits = {} if record.budget is None else msgspec.to_builtins(record.budget)
    return {"workflows": [], "enabled": True, **msgspec.to_builtins(record.entry), **limits}
