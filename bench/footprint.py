"""What the server takes by being there: memory, and time until it answers."""

import json
import time
from collections.abc import Callable

from bench.lab import Lab, Server, node, register
from bench.table import Row, row

STARTS = 7
RUNS = 20_000


def measure(lab: Lab) -> list[Row]:
    return [*_memory(lab), *_cold_start(lab)]


def _memory(lab: Lab) -> list[Row]:
    many = 2_000 if lab.quick else RUNS
    moot, bare = lab.moot(), lab.bare()
    try:
        register(moot, "bench-noop", [node("noop", "core.noop")])
        moot.call("GET", "/healthz")
        time.sleep(1)
        idle, bare_idle = moot.rss(), bare.rss()
        body = json.dumps({"workflowId": "bench-noop"})
        moot.drive("runs", clients=64, seconds=600, most=many, body=body)
        time.sleep(1)
        after = moot.rss()
    finally:
        moot.stop()
        bare.stop()
    return [
        row("memory, idle", "MB", [idle], [bare_idle], better="less", goal=90),
        row(f"memory, after {many:,} runs", "MB", [after], better="less"),
    ]


def _cold_start(lab: Lab) -> list[Row]:
    """From exec to the first healthy answer, on a file that is already there."""
    file = lab.path("cold.db")
    lab.moot(file).stop()
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(STARTS):
        ours.append(_time(lambda: lab.moot(file), "/healthz"))
        theirs.append(_time(lab.bare, "/"))
    return [row("cold start", "s", ours, theirs, better="less", goal=0.7)]


def _time(start: Callable[[], Server], path: str) -> float:
    began = time.perf_counter()
    server = start()
    server.body(path)
    took = time.perf_counter() - began
    server.stop()
    return took
