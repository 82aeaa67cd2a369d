"""Councils that the host leads, with the demo model at full speed: what an agent's turn costs."""

import statistics
import time
from itertools import pairwise
from typing import Any

from bench.lab import Figures, Lab, Server, cpu_per, of
from bench.table import Row, row

AT_ONCE = (1, 100)
AGENTS = ("ada", "bo", "cy")
ROUNDS = 8
#: a model that has next to nothing to do: what a turn takes then is the host's own time
TERSE = "terse"
SOON_MS = 5.0


def measure(lab: Lab) -> list[Row]:
    config = lab.path("moot.toml")
    lines = ", ".join(['"Yes."'] * (ROUNDS + 1))
    config.write_text(f'[models.{TERSE}]\nprovider = "demo"\nscript = [{lines}]\n')
    moot = lab.moot(MOOT_DEMO_WPS="0", MOOT_CONFIG=str(config))
    for name in AGENTS:
        moot.call("POST", "/v1/host/moot/agents", {"name": name, "model": "demo"})
        moot.call("POST", "/v1/host/moot/agents", {"name": f"{TERSE}-{name}", "model": TERSE})
    try:
        return [row for count in AT_ONCE for row in _at(lab, moot, count)]
    finally:
        moot.stop()


def _at(lab: Lab, moot: Server, count: int) -> list[Row]:
    count = min(count, 40) if lab.quick else count
    terse = [f"{TERSE}-{name}" for name in AGENTS]
    found, bare = lab.in_turn(
        lambda: _round(moot, count, list(AGENTS)), lambda: _round(moot, count, terse)
    )
    title = f"agents' turns, {count} council{'s' if count > 1 else ''}"
    goal = SOON_MS if count == 1 else None
    return [
        row(title, "turns/s", of(found, "rate")),
        row("  server CPU per turn", "µs", cpu_per(found, "count"), better="less"),
        row("  p50 from turn to turn", "ms", of(found, "apart"), better="less"),
        row("  the same, of models that say one word", "ms", of(bare, "apart"), better="less",
            goal=goal),
        row("  events per turn", "events", of(found, "events"), better="less"),
    ]  # fmt: skip


def _round(moot: Server, count: int, names: list[str]) -> Figures:
    before, started = moot.cpu(), time.perf_counter()
    runs = [_convened(moot, names) for _ in range(count)]
    for run_id in runs:
        _wait(moot, run_id)
    took = time.perf_counter() - started
    cpu = moot.cpu() - before
    log = _log(moot, runs[-1])
    turns = len(names) * ROUNDS
    return {
        "rate": turns * count / took,
        "count": turns * count,
        "cpu": cpu,
        "apart": _apart(log),
        "events": len(log) / turns,
    }


def _convened(moot: Server, names: list[str]) -> str:
    policy = {"mode": "round-robin", "rounds": ROUNDS}
    body = {"question": "Do we ship in June?", "participants": names, "policy": policy}
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


def _apart(log: list[dict[str, Any]]) -> float:
    """The median time from one turn to the next, in ms."""
    said = [_seconds(e["timestamp"]) for e in log if e["type"] == "conversation.exchanged"]
    return statistics.median(later - sooner for sooner, later in pairwise(said)) * 1000


def _seconds(timestamp: str) -> float:
    hours, minutes, seconds = timestamp[11:-1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
