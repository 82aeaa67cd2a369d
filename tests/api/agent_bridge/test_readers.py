"""Readers of threads that stop reading, and callers that are not of this machine."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moot.api.agent_bridge import stream, thread_log
from moot.api.app import App
from moot.api.http.connection import HttpConnection
from moot.api.server import build_services
from moot.api.services import Services
from moot.clock import SystemClock
from moot.config.settings import Settings
from moot.store.memory.store import MemoryStore
from tests.support.api.application import ask
from tests.support.api.connection import Connection, Site, get

HERE = {"address": "127.0.0.1", "host": "localhost:7666"}


@pytest.fixture
async def trusting(settings: Settings) -> AsyncIterator[Services]:
    kept = {name: getattr(settings, name) for name in settings.__struct_fields__}
    given = Settings(**{**kept, "trust_local": True, "rate_limit": 10_000})
    found = await build_services(given, MemoryStore(), SystemClock())
    yield found
    await found.host.aclose()


async def post(app: App, thread: str, content: str) -> int:
    body = {"from": "user", "content": content}
    said = await ask(app, "POST", f"/threads/{thread}/events", body, **HERE)
    assert said.status == 200, said
    return int(said.body["event"]["seq"])


def stream_of(thread: str, after: int) -> dict[str, Any]:
    return {
        "type": "http", "method": "GET", "path": f"/threads/{thread}/events/stream",
        "query_string": b"after=%d" % after, "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"localhost")],
    }  # fmt: skip


class Patient:
    """Says nothing to the server until it is gone."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def __call__(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}


def places(pieces: list[bytes]) -> list[int]:
    """The sequences of what a stream has sent."""
    lines = [line for piece in pieces for line in piece.split(b"\n")]
    return [json.loads(line[6:])["seq"] for line in lines if line.startswith(b"data: ")]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
async def test_this_machine_needs_no_key(trusting: Services, address: str) -> None:
    app = App(trusting)
    assert (await ask(app, "GET", "/threads", address=address, host="[::1]:1")).status == 200
    for path in ("/v1/host/moot/runs", "/v1/host/moot/threads"):
        assert (await ask(app, "GET", path, address=address, host="localhost")).status == 401


@pytest.mark.parametrize("address", ["192.0.2.1", "10.0.0.1", "::ffff:192.0.2.1", "fe80::1", ""])
async def test_any_other_machine_does(trusting: Services, address: str) -> None:
    app = App(trusting)
    assert (await ask(app, "GET", "/threads", address=address, host="localhost")).status == 401


@pytest.mark.parametrize("host", ["", "elsewhere.example", "192.0.2.1", "[::1", "localhost.evil"])
async def test_this_machine_goes_by_its_own_name(trusting: Services, host: str) -> None:
    app = App(trusting)
    assert (await ask(app, "GET", "/threads", address="127.0.0.1", host=host)).status == 401


async def test_who_stops_reading_is_let_go_and_may_come_back(
    trusting: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PATIENCE_S", 0.1)
    app = App(trusting)
    made = await ask(app, "POST", "/threads", {"name": "Long"}, **HERE)
    thread = made.body["id"]
    first = await post(app, thread, "first")
    taken: list[bytes] = []
    full = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        if len(taken) > 2:
            full.set()
            await asyncio.Event().wait()  # nobody takes it
        taken.append(message.get("body", b""))

    reading = asyncio.ensure_future(app(stream_of(thread, first), Patient(), send))
    async with asyncio.timeout(60):
        sent = [await post(app, thread, "one")]
        while len(taken) < 3:
            await asyncio.sleep(0.001)
        sent += [await post(app, thread, f"{number}") for number in range(20)]
        await full.wait()
        await reading
    assert trusting.host.hub.count() == 0, "nothing is kept for it"
    seen = places(taken)
    last = seen[-1] if seen else first
    rest = (await ask(app, "GET", f"/threads/{thread}/events?after={last}", **HERE)).body["events"]
    assert seen + [event["seq"] for event in rest] == sent, "what was missed is read from there"
    again: list[bytes] = []
    back = Patient()

    async def take(message: dict[str, Any]) -> None:
        again.append(message.get("body", b""))
        if len(seen) + len(places(again)) >= len(sent):
            back.gone.set()

    async with asyncio.timeout(60):
        await app(stream_of(thread, last), back, take)
    assert seen + places(again) == sent, "and by the stream as well"


async def test_a_connection_that_nobody_reads_is_cut() -> None:
    class Stalled(Site):
        async def stalled(self, scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            connection.protocol.pause_writing()
            raise OSError("the reader has stopped reading")

    connection = Connection(HttpConnection, Stalled())
    aborted = []
    connection.wire.abort = lambda: aborted.append(True)  # type: ignore[method-assign]
    await connection.feed(get("/stalled"))
    assert aborted == [True] and not connection.wire.closed
    await connection.end()


async def test_a_long_thread_is_read_in_parts_and_shown_by_its_end(
    trusting: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(trusting)
    thread = (await ask(app, "POST", "/threads", {"name": "Long"}, **HERE)).body["id"]
    for number in range(40):
        await post(app, thread, str(number))
    path = f"/threads/{thread}/events"
    everything = (await ask(app, "GET", path, **HERE)).body["events"]
    assert len(everything) == 41
    monkeypatch.setattr(thread_log, "MOST_BYTES", 2000)
    monkeypatch.setattr(thread_log, "PAGE", 7)
    newest = (await ask(app, "GET", path, **HERE)).body["events"]
    assert 1 < len(newest) < 41 and newest == everything[-len(newest) :]
    found: list[Any] = []
    while True:
        after = found[-1]["seq"] if found else -1
        page = (await ask(app, "GET", f"{path}?after={after}", **HERE)).body
        found += page["events"]
        if not page.get("more"):
            break
    assert found == everything
    few = (await ask(app, "GET", f"{path}?limit=3", **HERE)).body["events"]
    assert few == everything[-3:]
