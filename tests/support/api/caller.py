"""One caller of a host: an HTTP client whose every answer is validated, and the usual calls."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import httpx2 as httpx

from tests.support.api.answers import AnswerChecks

TERMINAL = frozenset({"completed", "failed", "cancelled"})
#: the longest a run of these tests may take; only a guard against hanging
PATIENCE = 60.0


T = TypeVar("T")


def in_time(attempt: Callable[[int], T | None], milliseconds: int) -> T:
    """What came of an attempt for which there is only so much time: where the machine was too slow
    for it, which is nothing, another one has more."""
    for stretch in (1, 5, 25):
        if (found := attempt(stretch * milliseconds)) is not None:
            return found
    raise AssertionError(f"not even within {25 * milliseconds} ms")


def unless_over(answer: httpx.Response) -> httpx.Response | None:
    """Nothing, where the run had ended before it was asked for something."""
    over = answer.status_code == 409 and answer.json()["error"] == "run_terminal"
    return None if over else answer


class Frame(NamedTuple):
    """One piece of an event stream; a comment has only ``comment``."""

    id: str | None
    event: str | None
    data: Any
    comment: str | None = None
    retry: str | None = None

    @property
    def docs(self) -> list[dict[str, Any]]:
        """The events in it: one, or those of a batch."""
        if self.data is None:
            return []
        return self.data if self.event == "batch" else [self.data]


class Api:
    """A key's view of a host. Those made by ``with_key`` share the connections of the first."""

    def __init__(
        self, url: str, key: str | None, answers: AnswerChecks, http: httpx.Client | None = None
    ) -> None:
        self.url, self.key, self.answers = url, key, answers
        self.http = http or httpx.Client(base_url=url, timeout=70.0, verify=False, trust_env=False)
        self.auth = {"Authorization": f"Bearer {key}"} if key else {}

    def __enter__(self) -> "Api":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    def with_key(self, key: str | None) -> "Api":
        return Api(self.url, key, self.answers, self.http)

    # -- plain calls -------------------------------------------------------------------------

    def call(self, method: str, path: str, headers: Any = None, **given: Any) -> httpx.Response:
        answer = self.http.request(method, path, headers={**self.auth, **(headers or {})}, **given)
        media = answer.headers.get("content-type", "").partition(";")[0]
        path = answer.url.path
        self.answers.answer(method, path, answer.status_code, media, answer.content)
        return answer

    @contextmanager
    def open(self, path: str, headers: Any = None, **given: Any) -> Iterator[httpx.Response]:
        """An answer that goes on, to be read piece by piece; nothing of it is validated."""
        with self.http.stream("GET", path, headers={**self.auth, **(headers or {})}, **given) as it:
            yield it

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.call("GET", path, **given)

    def post(self, path: str, body: Any = None, **given: Any) -> httpx.Response:
        if isinstance(body, bytes):
            given["content"] = body
        elif body is not None:
            given["json"] = body
        return self.call("POST", path, **given)

    def delete(self, path: str, **given: Any) -> httpx.Response:
        return self.call("DELETE", path, **given)

    # -- the usual ---------------------------------------------------------------------------

    def create(self, workflow_id: str, headers: Any = None, **body: Any) -> str:
        answer = self.post("/v1/runs", {"workflowId": workflow_id, **body}, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def read(self, run_id: str) -> dict[str, Any]:
        answer = self.get(f"/v1/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def until(self, run_id: str, *statuses: str, within: float = PATIENCE) -> dict[str, Any]:
        """The snapshot once the run has one of these statuses. Woken by the log, not by a clock."""
        deadline = time.monotonic() + within
        after = -1
        while True:
            found = self.read(run_id)
            if found["status"] in (statuses or TERMINAL):
                return found
            assert found["status"] not in TERMINAL, f"the run ended {found['status']}: {found}"
            assert time.monotonic() < deadline, f"still {found['status']} after {within} s"
            page = self.poll(run_id, after, 1)
            after = max(after, page["lastEventSeq"])

    def run(self, workflow_id: str, headers: Any = None, **body: Any) -> dict[str, Any]:
        """Starts a run and waits for its end."""
        return self.until(self.create(workflow_id, headers, **body))

    def poll(self, run_id: str, after: int = -1, timeout: int = 0) -> dict[str, Any]:
        query = {"lastSequence": after, "timeout": timeout}
        answer = self.get(f"/v1/runs/{run_id}/events/poll", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """The whole log so far."""
        found: list[dict[str, Any]] = []
        while page := self.poll(run_id, len(found) - 1)["events"]:
            found += page
        return found

    def types(self, run_id: str) -> list[str]:
        return [event["type"] for event in self.events(run_id)]

    def runs(self, **query: Any) -> list[str]:
        """The newest of them, by their names: what goes on in those is another matter."""
        answer = self.get("/v1/host/moot/runs", params=query)
        assert answer.status_code == 200, answer.text
        return [row["runId"] for row in answer.json()["runs"]]

    def register(self, definition: dict[str, Any]) -> str:
        answer = self.post("/v1/host/moot/workflows", definition)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["workflowId"])

    def new_key(self, name: str = "another", **given: Any) -> str:
        answer = self.post("/v1/host/moot/keys", {"name": name, **given})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["key"])

    # -- streams -----------------------------------------------------------------------------

    @contextmanager
    def streaming(
        self, run_id: str, last_event_id: str | int | None = None, **query: Any
    ) -> Iterator[Iterator[Frame]]:
        headers = {"Accept": "text/event-stream"}
        if last_event_id is not None:
            headers["Last-Event-ID"] = str(last_event_id)
        path = f"/v1/runs/{run_id}/events"
        with self.open(path, params=query, headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield self._frames(answer)

    def stream(self, run_id: str, last_event_id: Any = None, **query: Any) -> list[Frame]:
        """Everything up to the server's closing."""
        with self.streaming(run_id, last_event_id, **query) as frames:
            return [frame for frame in frames if frame.data is not None]

    def _frames(self, answer: httpx.Response) -> Iterator[Frame]:
        for frame in parsed(answer.iter_lines()):
            for document in frame.docs:
                self.answers.event(document)
            yield frame


def parsed(lines: Iterator[str]) -> Iterator[Frame]:
    """Server-sent events by the book: fields up to an empty line, comments on their own."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            yield Frame(None, None, None, comment=line[1:])
        elif line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif fields:
            data = json.loads(fields["data"]) if "data" in fields else None
            yield Frame(fields.get("id"), fields.get("event"), data, retry=fields.get("retry"))
            fields = {}


def definition(
    name: str, nodes: list[dict[str, Any]], edges: list[tuple[str, str]] | None = None, **more: Any
) -> dict[str, Any]:
    """A protocol definition; without edges the nodes follow one another."""
    ids = [node["id"] for node in nodes]
    pairs = list(itertools.pairwise(ids)) if edges is None else edges
    return {
        "id": name,
        "name": name,
        "version": "1.0.0",
        "nodes": [
            {"name": node["id"], "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}, **node}
            for node in nodes
        ],
        "edges": [
            {"id": f"e{number}", "sourceNodeId": source, "targetNodeId": target}
            for number, (source, target) in enumerate(pairs)
        ],
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": [],
        "metadata": {},
        "settings": {},
        **more,
    }


def sleeping(name: str, ms: int = 60_000, **more: Any) -> dict[str, Any]:
    return definition(name, [{"id": "wait", "typeId": "core.delay", "config": {"ms": ms}}], **more)


def speaking(tokens: int, delay_ms: int = 0) -> dict[str, Any]:
    """Options of a conformance-stream-text run with so many tokens."""
    config = {"tokens": [f"t{number} " for number in range(tokens)], "delayMsPerToken": delay_ms}
    return {"configurable": {"mockProvider": {"id": "stream-text", "config": config}}}


def sequences(frames: list[Frame]) -> list[int]:
    return [document["sequence"] for frame in frames for document in frame.docs]
