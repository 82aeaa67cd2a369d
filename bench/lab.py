"""Servers to measure, in a folder of their own, and the rounds that measure them in turn."""

import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from bench.bare import Sample

ROOT = Path(__file__).resolve().parent.parent
KEY = "hk_test_bench"

Figures = dict[str, float]


class Server:
    """A server process; ``port`` is known once it listens."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        address = re.search(r"http://[^ ]+:(\d+)", said)
        if address is None:
            raise RuntimeError(f"The server did not start: {' '.join(command)}")
        self.port = int(address[1])

    def call(self, method: str, path: str, body: Any = None) -> Any:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.loads(answer.read())

    def body(self, path: str) -> bytes:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {KEY}"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return bytes(answer.read())

    def ended(self, run_id: str) -> None:
        """Returns once the run has completed."""
        while self.call("GET", f"/v1/runs/{run_id}")["status"] != "completed":
            time.sleep(0.1)

    def rss(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def cpu(self) -> float:
        """Seconds of processor time used so far; other load on the machine does not count."""
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def drive(self, scenario: str, **asked: Any) -> Figures:
        """Load from a process of its own; with the key, unless another one is given, or none."""
        asked = {"key": KEY, **asked, "scenario": scenario, "port": self.port}
        before = self.cpu()
        done = subprocess.run(
            [sys.executable, "-m", "bench.driver", json.dumps(asked)],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=300,
        )  # fmt: skip
        return {**json.loads(done.stdout), "cpu": self.cpu() - before}

    def stop(self, patience: float = 10) -> None:
        with self._process:  # which waits for its end
            self._process.terminate()
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()


class Lab:
    """One run of the bench."""

    def __init__(
        self,
        folder: Path,
        quick: bool,
        source: Path = ROOT / "src",
        full: bool = False,
        beside: Path | None = None,
    ) -> None:
        self.folder, self.quick, self.full, self.source = folder, quick, full, source
        #: another source tree, to compare with
        self.beside = beside
        self.rounds = 2 if quick else 5
        self.seconds = 1.5 if quick else 4.0
        if beside is not None:  # many short rounds: a disturbance then spoils few of them
            self.rounds, self.seconds = (3, 1.0) if quick else (9, 2.0)
        self._number = 0

    @property
    def environment(self) -> dict[str, str]:
        return _of_tree(self.source)

    def environment_of(self, tree: Path) -> dict[str, str]:
        """The whole environment of a process that imports the tree."""
        return {**os.environ, **_of_tree(tree)}

    def path(self, name: str) -> Path:
        self._number += 1
        return self.folder / f"{self._number}-{name}"

    def moot(
        self,
        database: Path | None = None,
        source: Path | None = None,
        wrapper: list[str] | None = None,
        **settings: str,
    ) -> Server:
        """The server as it is, started by its own command, or by a program that watches it."""
        environment = {"MOOT_BOOTSTRAP_KEY": KEY, "MOOT_PORT": "0", **settings}
        tree = self.environment if source is None else _of_tree(source)
        file = database or self.path("moot.db")
        command = [sys.executable, "-m", "moot.cli", "serve", str(file)]
        return Server([*(wrapper or ()), *command], {**environment, **tree})

    def bare(self, sample: Sample | None = None) -> Server:
        sample = sample or Sample(database="")
        sample.database = str(self.path("bare.db"))
        file = self.path("sample.json")
        file.write_bytes(msgspec.json.encode(sample))
        return Server([sys.executable, "-m", "bench.bare", str(file)], self.environment)

    def in_turn(self, *measures: Callable[[], Figures]) -> list[list[Figures]]:
        """Each of them once a round, so that other load on the machine hits all alike."""
        found: list[list[Figures]] = [[] for _ in measures]
        for _ in range(self.rounds):
            for measure, figures in zip(measures, found, strict=True):
                figures.append(measure())
        return found


def _of_tree(source: Path) -> dict[str, str]:
    """Whoever is set up has been started before: nothing is compiled anew at each start."""
    return {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": ""}


def of(rounds: list[Figures], name: str) -> list[float]:
    return [figures[name] for figures in rounds]


def cpu_per(rounds: list[Figures], what: str) -> list[float]:
    """Server CPU in µs for each of what was counted."""
    return [figures["cpu"] / figures[what] * 1e6 for figures in rounds]


def events_of(server: Server, run_id: str) -> list[bytes]:
    """The run's log, as far as one answer goes, in the form it is stored."""
    log = server.call("GET", f"/v1/runs/{run_id}/events/poll?timeout=0")
    return [json.dumps(event, separators=(",", ":")).encode() for event in log["events"]]


def workflow(workflow_id: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Nodes that follow one another."""
    edges = [
        {"id": f"e{number:05d}", "sourceNodeId": left["id"], "targetNodeId": right["id"]}
        for number, (left, right) in enumerate(pairwise(nodes))
    ]
    return {
        "id": workflow_id,
        "name": workflow_id,
        "version": "1.0",
        "nodes": nodes,
        "edges": edges,
        "triggers": [],
        "variables": [],
        "metadata": {},
        "settings": {},
    }


def register(server: Server, workflow_id: str, nodes: list[dict[str, Any]]) -> None:
    server.call("POST", "/v1/host/moot/workflows", workflow(workflow_id, nodes))


def node(name: str, type_id: str, **config: Any) -> dict[str, Any]:
    return {
        "id": name,
        "typeId": type_id,
        "name": name,
        "position": {"x": 0, "y": 0},
        "config": config,
        "inputs": {},
    }


def fsync_ms(folder: Path) -> float:
    """What the disk takes to keep 4 kB, the median of 200."""
    took = []
    with (folder / "fsync").open("wb") as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - started)
    return statistics.median(took) * 1000
