"""A client that goes on while its server is killed: it sends a request until it is answered."""

import http.client
import itertools
import json
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

#: what a client of a dying server meets: refused, reset, cut short, half an answer
TROUBLE = (OSError, http.client.HTTPException)
#: the longest any one request may go unanswered; only a guard against hanging
PATIENCE = 60.0
TERMINAL = frozenset({"run.completed", "run.failed", "run.cancelled"})
TOKENS = [f"word{number} " for number in range(6)]


class Connection:
    """One caller's connection, opened anew after every trouble."""

    def __init__(self, port: int, key: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._auth = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def close(self) -> None:
        self._http.close()

    def once(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """One try. Raises one of TROUBLE when no whole answer came."""
        data = None if body is None else json.dumps(body)
        try:
            self._http.request(method, path, data, {**self._auth, **headers})
            answer = self._http.getresponse()
            return answer.status, json.loads(answer.read())
        except TROUBLE:
            self._http.close()
            raise

    def until_answered(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any, int]:
        """Status, body, and how often it was sent."""
        deadline = time.monotonic() + PATIENCE
        for sent in itertools.count(1):
            with suppress(*TROUBLE):
                status, found = self.once(method, path, body, **headers)
                if status != 503:
                    return status, found, sent
            assert time.monotonic() < deadline, f"{method} {path} was never answered"
            time.sleep(0.02)
        raise AssertionError

    def log(self, run_id: str, patience: float = PATIENCE) -> list[dict[str, Any]]:
        """Every event of a run, once it has ended."""
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + patience
        while True:
            path = f"/v1/runs/{run_id}/events/poll?lastSequence={len(found) - 1}&timeout=5"
            status, page, _ = self.until_answered("GET", path)
            assert status == 200, (run_id, page)
            found += page["events"]
            if page["isComplete"]:
                return found
            assert time.monotonic() < deadline, f"{run_id} does not end: {found[-3:]}"

    def runs(self) -> list[dict[str, Any]]:
        """All of them, children too."""
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            status, page, _ = self.until_answered("GET", f"/v1/host/moot/runs?limit=500{cursor}")
            assert status == 200, page
            found += page["runs"]
            if "nextCursor" not in page:
                return found
            cursor = f"&cursor={page['nextCursor']}"


@dataclass
class Asked:
    """One create, under one Idempotency-Key, which is the scope of the run too."""

    key: str
    body: dict[str, Any]
    run_id: str = ""
    sent: int = 0
    #: the beginning of the log as a reader was shown it while servers died
    seen: list[dict[str, Any]] = field(default_factory=list)


def order(rng: random.Random, key: str) -> Asked:
    """A run of one of the workflows."""
    config = {"tokens": TOKENS, "delayMsPerToken": rng.choice([0, 5, 20])}
    mock = {"mockProvider": {"id": "stream-text", "config": config}}
    given: dict[str, dict[str, Any]] = {
        "conformance-noop": {},
        "conformance-multi-node": {},
        "conformance-delay": {"inputs": {"delayMs": rng.randint(20, 200)}},
        "conformance-subworkflow-parent": {},
        "conformance-stream-text": {"configurable": mock},
    }
    workflow = rng.choice(sorted(given))
    return Asked(key, {"workflowId": workflow, "scopeId": key, **given[workflow]})


def create(connection: Connection, asked: Asked) -> str:
    """Sends it with its key until it is acknowledged."""
    headers = {"Idempotency-Key": asked.key}
    status, found, sent = connection.until_answered("POST", "/v1/runs", asked.body, **headers)
    assert status == 201, (asked, status, found)
    asked.sent += sent
    return str(found["runId"])


def work(port: int, key: str, seed: str, enough: threading.Event) -> list[Asked]:
    """Creates run after run; whatever was begun is acknowledged before it returns."""
    rng = random.Random(seed)
    connection = Connection(port, key)
    done: list[Asked] = []
    try:
        while not enough.is_set():
            asked = order(rng, f"{seed}-{len(done)}")
            asked.run_id = create(connection, asked)
            done.append(asked)
            if rng.random() < 0.4:
                look(connection, rng.choice(done[-5:]))
            enough.wait(rng.uniform(0, 0.05))
    finally:
        connection.close()
    return done


def look(connection: Connection, asked: Asked) -> None:
    """What the log shows just now, if the server lives long enough to say."""
    with suppress(*TROUBLE):
        path = f"/v1/runs/{asked.run_id}/events/poll?timeout=1"
        status, page = connection.once("GET", path)
        if status == 200:
            asked.seen = page["events"]
        else:
            assert status == 503, (asked, page)
