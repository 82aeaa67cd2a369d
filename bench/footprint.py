"""What the server takes by being there: memory, and time until it answers."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from bench.lab import Lab, Server, node, register
from bench.table import Row, row

STARTS = 7
RUNS = 20_000
#: the first speaker's name, as it stands before what is being said, and a word
SPOKEN = re.compile(rb"Ada\x1b\[0m +\w")


def measure(lab: Lab) -> list[Row]:
    return [*_memory(lab), *_cold_start(lab), *_first_words(lab)]


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
        ours.append(time_start(lambda: lab.moot(file), "/healthz"))
        theirs.append(time_start(lab.bare, "/"))
    return [row("cold start", "s", ours, theirs, better="less", goal=0.7)]


def _first_words(lab: Lab) -> list[Row]:
    """From the command ``moot demo`` on a terminal to the first words of an agent on it."""
    took = [_words_of_a_demo(lab) for _ in range(STARTS)]
    return [row("moot demo, first words", "s", took, better="less", goal=2.0)]


def _words_of_a_demo(lab: Lab) -> float:
    folder = lab.path("demo")
    folder.mkdir()
    screen, inside = pty.openpty()
    command = [sys.executable, "-m", "moot.cli", "demo", "--no-prompt"]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, stdin=inside, stdout=inside, stderr=inside,
        env={**os.environ, **lab.environment, "TERM": "xterm"},
    )  # fmt: skip
    os.close(inside)
    shown = b""
    while not SPOKEN.search(shown):
        shown += os.read(screen, 65536)
    took = time.perf_counter() - began
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # what else it says is read until it ends
        while os.read(screen, 65536):
            continue
    process.wait(20)
    os.close(screen)
    return took


def time_start(start: Callable[[], Server], path: str) -> float:
    began = time.perf_counter()
    server = start()
    server.body(path)
    took = time.perf_counter() - began
    server.stop()
    return took
