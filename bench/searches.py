"""Search over very many turns, and opening a very long thread on a server that has just started."""

import subprocess
import sys
import time
from pathlib import Path

from bench.lab import ROOT, Figures, Lab, Server, of
from bench.library import RARE, Words
from bench.table import Row, row

QUICK, USUAL, FULL = 20_000, 100_000, 1_000_000
LONG = 100_000
GOAL_MS = 100.0
SOON_MS = 1000.0


def measure(lab: Lab) -> list[Row]:
    turns = QUICK if lab.quick else FULL if lab.full else USUAL
    long = LONG // 10 if lab.quick else LONG
    file = lab.path("library.db")
    began = time.perf_counter()
    thread = _built(lab, file, turns, long)
    took = time.perf_counter() - began
    found = [row(f"{turns + long:,} turns written and indexed", "turns/s", [(turns + long) / took])]
    found += _opened(lab, file, thread, long)
    moot = lab.moot(file)
    try:
        for name, query in _queries().items():
            found += _searched(lab, moot, f"search, {name}", query)
    finally:
        moot.stop()
    size = file.stat().st_size / 1e6
    return [*found, row("  the file", "MB", [size], better="less")]


def _built(lab: Lab, file: Path, turns: int, long: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench.library", str(file), str(turns), str(long)],
        cwd=ROOT, env=lab.environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def _queries() -> dict[str, str]:
    """By how many texts they fit: a handful, very many, those of one speaker, none."""
    known = Words().known
    common, other, rare = known[0], known[1], known[-1]
    return {
        "a rare word": f"q={RARE}",
        "a common word": f"q={common}",
        "two common words": f"q={common}+{other}",
        "two that are seldom together": f"q={common}+{RARE}",
        "a phrase": f"q=%22{common}+{other}%22",
        "a beginning": f"q={rare[:4]}*",
        "of one speaker": f"q={common}+from:eve",
        "in one thread": f"q={common}+thread:th_{7:020d}",
        "decisions of which there are none": f"q={common}+kind:decision",
        "the best of a common word": f"q={common}&order=best",
    }


def _searched(lab: Lab, moot: Server, name: str, query: str) -> list[Row]:
    path = f"/v1/host/moot/search?{query}"
    rounds = lab.in_turn(
        lambda: moot.drive("reads", path=path, clients=1, seconds=lab.seconds / 2),
        lambda: moot.drive("reads", path=path, clients=16, seconds=lab.seconds / 2),
    )
    alone, together = rounds
    waits = [1000 / figures["rate"] for figures in alone]
    return [
        row(name, "ms", waits, better="less", goal=GOAL_MS),
        row("  16 clients", "searches/s", of(together, "rate")),
    ]


def _opened(lab: Lab, file: Path, thread: str, long: int) -> list[Row]:
    """From the first request to the answer, on a server that knows nothing yet."""
    path = f"/v1/host/moot/threads/{thread}"
    tail = f"/v1/runs/{thread}/events/poll?timeout=0&lastSequence={long - 100}"

    def cold() -> Figures:
        moot = lab.moot(file)
        try:
            began = time.perf_counter()
            moot.call("GET", path)
            opened = time.perf_counter()
            moot.call("GET", tail)
            return {"open": (opened - began) * 1000, "tail": (time.perf_counter() - opened) * 1000}
        finally:
            moot.stop()

    (rounds,) = lab.in_turn(cold)
    return [
        row(f"opening a thread of {long:,} turns", "ms", of(rounds, "open"), better="less",
            goal=SOON_MS),
        row("  its newest hundred", "ms", of(rounds, "tail"), better="less"),
    ]  # fmt: skip
