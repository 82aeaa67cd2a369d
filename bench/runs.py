"""Durable runs from create to terminal: POST, then GET until the run has ended."""

import json

from bench.bare import Sample
from bench.lab import Lab, Server, cpu_per, events_of, node, of, register
from bench.table import Row, row

CLIENTS = (64, 16, 1)
GOALS = {64: 2200.0}
ENOUGH_OF_BARE = 0.5
BODY = json.dumps({"workflowId": "bench-noop", "inputs": {}})


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot()
    register(moot, "bench-noop", [node("noop", "core.noop")])
    bare = lab.bare(sample_of(moot))
    try:
        rows = [row for clients in CLIENTS for row in _at(lab, moot, bare, clients)]
    finally:
        moot.stop()
        bare.stop()
    return rows


def sample_of(moot: Server) -> Sample:
    """What a noop run writes and answers, for the bare server to do the same."""
    created = moot.call("POST", "/v1/runs", {"workflowId": "bench-noop", "inputs": {}})
    return Sample(
        database="",
        run_events=events_of(moot, created["runId"]),
        created=json.dumps(created, separators=(",", ":")).encode(),
        snapshot=moot.body(f"/v1/runs/{created['runId']}"),
    )


def _at(lab: Lab, moot: Server, bare: Server, clients: int) -> list[Row]:
    asked = {"clients": clients, "seconds": lab.seconds, "body": BODY}
    ours, theirs = lab.in_turn(
        lambda: moot.drive("runs", **asked), lambda: bare.drive("runs", **asked)
    )
    name = f"noop runs, {clients} client{'s' if clients > 1 else ''}"
    rates = row(name, "runs/s", of(ours, "rate"), of(theirs, "rate"), goal=GOALS.get(clients))
    found = [rates]
    if clients == max(CLIENTS):
        found.append(row("  share of bare", "ratio", [rates.ratio or 0.0], goal=ENOUGH_OF_BARE))
    cost, bare_cost = cpu_per(ours, "count"), cpu_per(theirs, "count")
    return [
        *found,
        row("  server CPU per run", "µs", cost, bare_cost, better="less"),
        row("  p50", "ms", of(ours, "p50"), of(theirs, "p50"), better="less"),
        row("  p99", "ms", of(ours, "p99"), of(theirs, "p99"), better="less"),
    ]
