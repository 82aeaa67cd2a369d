"""What is sent again and what is not, how streams are taken up again, and what is too much."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import msgspec
import pytest

from moot import AsyncClient, Client
from moot.client import ApiError, BadAnswer, Options, RateLimited, Unavailable, Unreachable
from moot.client.http import senders, sse
from moot.client.http.operation import OPERATIONS, Operation
from real_server import ServerProcess

Answer = httpx2.Response | Exception
CREATED = {
    "runId": "run_a",
    "status": "running",
    "eventsUrl": "/v1/runs/run_a/events",
    "statusUrl": "/v1/runs/run_a",
}
SLOW = {
    "id": "slow", "name": "slow", "version": "1", "edges": [], "triggers": [], "variables": [],
    "metadata": {}, "settings": {},
    "nodes": [{"id": "nap", "typeId": "core.delay", "name": "nap", "config": {"ms": 1500},
               "inputs": {}, "position": {"x": 0, "y": 0}}],
}  # fmt: skip


class Server:
    """Gives these answers, one after another, and remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = list(answers), list[httpx2.Request]()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **how: Any) -> Client:
        return Client("http://moot.test", "k", transport=httpx2.MockTransport(self), **how)

    def used(self) -> set[str | None]:
        return {request.headers.get("Idempotency-Key") for request in self.asked}


