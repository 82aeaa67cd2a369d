"""Describe the origin of a run: its parent and its trigger."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.schedules.views import checked_schedule
from moot.api.views import copy_fields
from moot.core.errors import MootError, NotFound, Unavailable
from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import decode
from moot.core.payloads.runs import PeerOrigin, RunInitiated, RunStarted
from moot.core.state.run import Run
from moot.engine.host import Host
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.schedules import records
from moot.wire.runs import ParentRun, RunAncestry, RunStart, RunTimes

#: Events that describe the start: start, initiation, delivery.
FIRST_EVENTS = 3


async def read_ancestry(request: Request) -> Reply:
    host = request.host
    run = (await host.view(request.tenant, request.params["run_id"])).run
    origin = run.origin
    parent = await _local_parent(host, run) if origin is None else _remote_parent(host, origin)
    return Reply(RunAncestry(run_id=run.run_id, host_id=host.peers.host_id, parent=parent))


def _remote_parent(host: Host, origin: PeerOrigin) -> ParentRun:
    is_elsewhere = origin.host_id != host.peers.host_id
    return ParentRun(
        run_id=origin.run_id,
        host_id=origin.host_id,
        cause=origin.cause,
        well_known_url=origin.well_known_url if is_elsewhere else None,
    )


async def _local_parent(host: Host, run: Run) -> ParentRun | None:
    if run.parent_run is None:
        return None
    cause = "core.subWorkflow"
    try:
        flow = (await host.view(run.tenant, run.parent_run)).flow
    except Unavailable:
        raise
    except MootError:  # the parent's log is gone; the parent is still known
        flow = None
    node = flow.nodes.get(run.parent_node or "") if flow is not None else None
    if node is not None and node.type.dispatches:
        cause = "core.dispatch"
    return ParentRun(run_id=run.parent_run, host_id=host.peers.host_id, cause=cause)


async def describe_start(request: Request, run_id: str) -> RunStart | None:
    """Return who started a run and why, from the first events of its log.

    The log keeps names as they were. The result is None for a run that a person started without a
    standing agent.
    """
    rows = await request.store.read(request.tenant, run_id, -1, FIRST_EVENTS)
    events = [decode(row) for row in rows]
    if not events:
        return None
    first = events[0].payload
    trigger = first.trigger if isinstance(first, RunStarted) else None
    initiations = [event.payload for event in events[1:] if isinstance(event.payload, RunInitiated)]
    if not initiations and not trigger:
        return None
    start = await _triggered_start(request, msgspec.convert(trigger or {}, TriggerFacts))
    for initiation in initiations:
        start = replace(
            start,
            source=initiation.trigger_source,
            roster_id=initiation.roster_id,
            persona=initiation.persona,
        )
    return start


class TriggerSlot(Struct, frozen=True, rename="camel"):
    """The schedule and the slot that started a run."""

    schedule_id: str
    slot: str


class TriggerFacts(Struct, frozen=True, rename="camel"):
    """The item or the slot that started a run."""

    source: str | None = None
    subscription_id: str = ""
    delivery_id: str | None = None
    schedule: TriggerSlot | None = None


async def _triggered_start(request: Request, trigger: TriggerFacts) -> RunStart:
    """Return the item or the slot that started the run, and its queue or schedule."""
    triggers, tenant, slot = request.triggers, request.tenant, trigger.schedule
    if trigger.source in INBOUND_SOURCES:
        subscription = await triggers.subscriptions.find(tenant, trigger.subscription_id)
        queue = subscription.it.queue if subscription is not None else None
        return RunStart(source=trigger.source, item_id=trigger.delivery_id, queue=queue or None)
    if trigger.source != records.SCHEDULE_SOURCE or slot is None:
        return RunStart(source=trigger.source)
    name = slot.schedule_id
    start = RunStart(source=trigger.source, schedule_id=name, slot=slot.slot)
    try:
        spec = (await triggers.schedules.find(tenant, name)).plan.spec
        times = copy_fields(RunTimes, checked_schedule(spec, []))
    except (NotFound, ScheduleRefused):
        return start  # removed since, or in an unknown zone
    return replace(start, times=times)


ANCESTRY_ENDPOINTS = (
    Endpoint("GET", "/v1/runs/{run_id}/ancestry", read_ancestry, scope="runs:read",
             answer=RunAncestry),
)  # fmt: skip
