"""Where a run comes from: its parent here, or the one on another host that its caller named.

What a caller says of a trace and of a parent is kept with the run. It decides nothing about whose
run it is or who may see it; that its tree is deep or large already can only take from the run.
"""

from typing import Any

from moot.api.http.request import Endpoint, Reply, Request
from moot.core import trace
from moot.core.errors import MootError, Unavailable
from moot.core.state.run import Run
from moot.core.workflows import peer_ids
from moot.engine.host import Host

TRACEPARENT, TRACESTATE = b"traceparent", b"tracestate"


def given(request: Request) -> dict[str, Any]:
    """What the headers of a request say a run comes from, as its command takes it."""
    found: dict[str, Any] = {"trace": _trace(request)}
    origin = peer_ids.read(request.header(peer_ids.HEADER))
    if origin is None:
        return found
    away = origin.host_id != request.services.host.peers.host_id
    named = origin.event_id is not None
    return found | {
        "origin": origin,
        "cause": origin.event_id,
        "cause_host": origin.host_id if away and named else None,
        "depth": origin.depth,
        "tree": origin.tree,
    }


def _trace(request: Request) -> trace.Trace | None:
    """Two places in a trace are none; a state may come in several parts."""
    headers = request.scope["headers"]
    places = [value for name, value in headers if name == TRACEPARENT]
    states = [value for name, value in headers if name == TRACESTATE]
    if len(places) != 1:
        return None
    return trace.read(places[0].decode("latin-1"), b",".join(states).decode("latin-1"))


async def ancestry(request: Request) -> Reply:
    host = request.services.host
    run = (await host.view(request.caller.tenant, request.params["run_id"])).run
    parent = _elsewhere(host, run) if run.origin is not None else await _here(host, run)
    return Reply({"runId": run.run_id, "hostId": host.peers.host_id, "parent": parent})


def _elsewhere(host: Host, run: Run) -> dict[str, Any]:
    said = run.origin or {}
    parent = {"runId": said["runId"], "hostId": said["hostId"], "cause": said["cause"]}
    if said["hostId"] != host.peers.host_id:
        parent["wellKnownUrl"] = said["wellKnownUrl"]
    return parent


async def _here(host: Host, run: Run) -> dict[str, Any] | None:
    if run.parent_run is None:
        return None
    cause = "core.subWorkflow"
    try:
        flow = (await host.view(run.tenant, run.parent_run)).flow
    except Unavailable:
        raise
    except MootError:  # its log is gone: that it was the parent is still so
        flow = None
    node = flow.nodes.get(run.parent_node or "") if flow is not None else None
    if node is not None and node.type.dispatches:
        cause = "core.dispatch"
    return {"runId": run.parent_run, "hostId": host.peers.host_id, "cause": cause}


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/runs/{run_id}/ancestry", call=ancestry, scope="runs:read",
        summary="Read which run has started this one", answer="run-ancestry-response",
        errors=(404,),
    ),
)  # fmt: skip
