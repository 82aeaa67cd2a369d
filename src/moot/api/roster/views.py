"""Show standing agents: duty, budget and history."""

from typing import Any

import msgspec

from moot.agents.roster.members import MemberRecord, MemberVersion, PausePeriod, member_from_record
from moot.api.http.request import Reply, Request
from moot.core.errors import NotFound, NotProvided
from moot.core.events import iso
from moot.engine.effects.agent_budgets import WARN_AT, AgentBudgets

#: Rows of a member's history in one answer.
MOST_HISTORY = 100


def check_roster_offered(request: Request) -> None:
    if not request.services.has_roster:
        raise NotProvided("This host keeps no roster (MOOT_ROSTER).", capability="agents.roster")


async def find_member(request: Request) -> MemberVersion:
    check_roster_offered(request)
    return await request.services.roster.must_find(request.caller.tenant, _roster_id(request))


def _roster_id(request: Request) -> str:
    return request.params["roster_id"].replace("%3A", ":").replace("%3a", ":")


async def list_members(request: Request) -> Reply:
    check_roster_offered(request)
    members = await request.services.roster.all(request.caller.tenant)
    rows = [await view_with_budget(request, member) for member in members]
    for row, member in zip(rows, members, strict=True):
        if (model := await member_model(request, member.hired)) is not None:
            row["model"] = model
    return Reply({"roster": rows, "total": len(members)})


async def read_member(request: Request) -> Reply:
    member = await find_member(request)
    rows = await _history_rows(request, member.entry.roster_id)
    return Reply({**await view_with_budget(request, member), "history": rows})


async def read_member_history(request: Request) -> Reply:
    """Return who did what with a member, also with a dismissed one."""
    check_roster_offered(request)
    name = _roster_id(request)
    rows = await _history_rows(request, name)
    if not rows:
        await request.services.roster.must_find(request.caller.tenant, name)
    body: dict[str, Any] = {"rosterId": name, "history": rows}
    if await request.services.roster.find(request.caller.tenant, name) is None:
        leaving = request.services.triggers.leaving
        body["left"] = await leaving.left(request.caller.tenant, name)
    return Reply(body)


async def _history_rows(request: Request, name: str) -> list[dict[str, Any]]:
    records = (await request.services.roster.history(request.caller.tenant, name))[
        : MOST_HISTORY + 1
    ]
    versions = [*(member_from_record(record) for record in records), None]
    return [
        {
            "at": iso(record.created_at * 1000),
            "by": record.by,
            **_action_view(member_from_record(record), before),
        }
        for record, before in zip(records, versions[1:], strict=True)
    ][:MOST_HISTORY]


def _action_view(record: MemberRecord, before: MemberRecord | None) -> dict[str, Any]:
    view: dict[str, Any] = {"did": record.did}
    if record.did == "changed" and before is not None:
        view["changes"] = changed_fields(before, record)
    if record.did == "paused" and record.pause is not None:
        view |= _pause_view(record.pause)
    return view


def _pause_view(pause: PausePeriod) -> dict[str, Any]:
    view: dict[str, Any] = {"by": pause.by}
    if pause.reason:
        view["reason"] = pause.reason
    if pause.until is not None:
        view["until"] = iso(pause.until * 1000)
    return view


async def view_with_budget(request: Request, member: MemberVersion) -> dict[str, Any]:
    """Return a member with the used share of each of its limits."""
    view = member_view(request, member.hired)
    if member.hired.budget is not None:
        services = request.services
        allowances = AgentBudgets(services.store, services.clock, services.roster)
        view["budget"] = [
            {
                "limit": bound.name,
                "most": bound.most,
                "used": bound.used,
                "state": "used up" if bound.share >= 1 else _budget_state(bound.share),
                **await _unpriced_model(request, member, bound.name),
            }
            for bound in await allowances.bounds(request.caller.tenant, member)
        ]
    return view


async def _unpriced_model(request: Request, member: MemberVersion, limit: str) -> dict[str, Any]:
    """Name the model whose calls a money limit cannot count, because it has no price."""
    book = request.services.book
    if book is None or not limit.startswith("money"):
        return {}
    model = await member_model(request, member.hired)
    return {} if model is None or book.has_price(model) else {"unpriced": model}


async def member_model(request: Request, record: MemberRecord) -> str | None:
    """Return the model of the version the member is bound to, or of the newest."""
    agents, ref = request.services.agents, record.entry.agent_ref
    try:
        agent = await agents.must_find_by_id(request.caller.tenant, ref.agent_id)
    except NotFound:
        return None
    bound = None
    if ref.version is not None:
        bound = await agents.at(request.caller.tenant, agent.name, ref.version)
    return (bound or agent).model


def _budget_state(share: float) -> str:
    return "nearly used up" if share >= WARN_AT else "ok"


def member_view(request: Request, record: MemberRecord) -> dict[str, Any]:
    now = request.services.clock.millis()
    view: dict[str, Any] = msgspec.to_builtins(record.seen(now))
    off = record.off_duty(now)
    view |= {"status": off or "on-duty", "hiredAt": iso(record.hired_at * 1000)}
    view["since"] = iso(record.since(now) * 1000)
    if off == "paused" and record.pause is not None:
        since = {"since": iso(record.pause.since * 1000)}
        view["paused"] = {**since, **_pause_view(record.pause)}
    return view


def changed_fields(was: MemberRecord, now: MemberRecord) -> list[dict[str, Any]]:
    """Return each changed field with both values, in the order they are shown.

    None means absent.
    """
    before, after = _record_fields(was), _record_fields(now)
    return [
        {"field": name, "from": before.get(name), "to": after.get(name)}
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _record_fields(record: MemberRecord) -> dict[str, Any]:
    entry: dict[str, Any] = msgspec.to_builtins(record.entry)
    entry = {"workflows": [], "enabled": True, **entry}
    limits: dict[str, Any] = msgspec.to_builtins(record.budget) if record.budget is not None else {}
    return {**entry, **limits}
