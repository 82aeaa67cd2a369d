"""Whose a run is and what began it, as the beginning of its log says: still right when whoever it
was is called otherwise, or has gone."""

from typing import Any

from moot.api.http.request import Request
from moot.api.schedules.views import times
from moot.core.errors import NotFound
from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import decode
from moot.core.state.initiation import INITIATED
from moot.triggers.inbound.items import SOURCES
from moot.triggers.schedules.records import SOURCE as SCHEDULE

#: events that may say it: the start, whose run it is, the delivery
FIRST = 3
#: what a schedule says of its times
TIMES = ("kind", "words", "cronExpr", "intervalSeconds", "at", "timezone")


async def told(request: Request, run_id: str) -> dict[str, Any]:
    """Empty for a run that somebody began without a standing agent."""
    rows = await request.services.store.read(request.caller.tenant, run_id, -1, FIRST)
    events = [decode(row) for row in rows]
    if not events:
        return {}
    trigger = events[0].payload.get("trigger") or {}
    said: dict[str, Any] = {}
    for event in events[1:]:
        if event.type == INITIATED:
            said = {name: event.payload[name] for name in ("rosterId", "persona")}
            said["source"] = event.payload["triggerSource"]
    if not said and not trigger:
        return {}
    return {"source": trigger.get("source"), **said, **await _from(request, trigger)}


async def _from(request: Request, trigger: dict[str, Any]) -> dict[str, Any]:
    """What came in, or when; and by which way."""
    triggers, tenant = request.services.triggers, request.caller.tenant
    source = trigger.get("source")
    if source in SOURCES:
        seen = await triggers.subscriptions.find(tenant, str(trigger["subscriptionId"]))
        queue = seen.it.queue if seen is not None else None
        return {"itemId": trigger["deliveryId"], **({"queue": queue} if queue else {})}
    if source != SCHEDULE:
        return {}
    name = str(trigger["schedule"]["scheduleId"])
    said = {"scheduleId": name, "slot": trigger["schedule"]["slot"]}
    try:
        found = times((await triggers.schedules.find(tenant, name)).plan.spec, [])
    except (NotFound, ScheduleRefused):
        return said  # removed since, or of a zone that is not known any more
    return {**said, "times": {key: found[key] for key in TIMES if key in found}}
