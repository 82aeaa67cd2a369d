"""Councils that the host leads, with the demo model at full speed: what an agent's turn costs."""

import json
import statistics
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.lab import Figures, Lab, Server, cpu_per, of
from bench.table import Row, row

AT_ONCE = (1, 100)
AGENTS = ("ada", "bo", "cy")
ROUNDS = 8
IN_A_ROW = 6
SOON_MS = 5.0
#: models that have next to nothing to do: what a turn takes then is the host's own time
SCRIPTS = {
    "terse": "Yes.",
    "lengthy": "Onethingwedonotknow: howmuchoftheworkisdonebynowandhowmuchisleft. " * 36,
}


def measure(lab: Lab) -> list[Row]:
    moot = start_server(lab)
    try:
        play_round(moot, 2, member_names())  # what is loaded and learnt once is no part of a turn
        return [row for count in AT_ONCE for row in _at(lab, moot, count)]
    finally:
        moot.stop()


def start_server(lab: Lab, source: Path | None = None) -> Server:
    config = lab.path("moot.toml")
    lines = {name: ", ".join([json.dumps(says)] * (ROUNDS + 1)) for name, says in SCRIPTS.items()}
    config.write_text(
        "".join(
            f'[models.{name}]\nprovider = "demo"\nscript = [{said}]\n'
            for name, said in lines.items()
        )
    )
    moot = lab.moot(source=source, MOOT_DEMO_WPS="0", MOOT_CONFIG=str(config))
    for model in ("demo", *SCRIPTS):
        for name in member_names(model):
            moot.call("POST", "/v1/host/moot/agents", {"name": name, "model": model})
    return moot


def member_names(model: str = "demo") -> list[str]:
    return [name if model == "demo" else f"{model}-{name}" for name in AGENTS]


def _at(lab: Lab, moot: Server, count: int) -> list[Row]:
    count = min(count, 40) if lab.quick else count
    demo, terse, lengthy = (
        lab.in_turn(partial(play_round, moot, count, member_names(model)))[0]
        for model in ("demo", *SCRIPTS)
    )
    title = f"agents' turns, {count} council{'s' if count > 1 else ''}"
    goal = SOON_MS if count == 1 else None
    return [
        row(title, "turns/s", of(demo, "rate")),
        row("  server CPU per turn", "µs", cpu_per(demo, "count"), better="less"),
        row("  p50 from turn to turn", "ms", of(demo, "apart"), better="less"),
        row("  the same, of models that say one word", "ms", of(terse, "apart"),
            better="less", goal=goal),
        row("  and their server CPU per turn", "µs", cpu_per(terse, "count"), better="less"),
        row("  the same, of models that say 2,400 signs", "ms", of(lengthy, "apart"),
            better="less"),
        row("  events per turn", "events", of(demo, "events"), better="less"),
    ]  # fmt: skip


def play_round(moot: Server, count: int, names: list[str]) -> Figures:
    """So many councils at once; one alone is soon over, and has some more after it."""
    runs: list[str] = []
    before, started = moot.cpu(), time.perf_counter()
    for _ in range(IN_A_ROW if count == 1 else 1):
        begun = [_convened(moot, names) for _ in range(count)]
        for run_id in begun:
            _wait(moot, run_id)
        runs += begun
    took = time.perf_counter() - started
    cpu = moot.cpu() - before
    turns = len(names) * ROUNDS
    logs = [_log(moot, run_id) for run_id in runs[-IN_A_ROW:]]
    return {
        "rate": turns * len(runs) / took,
        "count": turns * len(runs),
        "cpu": cpu,
        "apart": statistics.median(gap for log in logs for gap in _gaps(log)) * 1000,
        "events": len(logs[-1]) / turns,
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


def _gaps(log: list[dict[str, Any]]) -> list[float]:
    """The times from one turn to the next, in seconds."""
    said = [_seconds(e["timestamp"]) for e in log if e["type"] == "conversation.exchanged"]
    return [later - sooner for sooner, later in pairwise(said)]


def _seconds(timestamp: str) -> float:
    hours, minutes, seconds = timestamp[11:-1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
