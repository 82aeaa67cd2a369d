"""Event streams: how soon one reader hears of a cause, how much fifty readers hear a second."""

import json

from bench.bare import Sample
from bench.lab import ROOT, Lab, Server, cpu_per, events_of, node, of, register
from bench.table import Row, row

SUBSCRIBERS = 50
QUIET_MS = 1500  # everybody has begun to listen by then
#: events of one decision that share a commit, and reports of a node that do
CHAIN_GROUP, CHUNK_GROUP = 512, 64
NODES = str(ROOT / "bench" / "nodes.py")


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot(MOOT_NODES=NODES)
    try:
        register_workflows(moot, lab.quick)
        return [*_latency(lab, moot), *_chain(lab, moot), *_chunks(lab, moot)]
    finally:
        moot.stop()


def register_workflows(moot: Server, quick: bool) -> None:
    """A run that waits, thousands of nodes in a row, and one node that streams its output."""
    register(moot, "bench-wait", [node("wait", "core.delay", ms=86_400_000)])
    pause = node("wait", "core.delay", ms=QUIET_MS)
    chain = [node(f"n{number:04d}", "core.noop") for number in range(_chain_length(quick))]
    register(moot, "bench-chain", [pause, *chain])
    chatter = node("say", "bench.chatter", chunks=_chunk_count(quick))
    register(moot, "bench-chunks", [pause, chatter])


def _chain_length(quick: bool) -> int:
    return 1000 if quick else 3000


def _chunk_count(quick: bool) -> int:
    return 2000 if quick else 6000


def _latency(lab: Lab, moot: Server) -> list[Row]:
    body = json.dumps({"workflowId": "bench-wait"})
    run_id = moot.call("POST", "/v1/runs", {"workflowId": "bench-wait"})["runId"]
    moot.call("POST", f"/v1/runs/{run_id}:pause", {"drainPolicy": "immediate"})
    bare = lab.bare(
        Sample(
            database="",
            run_events=events_of(moot, run_id)[:2],
            created=json.dumps({"runId": run_id}, separators=(",", ":")).encode(),
            pause_event=events_of(moot, run_id)[-1],
        )
    )
    asked = {"count": 100 if lab.quick else 300, "body": body}
    try:
        ours, theirs = lab.in_turn(
            lambda: moot.drive("latency", **asked), lambda: bare.drive("latency", **asked)
        )
    finally:
        bare.stop()
    name = "cause to event on an idle stream"
    return [
        row(f"{name}, p50", "ms", of(ours, "p50"), of(theirs, "p50"), better="less", goal=1.5),
        row("  p99", "ms", of(ours, "p99"), of(theirs, "p99"), better="less"),
    ]


def _chain(lab: Lab, moot: Server) -> list[Row]:
    """Thousands of nodes one after the other: two events each."""
    size = (2 * _chain_length(lab.quick), CHAIN_GROUP)
    return _fan_out(lab, moot, "bench-chain", size, goal=60_000)


def _chunks(lab: Lab, moot: Server) -> list[Row]:
    """One node that streams its output piece by piece."""
    size = (_chunk_count(lab.quick), CHUNK_GROUP)
    return _fan_out(lab, moot, "bench-chunks", size, goal=60_000)


def _fan_out(
    lab: Lab, moot: Server, workflow_id: str, size: tuple[int, int], goal: float
) -> list[Row]:
    asked = {"subscribers": SUBSCRIBERS, "body": json.dumps({"workflowId": workflow_id})}
    bare = lab.bare(_sample(moot, workflow_id, *size))
    try:
        ours, theirs = lab.in_turn(
            lambda: moot.drive("fan_out", path="/v1/runs", **asked),
            lambda: bare.drive("fan_out", path="/v1/fan", **asked),
        )
    finally:
        bare.stop()
    cost, bare_cost = cpu_per(ours, "deliveries"), cpu_per(theirs, "deliveries")
    name = f"{SUBSCRIBERS} readers of {workflow_id.removeprefix('bench-')}"
    return [
        row(name, "deliveries/s", of(ours, "rate"), of(theirs, "rate"), goal=goal),
        row("  server CPU per delivery", "µs", cost, bare_cost, better="less"),
    ]


def _sample(moot: Server, workflow_id: str, count: int, group: int) -> Sample:
    """A typical event of the workflow, for the bare server to send as often."""
    run_id = moot.call("POST", "/v1/runs", {"workflowId": workflow_id})["runId"]
    moot.ended(run_id)
    return Sample(
        database="",
        created=json.dumps({"runId": run_id}, separators=(",", ":")).encode(),
        fan_event=events_of(moot, run_id)[500],
        fan_group=group,
        fan_groups=count // group,
        quiet_ms=QUIET_MS,
    )
