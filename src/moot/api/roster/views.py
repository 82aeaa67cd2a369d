"""Standing agents as people see them: who is on duty, what is left to them, who did what."""

from typing import Any

import msgspec

from moot.agents.roster.members import Hired, Pause, Seat, decoded
from moot.api.http.request import Reply, Request
from moot.api.roster.changes import differences
from moot.core.errors import NotFound, NotProvided
from moot.core.events import iso
from moot.engine.effects.agent_budgets import WARN_AT, Allowances

#: entries of a member's history that are shown
MOST_HISTORY = 100


def offered(request: Request) -> None:
    if not request.services.keeps_roster:
        raise NotProvided("This host keeps no roster (MOOT_ROSTER).", capability="agents.roster")


async def seat_of(request: Request) -> Seat:
    offered(request)
    return await request.services.roster.must_find(request.caller.tenant, _name(request))


def _name(request: Request) -> str:
    return request.params["roster_id"].replace("%3A", ":").replace("%3a", ":")


async def members(request: Request) -> Reply:
    offered(request)
    found = await request.services.roster.all(request.caller.tenant)
    rows = [await with_budget(request, seat) for seat in found]
    for row, seat in zip(rows, found, strict=True):
        if (model := await model_of(request, seat.hired)) is not None:
            row["model"] = model
    return Reply({"roster": rows, "total": len(found)})


async def member(request: Request) -> Reply:
    seat = await seat_of(request)
    told = await _told(request, seat.entry.roster_id)
    return Reply({**await with_budget(request, seat), "history": told})


async def history(request: Request) -> Reply:
    """Names stay known: whoever had one, and who took them on and let them go."""
    offered(request)
    name = _name(request)
    told = await _told(request, name)
    if not told:
        await request.services.roster.must_find(request.caller.tenant, name)
    body: dict[str, Any] = {"rosterId": name, "history": told}
    if await request.services.roster.find(request.caller.tenant, name) is None:
        leaving = request.services.triggers.leaving
        body["left"] = await leaving.left(request.caller.tenant, name)
    return Reply(body)


async def _told(request: Request, name: str) -> list[dict[str, Any]]:
    known = (await request.services.roster.history(request.caller.tenant, name))[: MOST_HISTORY + 1]
    versions = [*(decoded(record) for record in known), None]
    return [
        {"at": iso(record.created_at * 1000), "by": record.by, **_did(decoded(record), before)}
        for record, before in zip(known, versions[1:], strict=True)
    ][:MOST_HISTORY]


def _did(hired: Hired, before: Hired | None) -> dict[str, Any]:
    said: dict[str, Any] = {"did": hired.did}
    if hired.did == "changed" and before is not None:
        said["changes"] = differences(before, hired)
    if hired.did == "paused" and hired.pause is not None:
        said |= _pause(hired.pause)
    return said


def _pause(pause: Pause) -> dict[str, Any]:
    said: dict[str, Any] = {"by": pause.by}
    if pause.reason:
        said["reason"] = pause.reason
    if pause.until is not None:
        said["until"] = iso(pause.until * 1000)
    return said


async def with_budget(request: Request, seat: Seat) -> dict[str, Any]:
    """A member, and of each of its limits how much is used up."""
    said = shown(request, seat.hired)
    if seat.hired.budget is not None:
        services = request.services
        allowances = Allowances(services.store, services.clock, services.roster)
        said["budget"] = [
            {
                "limit": bound.name,
                "most": bound.most,
                "used": bound.used,
                "state": "used up" if bound.share >= 1 else _nearly(bound.share),
                **await _unpriced(request, seat, bound.name),
            }
            for bound in await allowances.bounds(request.caller.tenant, seat)
        ]
    return said


async def _unpriced(request: Request, seat: Seat, limit: str) -> dict[str, Any]:
    """The model whose calls a limit of money does not see, as nobody has said what it costs."""
    book = request.services.book
    if book is None or not limit.startswith("money"):
        return {}
    model = await model_of(request, seat.hired)
    return {} if model is None or book.priced(model) else {"unpriced": model}


async def model_of(request: Request, hired: Hired) -> str | None:
    """That of the version it is bound to, or else of the newest."""
    agents, ref = request.services.agents, hired.entry.agent_ref
    try:
        agent = await agents.must_be(request.caller.tenant, ref.agent_id)
    except NotFound:
        return None
    bound = None
    if ref.version is not None:
        bound = await agents.at(request.caller.tenant, agent.name, ref.version)
    return (bound or agent).model


def _nearly(share: float) -> str:
    return "nearly used up" if share >= WARN_AT else "ok"


def shown(request: Request, hired: Hired) -> dict[str, Any]:
    now = request.services.clock.millis()
    said: dict[str, Any] = msgspec.to_builtins(hired.seen(now))
    off = hired.off_duty(now)
    said |= {"status": off or "on-duty", "hiredAt": iso(hired.hired_at * 1000)}
    said["since"] = iso(hired.since(now) * 1000)
    if off == "paused" and hired.pause is not None:
        since = {"since": iso(hired.pause.since * 1000)}
        said["paused"] = {**since, **_pause(hired.pause)}
    return said
