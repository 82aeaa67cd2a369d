"""Clients of a server that keeps dying: they ask again until they are answered, and remember."""

import itertools
import random
import threading
import time
from abc import ABC, abstractmethod
from http.client import HTTPException
from typing import Any

from tests.support.servers import ServerProcess


def node(name: str, type_id: str = "core.noop", **given: Any) -> dict[str, Any]:
    fields = {"config": {}, "inputs": {}, "position": {"x": 0, "y": 0}, "name": name}
    return {"id": name, "typeId": type_id, **fields, **given}


def chain(name: str, *nodes: dict[str, Any]) -> dict[str, Any]:
    edges = [
        {"id": f"e{n}", "sourceNodeId": a["id"], "targetNodeId": b["id"]}
        for n, (a, b) in enumerate(itertools.pairwise(nodes))
    ]
    return {
        "id": name, "name": name, "version": "1.0", "nodes": list(nodes), "edges": edges,
        "triggers": [], "variables": [], "metadata": {}, "settings": {},
    }  # fmt: skip


def delay(name: str, ms: int) -> dict[str, Any]:
    return node(name, "core.delay", config={"ms": ms})


def sub(name: str, workflow_id: str) -> dict[str, Any]:
    return node(name, "core.subWorkflow", config={"workflowId": workflow_id})


def workflows(book: str) -> list[dict[str, Any]]:
    """Registered in this order; runs are begun of all but the ``kid``."""
    each = node("each", "moot.forEach", config={"workflowId": "kid", "items": [1, 2]})
    flaky = node("f", "core.fail", config={"retryable": True},
                 settings={"maxRetries": 1, "retryDelayMs": 30})  # fmt: skip
    return [
        chain("kid", delay("wait", 15), node("n")),
        chain("noop", node("n")),
        chain("many", *(node(f"n{n}") for n in range(12))),
        chain("nap", delay("a", 10), node("b"), delay("c", 25), node("d")),
        chain("parent", node("first"), sub("sub", "kid"), each, node("last")),
        chain("ask", node("ask", "core.ai.callPrompt", config={"promptId": "p"})),
        chain("retry", flaky),
        chain("pay", node("pay", "acme.pay", config={"book": book}), node("n")),
        chain("note", node("note", "acme.note", config={"book": book}), delay("a", 5)),
        chain("remember", node("keep", "acme.remember"), delay("a", 5)),
    ]


#: what a run of each must come to if nobody cancels it
ENDS = {
    "noop": {"completed"}, "many": {"completed"}, "nap": {"completed"}, "parent": {"completed"},
    "ask": {"completed"}, "retry": {"failed"}, "pay": {"completed", "failed"},
    "note": {"completed"}, "remember": {"completed"},
}  # fmt: skip
MOCK = {"mockProvider": {"id": "stream-text", "config": {
    "tokens": ["a", "b", "c", "d"], "delayMsPerToken": 4}}}  # fmt: skip


class Caller(ABC, threading.Thread):
    """Does ``_once`` what it does, over and over, until it is told to stop."""

    def __init__(self, server: ServerProcess, name: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self._server, self._chance = server, random.Random(seed)
        self.stopping = threading.Event()
        self.trouble: list[str] = []
        self.asked = self.unanswered = 0

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self._once()
        except Exception as error:
            self.trouble.append(f"{type(error).__name__}: {error}")

    @abstractmethod
    def _once(self) -> None:
        """One thing it does, over and over."""

    def _ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        """Asks until there is an answer: a dead server has given none."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            answer = self._ask_once(method, path, body, key)
            if answer is not None:
                return answer
            time.sleep(0.02)
        raise AssertionError(f"{method} {path} was not answered for a minute")

    def _ask_once(
        self, method: str, path: str, body: Any = None, key: str = ""
    ) -> tuple[int, Any] | None:
        """The answer, or nothing: then nobody knows what has been done."""
        self.asked += 1
        headers = {"Idempotency-Key": key} if key else {}
        try:
            status, answer, _ = self._server.request(method, path, body, headers=headers)
        except (OSError, HTTPException):
            self.unanswered += 1
            return None
        return None if status == 503 else (status, answer)

    def _begin(self, key: str, body: dict[str, Any]) -> str:
        status, answer = self._ask("POST", "/v1/runs", body, key)
        if status != 201:
            raise AssertionError(f"{status} {answer}")
        return str(answer["runId"])


class Client(Caller):
    """Begins runs under keys of its own, repeats itself, and cancels or pauses some of them."""

    def __init__(self, server: ServerProcess, name: str, seed: int) -> None:
        super().__init__(server, name, seed)
        #: key -> (workflow, the run that was acknowledged for it)
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self.cancelled: set[str] = set()

    def _once(self) -> None:
        workflow = self._chance.choice(list(ENDS))
        key = f"{self.name}-{len(self.acknowledged)}"
        body: dict[str, Any] = {"workflowId": workflow, "tags": [key]}
        if workflow == "ask":
            body["configurable"] = MOCK
        run_id = self._begin(key, body)
        self.acknowledged[key] = (workflow, run_id)
        if self._chance.random() < 0.2 and self._begin(key, body) != run_id:
            self.trouble.append(f"{key} has two runs")
        if self._chance.random() < 0.15:
            self._meddle(key, run_id)
        time.sleep(self._chance.random() * 0.01)

    def _meddle(self, key: str, run_id: str) -> None:
        time.sleep(self._chance.random() * 0.02)
        if self._chance.random() < 0.5:
            status, answer = self._ask("POST", f"/v1/runs/{run_id}/cancel", {}, f"{key}-c")
            if status == 200 and answer["status"] == "cancelled":
                self.cancelled.add(run_id)
            return
        policy = self._chance.choice(["immediate", "drain-current-node"])
        self._ask("POST", f"/v1/runs/{run_id}:pause", {"drainPolicy": policy}, f"{key}-p")
        for attempt in range(1000):  # a pause that drains can be undone only when it is there
            status, answer = self._ask("POST", f"/v1/runs/{run_id}:resume", {}, f"{key}-r{attempt}")
            if status == 202 or answer["details"]["runStatus"] not in ("running", "paused"):
                return
            if answer["details"]["runStatus"] == "running" and not self._draining(run_id):
                return
            time.sleep(0.01)
        self.trouble.append(f"{run_id} was never resumed")

    def _draining(self, run_id: str) -> bool:
        _, shown = self._ask("GET", f"/v1/runs/{run_id}")
        return bool(shown.get("draining")) or shown["status"] == "paused"
