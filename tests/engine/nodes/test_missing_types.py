"""A node type that was there when a run began may be gone after a restart."""

import asyncio

import pytest

from moot.clock import SystemClock
from moot.core.runs.start import RunLimits, StartRun
from moot.core.state.status import Status
from moot.core.workflows.node_types import Completed, NodeCall, NodeKind, NodeType
from moot.engine.host import Host
from moot.engine.nodes import registry
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.memory.store import MemoryStore

DEFINITION = b"""{"id": "waits", "name": "Waits", "version": "1",
 "nodes": [{"id": "n", "typeId": "acme.slow", "name": "n", "position": {"x": 0, "y": 0},
            "config": {}, "inputs": {}}],
 "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}}"""


class Kept(MemoryStore):
    """A store that outlives its host, as a file does."""

    async def aclose(self) -> None:
        return


def host_with(store: MemoryStore, types: dict[str, NodeType]) -> Host:
    clock = SystemClock()
    return Host(
        store, WorkflowRegistry(store, {**registry.built_in_types(), **types}, clock), clock
    )


async def slow(ctx: NodeCall) -> Completed:
    await asyncio.Event().wait()
    return Completed()


async def quick(ctx: NodeCall) -> Completed:
    return Completed({"done": True})


def acme(activity: object) -> dict[str, NodeType]:
    kind = NodeKind.ACTIVITY
    return {"acme.slow": NodeType(type_id="acme.slow", kind=kind, activity=activity)}  # type: ignore[arg-type]


async def test_a_run_whose_node_type_is_gone_can_be_read_and_goes_on_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Kept()
    first = host_with(store, acme(slow))
    flow = await first.flows.register("default", DEFINITION)
    command = StartRun(tenant="default", principal="key", at=0, limits=RunLimits())
    run_id = (await first.create(flow, command)).run_id
    await first.aclose()

    without = host_with(store, {})
    await without.recover()
    async with asyncio.timeout(60):
        while "Node type acme.slow is not installed" not in caplog.text:
            await asyncio.sleep(0.005)
    assert (await without.view("default", run_id)).run.status is Status.RUNNING
    await without.aclose()

    back = host_with(store, acme(quick))
    reader = back.hub.subscribe(run_id)
    await back.recover()
    while not (await back.view("default", run_id)).run.terminal:
        await reader.wait(5)
        reader.waiting.clear()
    assert (await back.view("default", run_id)).run.outputs == {"done": True}
    await back.aclose()
