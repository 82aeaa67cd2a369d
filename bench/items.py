"""Work that comes in: an item from its POST until its run is on disk and answered."""

import json

from bench.bare import Sample
from bench.lab import Lab, Server, cpu_per, events_of, node, of, register
from bench.table import Row, row

CLIENTS = (64, 16, 1)
ITEMS = "/v1/host/moot/queues/bench/items"
ITEM = {"subject": "a quote", "body": "x" * 200}


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot()
    register(moot, "bench-noop", [node("noop", "core.noop")])
    moot.call("PUT", "/v1/host/moot/queues/bench", {"workflowId": "bench-noop"})
    bare = lab.bare(_sample(moot))
    try:
        rows = [row for clients in CLIENTS for row in _at(lab, moot, bare, clients)]
    finally:
        moot.stop()
        bare.stop()
    return rows


def _sample(moot: Server) -> Sample:
    """What an item's run writes, and what is answered."""
    pushed = moot.call("POST", ITEMS, ITEM)
    return Sample(
        database="",
        run_events=events_of(moot, pushed["runId"]),
        created=json.dumps(pushed, separators=(",", ":")).encode(),
        snapshot=b"{}",
    )


def _at(lab: Lab, moot: Server, bare: Server, clients: int) -> list[Row]:
    asked = {"clients": clients, "seconds": lab.seconds, "bodies": [json.dumps(ITEM)]}
    ours, theirs = lab.in_turn(
        lambda: moot.drive("turns", paths=[ITEMS], **asked),
        lambda: bare.drive("turns", paths=["/v1/runs"], **asked),
    )
    name = f"items to runs, {clients} client{'s' if clients > 1 else ''}"
    cost, bare_cost = cpu_per(ours, "count"), cpu_per(theirs, "count")
    return [
        row(name, "items/s", of(ours, "rate"), of(theirs, "rate")),
        row("  server CPU per item", "µs", cost, bare_cost, better="less"),
        row("  p50", "ms", of(ours, "p50"), of(theirs, "p50"), better="less"),
        row("  p99", "ms", of(ours, "p99"), of(theirs, "p99"), better="less"),
    ]