def refused(status: int, code: str, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, json={"error": code, "message": "No."}, headers=headers)


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody really waits between two attempts; how long is written down."""
    found: list[float] = []
    monkeypatch.setattr(senders.time, "sleep", found.append)

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(senders, "asyncio", type("Loop", (), {"sleep": staticmethod(sleep)}))
    return found


def test_a_lost_answer_is_asked_for_again_under_the_same_key(slept: list[float]) -> None:
    server = Server(
        httpx2.ReadError("gone"), httpx2.Response(502), httpx2.Response(201, json=CREATED)
    )
    assert server.client().runs.start("flow").id == "run_a"
    [key] = server.used()
    assert key and key.startswith("sdk_")
    assert slept == [0.1, 0.2]


def test_two_calls_have_two_keys_and_a_given_one_is_kept() -> None:
    server = Server(*(httpx2.Response(201, json=CREATED) for _ in range(3)))
    client = server.client()
    client.runs.start("flow")
    client.runs.start("flow")
    client.runs.start("flow", None, Options(idempotency_key="mine"))
    assert len(server.used()) == 3 and "mine" in server.used()


def test_a_server_that_is_busy_is_asked_when_it_says_so(slept: list[float]) -> None:
    wait = {"Retry-After": "3"}
    busy = [refused(503, "service_unavailable", **wait), refused(429, "rate_limited", **wait)]
    server = Server(*busy, httpx2.Response(200, json={"status": "ok"}))
    assert server.client().health().status == "ok"
    assert slept == [3.0, 3.0]


def test_a_server_that_asks_for_more_than_anybody_waits_is_left_alone(slept: list[float]) -> None:
    server = Server(refused(503, "service_unavailable", **{"Retry-After": "3600"}))
    with pytest.raises(Unavailable):
        server.client().health()
    assert slept == []


def test_attempts_have_an_end() -> None:
    with pytest.raises(RateLimited):
        Server(*(refused(429, "rate_limited") for _ in range(3))).client(retries=2).health()
    with pytest.raises(Unreachable, match=r"moot\.test.*moot serve"):
        Server(*(httpx2.ConnectError("no") for _ in range(3))).client(retries=2).health()


def test_what_shows_a_secret_once_is_sent_once_unless_nobody_got_it() -> None:
    server = Server(httpx2.ReadTimeout("slow"))
    with pytest.raises(Unreachable):
        server.client().keys.create("ci")
    assert server.used() == {None}
    key = {"id": "key_a", "name": "ci", "tenant": "t", "scopes": [], "as": []}
    answer = {**key, "admin": False, "test": False, "createdAt": "now", "key": "hk_secret"}
    server = Server(httpx2.ConnectError("no"), httpx2.Response(201, json=answer))
    assert server.client().keys.create("ci").key == "hk_secret"


def test_a_refusal_is_not_sent_again() -> None:
    server = Server(refused(409, "run_terminal"))
    with pytest.raises(ApiError) as found:
        server.client().runs.resume("run_a")
    assert (found.value.code, found.value.status, found.value.message) == (
        "run_terminal",
        409,
        "No.",
    )
    assert type(found.value).__name__ == "RunTerminal"


def test_an_answer_that_is_none_is_said_to_be_none() -> None:
    for answer in (httpx2.Response(200, content=b"<html>"), httpx2.Response(200, json={"a": 1})):
        with pytest.raises(BadAnswer, match="not understood"):
            Server(answer).client().health()
    with pytest.raises(ApiError, match="status 404"):
        Server(httpx2.Response(404, content=b"<html>")).client().health()


def test_an_answer_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Operation, "largest", 100, raising=False)
    for operation in OPERATIONS:
        monkeypatch.setattr(operation, "largest", 100)
    with pytest.raises(BadAnswer, match="larger than 100 bytes"):
        Server(httpx2.Response(200, content=b" " * 101)).client().health()


# -- streams -------------------------------------------------------------------------------------


def frame(seq: int, type_: str = "node.started") -> bytes:
    event = {"eventId": f"r.{seq}", "runId": "r", "sequence": seq, "type": type_, "payload": {},
             "timestamp": ""}  # fmt: skip
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, type_.encode(), msgspec.json.encode(event))


def stream(*pieces: bytes, broken: bool = False) -> httpx2.Response:
    def body() -> Iterator[bytes]:
        yield from pieces
        if broken:
            raise httpx2.ReadError("broken")

    return httpx2.Response(200, content=body())


def test_a_broken_stream_goes_on_after_the_last_event() -> None:
    server = Server(
        stream(b"retry: 50\n\n", frame(0), frame(1)[:20], broken=True),
        httpx2.ConnectError("down"),
        refused(503, "service_unavailable"),
        stream(b":keepalive\n\n", frame(1)),
        stream(frame(2, "run.completed")),
    )
    assert [event.seq for event in server.client().runs.events("r")] == [0, 1, 2]
    last = [request.headers.get("Last-Event-ID") for request in server.asked]
    assert last == [None, "0", "0", "0", "1"]


def test_a_stream_that_only_ends_is_over_and_one_that_never_opens_is_given_up() -> None:
    page = {"runId": "r", "lastEventSeq": 7, "events": [], "runStatus": "completed"}
    end = {**page, "isTerminal": True, "isComplete": True}
    over = Server(stream(), stream(), httpx2.Response(200, json=end))
    assert list(over.client().runs.events("r", 7)) == []
    assert over.asked[-1].url.params["lastSequence"] == "7"
    going_on = Server(
        stream(), stream(), httpx2.Response(200, json={**end, "isComplete": False}),
        stream(frame(8, "run.completed")),
    )  # fmt: skip
    assert [event.seq for event in going_on.client().runs.events("r", 7)] == [8]
    lost = Server(*(httpx2.ConnectError("no") for _ in range(20)))
    with pytest.raises(Unreachable):
        list(lost.client().runs.events("r"))
    assert len(lost.asked) == senders.MOST_EMPTY_CONNECTIONS + 1
    with pytest.raises(ApiError):
        list(Server(refused(401, "unauthenticated")).client().runs.events("r"))


def test_a_frame_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LARGEST_FRAME", 100)
    for pieces in ([b"data: " + b"x" * 200], [b"data: " + b"x" * 60 + b"\n"] * 3):
        with pytest.raises(BadAnswer, match="larger than"):
            list(Server(stream(*pieces)).client().runs.events("r"))
    with pytest.raises(BadAnswer, match="not understood"):
        list(Server(stream(b"data: {\n\n")).client().runs.events("r"))


async def test_asyncio_has_the_same_patience() -> None:
    server = Server(
        stream(frame(0), broken=True), stream(frame(1, "run.failed")),
        httpx2.ReadError("gone"), httpx2.Response(201, json=CREATED),
    )  # fmt: skip

    async def answer(request: httpx2.Request) -> httpx2.Response:
        found = server(request)
        return httpx2.Response(found.status_code, content=_later(found))

    transport = httpx2.MockTransport(answer)
    async with AsyncClient("http://moot.test", "k", transport=transport) as client:
        assert [event.seq async for event in client.runs.events("r")] == [0, 1]
        assert (await client.runs.start("flow")).id == "run_a"
    assert len({request.headers.get("Idempotency-Key") for request in server.asked[2:]}) == 1


async def _later(answer: httpx2.Response) -> Any:
    for piece in answer.iter_bytes():
        yield piece


def test_a_stream_outlives_the_server(
    server: Callable[..., ServerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    process = server()
    with Client(process.url, process.key) as client:
        client.workflows.register(SLOW)
        run = client.runs.start("slow")
        events = run.events(timeout=60)
        seen = [next(events)]
        again = threading.Thread(target=process.restart)
        again.start()
        seen += list(events)
        again.join()
        assert [event.seq for event in seen] == list(range(len(seen)))
        assert seen[-1].type == "run.completed"
