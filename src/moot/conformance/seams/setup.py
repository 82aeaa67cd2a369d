"""Declare a seam, and set up the workflows and runs that it tries."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moot.api.http.request import Endpoint, Handler, Request, encode
from moot.core.errors import Unavailable
from moot.core.events import Event
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow
from moot.engine.start import RunOrder, start_run

#: How long a seam waits for its run, in seconds.
PATIENCE_S = 100.0


def seam(
    path: str, call: Handler, body: Any = None, *, method: str = "POST", status: int = 200
) -> Endpoint:
    place = f"/v1/host/sample/{path}"
    return Endpoint(method, place, call, scope="runs:create", body=body, status=status)


def node(
    name: str, type_id: str = "core.noop", config: Mapping[str, object] | None = None
) -> dict[str, object]:
    return {
        "id": name, "typeId": type_id, "name": name, "position": {"x": 0, "y": 0},
        "config": config or {}, "inputs": {},
    }  # fmt: skip


def workflow(
    name: str, nodes: Sequence[Mapping[str, object]], *edges: tuple[str, str]
) -> dict[str, object]:
    """Return a definition. An edge is the names of two nodes."""
    ties = [{"id": f"{a}>{b}", "sourceNodeId": a, "targetNodeId": b} for a, b in edges]
    return {
        "id": name, "name": name, "version": "1.0", "nodes": nodes, "edges": ties, "triggers": [],
        "variables": [], "metadata": {}, "settings": {},
    }  # fmt: skip


async def register_workflow(request: Request, definition: Mapping[str, object]) -> Flow:
    return await request.services.host.flows.register(request.caller.tenant, encode(definition))


async def start_workflow(
    request: Request, flow: Flow, inputs: Mapping[str, object] | None = None
) -> str:
    order = RunOrder(
        tenant=request.caller.tenant,
        principal=request.caller.id,
        workflow_id=flow.definition.id,
        flow=flow,
        inputs=dict(inputs or {}),
    )
    return (await start_run(request.services.host, order)).run_id


async def wait_for_run(request: Request, run_id: str, is_settled: Callable[[Run], bool]) -> Run:
    """Return the run once it is settled. Raise Unavailable when that takes too long."""
    host = request.services.host
    reader = host.hub.subscribe(run_id)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not is_settled(run := (await host.view(request.caller.tenant, run_id)).run):
                await reader.wait(1)
                reader.waiting.clear()
                reader.lagging = False
        return run
    except TimeoutError:
        raise Unavailable("The run takes too long.", runId=run_id) from None
    finally:
        host.hub.unsubscribe(run_id, reader)


async def read_log(request: Request, run_id: str) -> list[Event]:
    host = request.services.host
    return await host.runs.log(await host.view(request.caller.tenant, run_id))
