"""Seams ``dispatch/*``: run a supervisor and report on its workers."""

import asyncio
import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request, encode
from moot.core.errors import Unavailable, Unprocessable
from moot.core.events import Event, payload_fields
from moot.core.payloads.nodes import NodeDispatched
from moot.core.payloads.supervisors import HandoffStepped, WorkersJoined
from moot.core.workflows.flow import definition_digest
from moot.engine.head import Head
from moot.engine.start import RunOrder, start_run

Names = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(min_length=1, max_length=64)
]

#: How long a seam waits for its run, in seconds.
PATIENCE_S = 20.0


class FanOut(Struct, frozen=True, rename="camel"):
    next_worker_ids: Names
    config: dict[str, Any] = {}


class PerItem(Struct, frozen=True, rename="camel"):
    next_worker_ids: Names
    next_worker_inputs: list[dict[str, Any]] = []


async def fan_out_workers(request: Request) -> Reply:
    """Run one wave of workers and return how they joined."""
    body = await request.read(FanOut)
    head, events = await _run_supervisor(request, body.next_worker_ids, body.config, {})
    joins = [payload_fields(event) for event in events if isinstance(event.payload, WorkersJoined)]
    if not joins:
        raise _join_failure(head)
    ends = {
        step.child_run_id: step.phase.removeprefix("child.")
        for event in events
        if isinstance(step := event.payload, HandoffStepped) and step.phase.startswith("child.")
    }
    children = [
        {"childRunId": child, "childStatus": ends[child]} for child in joins[0]["mergeOrder"]
    ]
    return Reply({"runId": head.run.run_id, "children": children, **joins[0]})


async def dispatch_per_item(request: Request) -> Reply:
    """Return the inputs of each worker of a wave.

    A decision has no field for inputs of single workers, so a request with some is refused like any
    invalid decision.
    """
    body = await request.read(PerItem)
    more = {"nextWorkerInputs": body.next_worker_inputs} if body.next_worker_inputs else {}
    head, events = await _run_supervisor(request, body.next_worker_ids, {}, more)
    if head.run.status != "completed":
        raise _join_failure(head)
    host, tenant = request.services.host, request.caller.tenant
    children = [e.payload.child_run_id for e in events if isinstance(e.payload, NodeDispatched)]
    inputs = [(await host.view(tenant, child)).run.inputs for child in children]
    return Reply({"runId": head.run.run_id, "children": [{"inputs": each} for each in inputs]})


def _join_failure(head: Head) -> Unprocessable:
    error = head.run.error
    message = "The workers did not come together." if error is None else error.message
    return Unprocessable(message, runId=head.run.run_id)


async def _run_supervisor(
    request: Request, workers: list[str], config: dict[str, Any], more: dict[str, Any]
) -> tuple[Head, list[Event]]:
    """Run a supervisor that dispatches to these workers. Return its end state and its log."""
    host, tenant = request.services.host, request.caller.tenant
    names = [re.sub(r"[^a-z0-9_-]", "-", worker.lower()) for worker in workers]
    for name in dict.fromkeys(names):
        definition = await request.services.store.definition(tenant, name)
        if definition is None:
            noop = _node("work", "core.noop", {})
            await host.flows.register(tenant, encode(_workflow(name, [noop], [])))
    flow = await host.flows.register(tenant, encode(_supervisor_workflow(names, config, more)))
    order = RunOrder(
        tenant=tenant, principal=request.caller.id, workflow_id=flow.definition.id, flow=flow
    )
    run_id = (await start_run(host, order)).run_id
    head = await _wait_for_end(request, run_id)
    return head, await host.runs.log(head)


async def _wait_for_end(request: Request, run_id: str) -> Head:
    host = request.services.host
    reader = host.hub.subscribe(run_id)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (head := await host.view(request.caller.tenant, run_id)).run.terminal:
                await reader.wait(1)
                reader.waiting.clear()
        return head
    except TimeoutError:
        raise Unavailable("The workers take too long.", runId=run_id) from None
    finally:
        host.hub.unsubscribe(run_id, reader)


def _supervisor_workflow(
    names: list[str], config: dict[str, Any], more: dict[str, Any]
) -> dict[str, Any]:
    plan = [
        {"kind": "next-worker", "nextWorkerIds": names, **more},
        {"kind": "terminate", "reason": "goal-reached"},
    ]
    nodes = [
        _node("supervisor", "core.orchestrator.supervisor", {"plan": plan}),
        _node("dispatch", "core.dispatch", config),
    ]
    ways = [("supervisor", "dispatch"), ("dispatch", "supervisor")]
    #: Each wave gets its own workflow, because their runs may overlap.
    name = f"conformance-wave-{definition_digest(encode([plan, config]))[:16]}"
    return _workflow(name, nodes, ways)


def _node(name: str, type_id: str, config: dict[str, Any]) -> dict[str, Any]:
    place = {"x": 0, "y": 0}
    return {
        "id": name, "typeId": type_id, "name": name, "position": place, "config": config,
        "inputs": {},
    }  # fmt: skip


def _workflow(
    name: str, nodes: list[dict[str, Any]], ways: list[tuple[str, str]]
) -> dict[str, Any]:
    edges = [{"id": f"{a}>{b}", "sourceNodeId": a, "targetNodeId": b} for a, b in ways]
    return {
        "id": name, "name": name, "version": "1.0", "nodes": nodes, "edges": edges,
        "triggers": [], "variables": [], "metadata": {}, "settings": {},
    }  # fmt: skip
