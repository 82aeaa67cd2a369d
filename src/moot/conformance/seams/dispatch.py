"""Seams for supervisors of a host under trial: a real workflow is registered and run, and what its
log says of the workers is told.
"""

import asyncio
import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from moot.api.http.request import Reply, Request, encode
from moot.core.errors import Unavailable, Unprocessable
from moot.core.events import Event
from moot.core.runs.start import StartRun
from moot.core.workflows.graph import digest
from moot.engine.head import Head

Names = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(min_length=1, max_length=64)
]

#: how long a seam waits for its run
PATIENCE = 20.0


class FanOut(Struct, frozen=True, rename="camel"):
    next_worker_ids: Names
    config: dict[str, Any] = {}


class PerItem(Struct, frozen=True, rename="camel"):
    next_worker_ids: Names
    next_worker_inputs: list[dict[str, Any]] = []


async def fan_out(request: Request) -> Reply:
    """One wave of workers: how it came together."""
    asked = await request.read(FanOut)
    head, events = await _dispatched(request, asked.next_worker_ids, asked.config, {})
    joins = [event.payload for event in events if event.type == "core.dispatch.join"]
    if not joins:
        raise _not_done(head)
    ends = {
        said["childRunId"]: said["phase"].removeprefix("child.")
        for event in events
        if (said := event.payload).get("phase", "").startswith("child.")
    }
    children = [
        {"childRunId": child, "childStatus": ends[child]} for child in joins[0]["mergeOrder"]
    ]
    return Reply({"runId": head.run.run_id, "children": children, **joins[0]})


async def per_item(request: Request) -> Reply:
    """What each worker of a wave was given. A decision has no room for inputs of single workers, so
    one that brings some is refused like any other that does not fit."""
    asked = await request.read(PerItem)
    more = {"nextWorkerInputs": asked.next_worker_inputs} if asked.next_worker_inputs else {}
    head, events = await _dispatched(request, asked.next_worker_ids, {}, more)
    if head.run.status != "completed":
        raise _not_done(head)
    host, tenant = request.services.host, request.caller.tenant
    begun = [e.payload["childRunId"] for e in events if e.type == "node.dispatched"]
    inputs = [(await host.view(tenant, child)).run.inputs for child in begun]
    return Reply({"runId": head.run.run_id, "children": [{"inputs": each} for each in inputs]})


def _not_done(head: Head) -> Unprocessable:
    error = head.run.error or {}
    return Unprocessable(
        error.get("message", "The workers did not come together."), runId=head.run.run_id
    )


async def _dispatched(
    request: Request, workers: list[str], config: dict[str, Any], more: dict[str, Any]
) -> tuple[Head, list[Event]]:
    """A run whose supervisor hands work to these workers, once it is over, and its log."""
    host, tenant = request.services.host, request.caller.tenant
    names = [re.sub(r"[^a-z0-9_-]", "-", worker.lower()) for worker in workers]
    for name in dict.fromkeys(names):
        known = await request.services.store.definition(tenant, name)
        if known is None:
            noop = _node("work", "core.noop", {})
            await host.flows.register(tenant, encode(_workflow(name, [noop], [])))
    flow = await host.flows.register(tenant, encode(_supervised(names, config, more)))
    command = StartRun(
        tenant=tenant,
        principal=request.caller.id,
        at=request.services.clock.millis(),
        limits=host.limits,
    )
    run_id = (await host.create(flow, command)).run_id
    head = await _over(request, run_id)
    return head, await host.runs.log(head)


async def _over(request: Request, run_id: str) -> Head:
    host = request.services.host
    reader = host.hub.subscribe(run_id)
    try:
        async with asyncio.timeout(PATIENCE):
            while not (head := await host.view(request.caller.tenant, run_id)).run.terminal:
                await reader.wait(1)
                reader.waiting.clear()
        return head
    except TimeoutError:
        raise Unavailable("The workers take too long.", runId=run_id) from None
    finally:
        host.hub.unsubscribe(run_id, reader)


def _supervised(names: list[str], config: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    plan = [
        {"kind": "next-worker", "nextWorkerIds": names, **more},
        {"kind": "terminate", "reason": "goal-reached"},
    ]
    nodes = [
        _node("supervisor", "core.orchestrator.supervisor", {"plan": plan}),
        _node("dispatch", "core.dispatch", config),
    ]
    ways = [("supervisor", "dispatch"), ("dispatch", "supervisor")]
    #: another wave is another workflow: runs of both may be under way
    name = f"conformance-wave-{digest(encode([plan, config]))[:16]}"
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
