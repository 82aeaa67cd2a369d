"""The origin of a run: its parent, its trace and its trigger.

The host stores what a caller says about a trace and a parent. It decides neither who owns the run
nor who may see it. A parent's depth and tree size can only lower the run's limits.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.schedules.views import checked_schedule
from moot.core import trace
from moot.core.errors import MootError, NotFound, Unavailable
from moot.core.errors.schedules import ScheduleRefused
from moot.core.events import decode
from moot.core.payloads.runs import PeerOrigin, RunInitiated, RunStarted
from moot.core.state.run import Run
from moot.core.workflows import peer_ids
from moot.engine.host import Host
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.schedules import records
from moot.wire.json import JsonObject
from moot.wire.runs import ParentRun, RunAncestry, RunStart

TRACEPARENT, TRACESTATE = b"traceparent", b"tracestate"

#: Events that describe the start: start, initiation, delivery.
FIRST_EVENTS = 3
#: Fields of a schedule that describe its times.
SCHEDULE_TIMES = ("kind", "words", "cronExpr", "intervalSeconds", "at", "timezone")


def origin_from_headers(request: Request) -> dict[str, Any]:
    """Return the origin in the request's headers, as fields of the start command."""
    fields: dict[str, Any] = {"trace": _trace_from_headers(request)}
    origin = peer_ids.parse_origin(request.header(peer_ids.HEADER))
    if origin is None:
        return fields
    is_remote = origin.host_id != request.services.host.peers.host_id
    named = origin.event_id is not None
    return fields | {
        "origin": origin,
        "cause": origin.event_id,
        "cause_host": origin.host_id if is_remote and named else None,
        "depth": origin.depth,
        "tree": origin.tree,
    }


def _trace_from_headers(request: Request) -> trace.Trace | None:
    """Return the trace.

    Two ``traceparent`` headers count as none; ``tracestate`` may come in parts.
    """
    if request.header("traceparent") is None:
        return None
    headers = request.scope["headers"]
    places = [value for name, value in headers if name == TRACEPARENT]
    states = [value for name, value in headers if name == TRACESTATE]
    if len(places) != 1:
        return None
    return trace.parse_trace(places[0].decode("latin-1"), b",".join(states).decode("latin-1"))


async def read_ancestry(request: Request) -> Reply:
    host = request.services.host
    run = (await host.view(request.caller.tenant, request.params["run_id"])).run
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
    rows = await request.services.store.read(request.caller.tenant, run_id, -1, FIRST_EVENTS)
    events = [decode(row) for row in rows]
    if not events:
        return None
    first = events[0].payload
    trigger: JsonObject = (first.trigger or {}) if isinstance(first, RunStarted) else {}
    initiations = [event.payload for event in events[1:] if isinstance(event.payload, RunInitiated)]
    if not initiations and not trigger:
        return None
    start = await _triggered_start(request, trigger)
    for initiation in initiations:
        start = replace(
            start,
            source=initiation.trigger_source,
            roster_id=initiation.roster_id,
            persona=initiation.persona,
        )
    return start


async def _triggered_start(request: Request, trigger: JsonObject) -> RunStart:
    """Return the item or the slot that started the run, and its queue or schedule."""
    triggers, tenant = request.services.triggers, request.caller.tenant
    source = trigger.get("source")
    if source in INBOUND_SOURCES:
        subscription = await triggers.subscriptions.find(tenant, str(trigger["subscriptionId"]))
        queue = subscription.it.queue if subscription is not None else None
        return RunStart(source=source, item_id=trigger["deliveryId"], queue=queue or None)
    if source != records.SCHEDULE_SOURCE:
        return RunStart(source=source)
    name = str(trigger["schedule"]["scheduleId"])
    start = RunStart(source=source, schedule_id=name, slot=trigger["schedule"]["slot"])
    try:
        spec = (await triggers.schedules.find(tenant, name)).plan.spec
        view = msgspec.to_builtins(checked_schedule(spec, []))
    except (NotFound, ScheduleRefused):
        return start  # removed since, or in an unknown zone
    return replace(start, times={key: view[key] for key in SCHEDULE_TIMES if key in view})


ANCESTRY_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/runs/{run_id}/ancestry", call=read_ancestry, scope="runs:read",
        summary="Read which run has started this one", published="run-ancestry-response",
        errors=(404,),
        tag="Runs", operation_id="readRunAncestry", answer=RunAncestry,
        description="Returns the run that started this one, on this or another host, or null.",
    ),
)  # fmt: skip
