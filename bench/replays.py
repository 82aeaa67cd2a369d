"""A run of ten thousand events once more: said again, taken up at its end, verified."""

import time
from typing import Any

from bench.lab import Figures, Lab, Server, node, of, register
from bench.reads import EVENTS, long_run
from bench.streams import NODES
from bench.table import Row, row

GOAL_S = 1.0


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot(MOOT_NODES=NODES)
    try:
        runs = {"one talkative node": long_run(moot), "3,333 pure nodes": _pure_run(moot)}
        return [found for name, run_id in runs.items() for found in _of(lab, moot, name, run_id)]
    finally:
        moot.stop()


def _of(lab: Lab, moot: Server, name: str, run_id: str) -> list[Row]:
    fork, verify = f"/v1/runs/{run_id}:fork", f"/v1/host/moot/runs/{run_id}:verify"
    replay = {"mode": "replay"}
    branch = {"mode": "branch", "fromSeq": EVENTS - 10}
    again, taken_up, checked = lab.in_turn(
        lambda: _timed(moot, fork, replay),
        lambda: _timed(moot, fork, branch),
        lambda: _timed(moot, verify, {}),
    )
    return [
        row(f"replay of 10,000 events, {name}", "s", of(again, "s"), better="less", goal=GOAL_S),
        row("  branch near its end", "s", of(taken_up, "s"), better="less"),
        row("  verification", "s", of(checked, "s"), better="less"),
    ]


def _timed(moot: Server, path: str, body: Any) -> Figures:
    began = time.perf_counter()
    moot.call("POST", path, body)
    return {"s": time.perf_counter() - began}


def _pure_run(moot: Server) -> str:
    """Three events for each node, all of them worked out anew."""
    nodes = [
        {
            **node(f"set{number}", "core.setVariable"),
            "config": {"name": f"v{number % 50}", "value": number},
        }
        for number in range(EVENTS // 3)
    ]
    register(moot, "bench-pure", nodes)
    run_id = str(moot.call("POST", "/v1/runs", {"workflowId": "bench-pure"})["runId"])
    moot.ended(run_id)
    return run_id
