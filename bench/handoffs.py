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


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot()
    out = {"name": "out", "type": "string", "defaultValue": "done"}
    worker = {**workflow("bench-worker", [node("work", "core.noop")]), "variables": [out]}
    moot.call("POST", "/v1/host/moot/workflows", worker)
    try:
        rows = []
        for name, plan, each in (
            ("one after the other", [ORDER] * TURNS, TURNS),
            (f"in waves of {WAVE}", [_wave()] * (TURNS // WAVE), TURNS // WAVE * WAVE),
        ):
            _register(moot, [*plan, DONE])
            rows += [row for clients in CLIENTS for row in _at(lab, moot, name, each, clients)]
        return rows
    finally:
        moot.stop()


def _wave() -> dict[str, Any]:
    return {**ORDER, "nextWorkerIds": ["bench-worker"] * WAVE}


def _register(moot: Server, plan: list[dict[str, Any]]) -> None:
    """The supervisor, its dispatch node, and the way back."""
    harvest = {"outputMapping": {"result": "out"}, "fanOutPolicy": "parallel"}
    nodes = [
        node("boss", "core.orchestrator.supervisor", plan=plan),
        node("hands", "core.dispatch", **harvest),
    ]
    body = workflow("bench-led", nodes)
    back = {"id": "back", "sourceNodeId": "hands", "targetNodeId": "boss"}
    result = {"name": "result", "type": "string"}
    moot.call(
        "POST",
        "/v1/host/moot/workflows",
        {**body, "edges": [*body["edges"], back], "variables": [result]},
    )


def _at(lab: Lab, moot: Server, name: str, each: int, clients: int) -> list[Row]:
    written, length = _written(moot)
    asked = {
        "clients": clients,
        "seconds": lab.seconds,
        "body": json.dumps({"workflowId": "bench-led"}),
        "last": length - 1,
    }
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


def _written(moot: Server) -> tuple[int, int]:
    """Events of a run and all its children, and of the run alone."""
    run_id = moot.call("POST", "/v1/runs", {"workflowId": "bench-led"})["runId"]
    moot.ended(run_id)
    log = moot.call("GET", f"/v1/runs/{run_id}/events/poll?timeout=0")["events"]
    children = {
        event["payload"]["childRunId"] for event in log if event["type"] == "node.dispatched"
    }
    theirs = [
        moot.call("GET", f"/v1/runs/{child}/events/poll?timeout=0")["events"] for child in children
    ]
    return len(log) + sum(map(len, theirs)), len(log)
