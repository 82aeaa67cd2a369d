"""The cost of one more event in a run that is already long. It must not grow with the log.

``python -m bench.appends FILE LENGTHS`` measures one run in a process of its own.
"""

import asyncio
import json
import subprocess
import sys
from time import perf_counter, process_time
from typing import Any

import uvloop

from bench.lab import ROOT, Figures, Lab, node, of, workflow
from bench.table import Row, row
from moot.core.events import new_event

LENGTHS = (100, 1_000, 10_000, 100_000)
WINDOW = 2_000
AT_ONCE = 64
FLAT = 1.25


def measure(lab: Lab) -> list[Row]:
    lengths = LENGTHS[:3] if lab.quick else LENGTHS
    (rounds,) = lab.in_turn(lambda: _grown(lab, lengths))
    rows = []
    for length in lengths:
        name = f"append at length {length:,}"
        rows.append(row(name, "µs", of(rounds, f"wall {length}"), better="less"))
        cost = of(rounds, f"cpu {length}")
        rows.append(row("  CPU", "µs", cost, better="less"))
        if length != lengths[0]:
            first = of(rounds, f"cpu {lengths[0]}")
            growth = [later / early for later, early in zip(cost, first, strict=True)]
            name = f"  CPU, against length {lengths[0]}"
            rows.append(row(name, "ratio", growth, better="less", goal=FLAT))
    return rows


def _grown(lab: Lab, lengths: tuple[int, ...]) -> Figures:
    arguments = [str(lab.path("appends.db")), json.dumps(lengths)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.appends", *arguments],
        cwd=ROOT, env=lab.environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


async def _one_run(file: str, lengths: list[int]) -> Figures:
    from moot.clock import SystemClock
    from moot.core.events import NewEvent
    from moot.core.runs.nodes import Emit
    from moot.core.runs.start import RunLimits, StartRun
    from moot.core.state.run import Run
    from moot.core.workflows.node_types import NodeKind, NodeType
    from moot.engine.host import Host
    from moot.engine.workflows.registry import WorkflowRegistry
    from moot.store.sqlite import SqliteStore

    async def forever(_: Any) -> None:
        await asyncio.Event().wait()

    clock = SystemClock()
    store = await SqliteStore.open(file)
    types = {"bench.ear": NodeType(type_id="bench.ear", kind=NodeKind.ACTIVITY, activity=forever)}
    flows = WorkflowRegistry(store, types, clock)
    host = Host(store, flows, clock)
    definition = workflow("ear", [node("n", "bench.ear")])
    flow = await flows.register("t", json.dumps(definition).encode())
    start = StartRun(tenant="t", principal="p", at=clock.millis(), limits=RunLimits())

    def said() -> NewEvent:
        payload = {"nodeId": "n", "chunk": "a few words ", "isLast": False}
        return new_event("output.chunk", payload, "n")

    async def append(run: Run, count: int) -> None:
        while count > 0:
            now = min(AT_ONCE, count)
            commands = [Emit("n", 1, (said(),), clock.millis()) for _ in range(now)]
            await asyncio.gather(*(host.handle("t", run.run_id, each) for each in commands))
            count -= now

    await append(await host.create(flow, start), WINDOW)  # a run to get warm
    run = await host.create(flow, start)
    found: Figures = {}
    for length in lengths:
        await append(run, length - run.next_sequence)
        wall, cpu = perf_counter(), process_time()
        await append(run, WINDOW)
        found[f"wall {length}"] = (perf_counter() - wall) / WINDOW * 1e6
        found[f"cpu {length}"] = (process_time() - cpu) / WINDOW * 1e6
    await host.aclose()
    return found


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_one_run(sys.argv[1], json.loads(sys.argv[2])))))
