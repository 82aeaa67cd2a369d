"""``python -m bench [names…] [--quick | --full] [--beside TREE]``: measure, print one table."""

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench import (
    appends,
    commits,
    comparison,
    councils,
    footprint,
    handoffs,
    items,
    reads,
    replays,
    runs,
    schedules,
    searches,
    streams,
    table,
    threads,
    turns,
)
from bench.lab import ROOT, Lab, fsync_ms

MEASURES: dict[str, Callable[[Lab], list[table.Row]]] = {
    "runs": runs.measure,
    "items": items.measure,
    "turns": turns.measure,
    "threads": threads.measure,
    "handoffs": handoffs.measure,
    "councils": councils.measure,
    "streams": streams.measure,
    "reads": reads.measure,
    "replays": replays.measure,
    "schedules": schedules.measure,
    "searches": searches.measure,
    "appends": appends.measure,
    "footprint": footprint.measure,
    "commits": commits.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(MEASURES)}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--full", action="store_true", help="searches over a million turns")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="another source tree")
    parser.add_argument(
        "--beside", type=Path, help="a source tree to measure in turn with the other"
    )
    parser.add_argument("--bar", type=float, default=0.97, help="the least ratio, with --beside")
    asked = parser.parse_args()
    known = MEASURES if asked.beside is None else comparison.AREAS
    unknown = set(asked.names) - set(known)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; take {', '.join(known)}")
    folder = Path(tempfile.mkdtemp(prefix="moot-bench-"))
    try:
        machine = about(folder)
        print(", ".join(f"{name} {value}" for name, value in machine.items()), flush=True)
        beside = asked.beside and asked.beside.resolve()
        lab = Lab(folder, asked.quick, asked.source.resolve(), asked.full, beside)
        names = asked.names or list(known)
        rows = measure(lab, names) if beside is None else compare(lab, names, asked.bar)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write(asked.json or default_file(), machine, rows)


def measure(lab: Lab, names: list[str]) -> list[table.Row]:
    rows = []
    for name in names:
        print(f"measuring {name} …", flush=True)
        rows += MEASURES[name](lab)
    print(table.text(rows))
    return rows


def compare(lab: Lab, names: list[str], bar: float) -> list[table.Pair]:
    pairs = comparison.compare(lab, names, bar)
    print(table.pair_text(pairs))
    return pairs


def about(folder: Path) -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "fsync_ms": round(fsync_ms(folder), 3),
        "load": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d"),
    }


def default_file() -> Path:
    return ROOT / "bench" / "results" / time.strftime("%Y%m%d-%H%M%S.json")


def write(file: Path, machine: dict[str, Any], rows: list[table.Row] | list[table.Pair]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": machine, "rows": msgspec.to_builtins(rows)}, indent=2))
    print(f"written to {os.path.relpath(file)}")


if __name__ == "__main__":
    main()
