"""Measure two source trees in turn: one driver, the same load, a ratio with its spread."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import councils, footprint, handoffs, runs, streams, threads, turns
from bench.lab import Figures, Lab, Server, node, register
from bench.table import Better, Pair, pair

#: one round of a load
Round = Callable[[], Figures]
#: the rounds that one tree can play, by the name of the load
Loads = dict[str, Round]

HEALTHY_S = 0.6
HELP_OF_CLICK = 3.0
REPEATS = 5


class Metric(NamedTuple):
    """A figure of a round: its label, its unit, and whether more of it is better."""

    label: str
    unit: str
    better: Better
    goal: float | None = None


METRICS = {
    "rate": Metric("rate", "/s", "more"),
    "cpu": Metric("server CPU", "µs", "less"),
    "p50": Metric("p50", "ms", "less"),
    "healthy": Metric("from exec", "s", "less", HEALTHY_S),
    "help": Metric("from exec", "s", "less"),
    "of_click": Metric("times import click", "ratio", "less", HELP_OF_CLICK),
}


def compare(lab: Lab, names: list[str], bar: float) -> list[Pair]:
    """Play every load of the named areas on both trees in turn."""
    assert lab.beside is not None
    rows = []
    for name in names:
        print(f"comparing {name} …", flush=True)
        with ExitStack() as servers:
            ours, theirs = (
                servers.enter_context(AREAS[name](lab, tree)) for tree in (lab.source, lab.beside)
            )
            for load in ours:
                rows += _compare_load(lab, load, ours[load], theirs[load], bar)
    return rows


def _compare_load(lab: Lab, load: str, ours: Round, theirs: Round, bar: float) -> list[Pair]:
    ours(), theirs()  # a server loads and learns much in its first requests
    measured, beside = lab.in_turn(ours, theirs)
    pairs = []
    for key in measured[0]:
        metric = METRICS[key]
        values, others = ([figures[key] for figures in side] for side in (measured, beside))
        name = f"{load}, {metric.label}"
        pairs.append(pair(name, metric.unit, values, others, metric.better, bar, metric.goal))
    return pairs


# -- the areas -----------------------------------------------------------------------------------


@contextmanager
def _started(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def _turns(lab: Lab, tree: Path) -> Iterator[Loads]:
    with _started(lab.moot(source=tree)) as moot:
        turns.register_conversation(moot)
        one, many = ([turns.open_conversation(moot) for _ in range(count)] for count in (1, 64))
        yield {
            "turns, 64 clients": _per(partial(turns.drive, lab, moot, 64, one)),
            "turns, 1 client": _per(partial(turns.drive, lab, moot, 1, one)),
            "turns into 64 conversations": _per(partial(turns.drive, lab, moot, 64, many)),
            "turns with messageId": _per(partial(turns.drive, lab, moot, 64, one, turns.NUMBER)),
        }


@contextmanager
def _runs(lab: Lab, tree: Path) -> Iterator[Loads]:
    with _started(lab.moot(source=tree)) as moot:
        register(moot, "bench-noop", [node("noop", "core.noop")])
        asked = {"seconds": lab.seconds, "body": runs.BODY}
        yield {
            f"noop runs, {clients} client(s)": _per(
                partial(moot.drive, "runs", clients=clients, **asked)
            )
            for clients in (64, 1)
        }


@contextmanager
def _threads(lab: Lab, tree: Path) -> Iterator[Loads]:
    with _started(lab.moot(source=tree, MOOT_TRUST_LOCAL="1")) as moot:
        loads: Loads = {}
        for count in threads.THREADS:
            asked = {
                "clients": threads.CLIENTS,
                "seconds": lab.seconds,
                "paths": [threads.open_thread(moot) for _ in range(count)],
                "bodies": threads.messages(),
            }
            loads[f"messages into {count} thread(s)"] = _per(partial(moot.drive, "turns", **asked))
        said = {"path": threads.open_thread(moot, ()), "body": threads.messages()[-1]}
        for count in threads.STREAMS:
            deliver = partial(moot.drive, "deliveries", streams=count, count=100, **said)
            loads[f"post to receipt, {count} stream(s)"] = _per(deliver, "heard", "p50")
        yield loads


@contextmanager
def _handoffs(lab: Lab, tree: Path) -> Iterator[Loads]:
    with _started(lab.moot(source=tree)) as moot:
        handoffs.register_worker(moot)
        loads: Loads = {}
        for name, (workflow_id, plan, _) in handoffs.PLANS.items():
            handoffs.register_plan(moot, workflow_id, plan)
            asked = handoffs.request(lab, moot, workflow_id, 16)
            loads[f"runs of handoffs {name}"] = _per(partial(moot.drive, "ended_runs", **asked))
        yield loads


@contextmanager
def _councils(lab: Lab, tree: Path) -> Iterator[Loads]:
    with _started(councils.start_server(lab, tree)) as moot:
        many = councils.AT_ONCE[1] // (5 if lab.quick else 2)
        yield {
            f"agents' turns, {model} model, {count} council(s)": _per(
                partial(councils.play_round, moot, count, councils.member_names(model)),
                key="rate" if count > 1 else "apart",
            )
            for count in (1, many)
            for model in ("demo", "terse")
        }


@contextmanager
def _streams(lab: Lab, tree: Path) -> Iterator[Loads]:
    with _started(lab.moot(source=tree, MOOT_NODES=streams.NODES)) as moot:
        streams.register_workflows(moot, lab.quick)
        loads: Loads = {}
        waiting = {"count": 200, "body": json.dumps({"workflowId": "bench-wait"})}
        loads["cause to event"] = _per(partial(moot.drive, "latency", **waiting), "count", "p50")
        for name in ("bench-chain", "bench-chunks"):
            asked = {"subscribers": streams.SUBSCRIBERS, "path": "/v1/runs"}
            body = json.dumps({"workflowId": name})
            drive = partial(moot.drive, "fan_out", body=body, **asked)
            loads[f"{streams.SUBSCRIBERS} readers of {name}"] = _per(drive, "deliveries")
        yield loads


@contextmanager
def _start(lab: Lab, tree: Path) -> Iterator[Loads]:
    database = lab.path("cold.db")
    lab.moot(database, tree).stop()

    def healthy() -> Figures:
        start = partial(lab.moot, database, tree)
        return {"healthy": min(footprint.time_start(start, "/healthz") for _ in range(REPEATS))}

    def show_help() -> Figures:
        helped = _time_python(lab, tree, "-m", "moot.cli", "--help")
        click = _time_python(lab, tree, "-c", "import click")
        return {"help": helped, "of_click": helped / click}

    yield {"first healthy answer": healthy, "moot --help": show_help}


AREAS = {
    "turns": _turns,
    "runs": _runs,
    "threads": _threads,
    "handoffs": _handoffs,
    "councils": _councils,
    "streams": _streams,
    "start": _start,
}


def _per(play: Round, counted: str = "count", key: str = "rate") -> Round:
    """Reduce a round to its figure and to the server's CPU for each counted thing."""

    def reduced() -> Figures:
        figures = play()
        shown = "p50" if key == "apart" else key
        return {shown: figures[key], "cpu": figures["cpu"] / figures[counted] * 1e6}

    return reduced


def _time_python(lab: Lab, tree: Path, *arguments: str) -> float:
    """The best of some starts of Python, in seconds."""
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], env=lab.environment_of(tree),
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        took.append(time.perf_counter() - began)
    return min(took)
