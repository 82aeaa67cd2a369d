"""Handoffs: a supervisor decides, a worker runs as a child, its output is harvested, and again."""

import json
from typing import Any

from bench.lab import Lab, Server, cpu_per, node, of, workflow
from bench.table import Row, row

CLIENTS = (16, 1)
TURNS = 20
WAVE = 8
ORDER = {"kind": "next-worker", "nextWorkerIds": ["bench-worker"]}
DONE = {"kind": "terminate", "reason": "goal-reached"}
WAVE_ORDER = {**ORDER, "nextWorkerIds": ["bench-worker"] * WAVE}
#: the id of the workflow, its orders, and how many handoffs they come to
PLANS: dict[str, tuple[str, list[dict[str, Any]], int]] = {
    "one after the other": ("bench-led", [ORDER] * TURNS, TURNS),
    f"in waves of {WAVE}": ("bench-waves", [WAVE_ORDER] * (TURNS // WAVE), TURNS // WAVE * WAVE),
}


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot()
    register_worker(moot)
    try:
        rows = []
        for name, (workflow_id, plan, _) in PLANS.items():
            register_plan(moot, workflow_id, plan)
            rows += [row for clients in CLIENTS for row in _at(lab, moot, name, clients)]
        return rows
    finally:
        moot.stop()


def register_worker(moot: Server) -> None:
    out = {"name": "out", "type": "string", "defaultValue": "done"}
    worker = {**workflow("bench-worker", [node("work", "core.noop")]), "variables": [out]}
    moot.call("POST", "/v1/host/moot/workflows", worker)


def register_plan(moot: Server, workflow_id: str, plan: list[dict[str, Any]]) -> None:
    """The supervisor, its dispatch node, and the way back."""
    harvest = {"outputMapping": {"result": "out"}, "fanOutPolicy": "parallel"}
    nodes = [
        node("boss", "core.orchestrator.supervisor", plan=[*plan, DONE]),
        node("hands", "core.dispatch", **harvest),
    ]
    body = workflow(workflow_id, nodes)
    back = {"id": "back", "sourceNodeId": "hands", "targetNodeId": "boss"}
    result = {"name": "result", "type": "string"}
    moot.call(
        "POST",
        "/v1/host/moot/workflows",
        {**body, "edges": [*body["edges"], back], "variables": [result]},
    )


def request(lab: Lab, moot: Server, workflow_id: str, clients: int) -> dict[str, Any]:
    """The arguments of the scenario ``ended_runs``."""
    return {
        "clients": clients,
        "seconds": lab.seconds,
        "body": json.dumps({"workflowId": workflow_id}),
        "last": _count_events(moot, workflow_id)[1] - 1,
    }


def _at(lab: Lab, moot: Server, name: str, clients: int) -> list[Row]:
    workflow_id, _, each = PLANS[name]
    written, _ = _count_events(moot, workflow_id)
    asked = request(lab, moot, workflow_id, clients)
    [found] = lab.in_turn(lambda: moot.drive("ended_runs", **asked))
    rates = [rate * each for rate in of(found, "rate")]
    cost = [micros / each for micros in cpu_per(found, "count")]
    title = f"handoffs {name}, {clients} client{'s' if clients > 1 else ''}"
    return [
        row(title, "handoffs/s", rates),
        row("  server CPU per handoff", "µs", cost, better="less"),
        row("  events per handoff", "events", [written / each], better="less"),
        row(f"  p50 of {each} handoffs", "ms", of(found, "p50"), better="less"),
    ]


def _count_events(moot: Server, workflow_id: str) -> tuple[int, int]:
    """Events of a run and all its children, and of the run alone."""
    run_id = moot.call("POST", "/v1/runs", {"workflowId": workflow_id})["runId"]
    moot.ended(run_id)
    log = moot.call("GET", f"/v1/runs/{run_id}/events/poll?timeout=0")["events"]
    children = {
        event["payload"]["childRunId"] for event in log if event["type"] == "node.dispatched"
    }
    theirs = [
        moot.call("GET", f"/v1/runs/{child}/events/poll?timeout=0")["events"] for child in children
    ]
    return len(log) + sum(map(len, theirs)), len(log)
