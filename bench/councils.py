"""Councils that the host leads, with the demo model at full speed: what an agent's turn costs."""

import statistics
import time
from typing import Any

from bench.lab import Figures, Lab, Server, cpu_per, of
from bench.table import Row, row

AT_ONCE = (1, 100)
AGENTS = ("ada", "bo", "cy")
ROUNDS = 8
SOON_MS = 5.0


def measure(lab: Lab) -> list[Row]:
    moot = lab.moot(MOOT_DEMO_WPS="0")
    for name in AGENTS:
        moot.call("POST", "/v1/host/moot/agents", {"name": name, "model": "demo"})
    try:
        return [row for count in AT_ONCE for row in _at(lab, moot, count)]
    finally:
        moot.stop()


def _at(lab: Lab, moot: Server, count: int) -> list[Row]:
    [found] = lab.in_turn(lambda: _round(moot, count if not lab.quick else min(count, 40)))
    goal = SOON_MS if count == 1 else None
    return [
        row(
            f"agents' turns, {count} council{'s' if count > 1 else ''}",
            "turns/s",
            of(found, "rate"),
        ),
        row("  server CPU per turn", "µs", cpu_per(found, "count"), better="less"),
        row("  beyond the model's own time", "ms", of(found, "beyond"), better="less", goal=goal),
        row("  events per turn", "events", of(found, "events"), better="less"),
    ]


def _round(moot: Server, count: int) -> Figures:
    before, started = moot.cpu(), time.perf_counter()
    runs = [_convened(moot) for _ in range(count)]
    for run_id in runs:
        _wait(moot, run_id)
    took = time.perf_counter() - started
    cpu = moot.cpu() - before
    log = _log(moot, runs[-1])
    turns = len(AGENTS) * ROUNDS
    return {
        "rate": turns * count / took,
        "count": turns * count,
        "cpu": cpu,
        "beyond": _beyond(log),
        "events": len(log) / turns,
    }


def _convened(moot: Server) -> str:
    policy = {"mode": "round-robin", "rounds": ROUNDS}
    body = {"question": "Do we ship in June?", "participants": list(AGENTS), "policy": policy}
    return str(moot.call("POST", "/v1/host/moot/councils", body)["runId"])


def _wait(moot: Server, run_id: str) -> None:
    while True:
        floor = moot.call("GET", f"/v1/host/moot/threads/{run_id}")["floor"]
        if floor["phase"] == "over":
            return
        assert not floor["stopped"], floor
        time.sleep(0.02)


def _log(moot: Server, run_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        last = found[-1]["sequence"] if found else -1
        path = f"/v1/runs/{run_id}/events/poll?timeout=0&lastSequence={last}"
        page = moot.call("GET", path)["events"]
        if not page:
            return found
        found += page


def _beyond(log: list[dict[str, Any]]) -> float:
    """The median, over turns, of the time between two turns without that of the call, in ms."""
    spent, last, calling, found = 0.0, None, 0.0, []
    for event in log:
        at = _seconds(event["timestamp"])
        match event["type"]:
            case "moot.effect.started":
                calling = at
            case "moot.effect.finished":
                spent += at - calling
            case "conversation.exchanged":
                if last is not None:
                    found.append(at - last - spent)
                last, spent = at, 0.0
    return statistics.median(found) * 1000


def _seconds(timestamp: str) -> float:
    hours, minutes, seconds = timestamp[11:-1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
