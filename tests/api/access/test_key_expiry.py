"""A key that is over ends what it has opened: streams and long polls, at once."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moot.api.app import App
from moot.api.services import Services
from moot.api.threads import export
from moot.config.settings import Settings
from moot.core.workflows.yaml import compile_yaml
from tests.support.api.application import PATIENCE, Said, ask, soon

SLEEPS = "workflow: sleeps\nsteps: [{id: nap, delay: 60s}]"
TALKS = """
workflow: talks
steps: [{id: talk, node: core.conversationGate, config: {prompt: "What now?", agentId: host:ada}}]
"""


class Key:
    """What one key does."""

    def __init__(self, app: App, header: str, key_id: str = "") -> None:
        self.app, self.header, self.key_id = app, header, key_id

    async def __call__(self, method: str, path: str, body: Any = None) -> Said:
        return await ask(self.app, method, path, body, authorization=self.header)

    def later(self, path: str) -> "asyncio.Task[Said]":
        return asyncio.ensure_future(self("GET", path))

    async def listen(self, path: str, pieces: list[bytes] | None = None) -> None:
        """Until the stream ends; nobody leaves it."""
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "method": "GET", "path": path, "query_string": query.encode(),
            "client": None, "headers": [(b"authorization", self.header.encode())],
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return await asyncio.Future()

        async def send(message: dict[str, Any]) -> None:
            assert message.get("status", 200) == 200
            if pieces is not None:
                pieces.append(message.get("body", b""))

        await self.app(scope, receive, send)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("MOOT_BOOTSTRAP_KEY", raising=False)
    return Settings(database=str(tmp_path / "moot.db"), rate_limit=0)


class Held:
    """A time that stands still: no machine is too slow to use a key that is good for a second."""

    def __init__(self, micros: int) -> None:
        self.micros = micros


@pytest.fixture
def held(services: Services, monkeypatch: pytest.MonkeyPatch) -> Held:
    hands = Held(services.clock.micros())
    monkeypatch.setattr(services.clock, "micros", lambda: hands.micros)
    return hands


@pytest.fixture
def admin(services: Services, bearer: str) -> Key:
    return Key(App(services), bearer)


@pytest.fixture
def listening(services: Services) -> Callable[[int], Awaitable[None]]:
    """Until so many wait for news."""
    return lambda count: soon(lambda: services.host.hub.count() == count)


@pytest.fixture
def key(admin: Key) -> Callable[..., Awaitable[Key]]:
    async def make(name: str = "guest", **more: Any) -> Key:
        made = (await admin("POST", "/v1/host/moot/keys", {"name": name, **more})).body
        return Key(admin.app, f"Bearer {made['key']}", made["id"])

    return make


@pytest.fixture
async def places(admin: Key) -> AsyncIterator[dict[str, str]]:
    """Whatever goes on until somebody ends it."""
    runs = {}
    for name, text in (("sleeps", SLEEPS), ("talks", TALKS)):
        await admin("POST", "/v1/host/moot/workflows", compile_yaml(text, "test"))
        runs[name] = (await admin("POST", "/v1/runs", {"workflowId": name})).body["runId"]
    sleeps, talks = (f"/v1/runs/{runs[name]}" for name in runs)
    yield {
        "events": f"{sleeps}/events",
        "states": f"{sleeps}/events?streamMode=values",
        "batches": f"{talks}/events?bufferMs=5000",
        "thread": f"/v1/host/moot/threads/{runs['talks']}/stream",
        "poll": f"{sleeps}/events/poll?lastSequence=99&timeout=60",
    }
    for run in (sleeps, talks):
        await admin("POST", f"{run}/cancel")


STREAMS = ["events", "states", "batches", "thread"]


@pytest.mark.parametrize("kind", STREAMS)
async def test_a_revoked_key_ends_its_streams_and_no_others(
    admin: Key, key: Callable[..., Awaitable[Key]], places: dict[str, str], kind: str,
    listening: Callable[[int], Awaitable[None]],
) -> None:  # fmt: skip
    guest, other = await key(), await key("other")
    ends, stays = (asyncio.ensure_future(one.listen(places[kind])) for one in (guest, other))
    await listening(2)
    assert not ends.done()
    assert (await admin("DELETE", f"/v1/host/moot/keys/{guest.key_id}")).status == 204
    await asyncio.wait_for(ends, PATIENCE)
    assert not stays.done()
    stays.cancel()


@pytest.mark.parametrize("kind", STREAMS)
async def test_an_expired_key_ends_its_streams(
    key: Callable[..., Awaitable[Key]], places: dict[str, str], kind: str, held: Held
) -> None:
    guest = await key(expires_in_s=1)
    pieces: list[bytes] = []
    begun = time.monotonic()
    await asyncio.wait_for(guest.listen(places[kind], pieces), PATIENCE)
    assert time.monotonic() - begun >= 1, "it was a good key until then"
    assert b"".join(pieces)


async def test_a_long_poll_of_a_revoked_key_is_refused_at_once(
    admin: Key, key: Callable[..., Awaitable[Key]], places: dict[str, str],
    listening: Callable[[int], Awaitable[None]],
) -> None:  # fmt: skip
    guest = await key()
    poll = guest.later(places["poll"])
    await listening(1)
    await admin("DELETE", f"/v1/host/moot/keys/{guest.key_id}")
    said = await asyncio.wait_for(poll, PATIENCE)
    assert (said.status, said.body["error"]) == (401, "key_revoked")


async def test_a_long_poll_of_a_key_that_expires_is_refused_then(
    key: Callable[..., Awaitable[Key]], places: dict[str, str], held: Held,
    listening: Callable[[int], Awaitable[None]],
) -> None:  # fmt: skip
    guest = await key(expires_in_s=1)
    poll = guest.later(places["poll"])
    await listening(1)
    held.micros += 1_000_000
    said = await asyncio.wait_for(poll, PATIENCE)
    assert (said.status, said.body["error"]) == (401, "key_expired")


async def test_the_inbox_is_not_told_to_a_key_that_was_revoked_meanwhile(
    admin: Key, key: Callable[..., Awaitable[Key]], listening: Callable[[int], Awaitable[None]]
) -> None:
    guest = await key()
    waiting = guest.later("/v1/host/moot/inbox?revision=0&wait=1")
    await listening(1)
    await admin("DELETE", f"/v1/host/moot/keys/{guest.key_id}")
    assert (await asyncio.wait_for(waiting, PATIENCE)).status == 401


async def test_a_key_revoked_just_before_its_stream_is_counted_ends_it_all_the_same(
    admin: Key, key: Callable[..., Awaitable[Key]], places: dict[str, str],
    services: Services, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It was good when the stream was asked for."""
    guest, view = await key(), services.host.view

    async def slow_view(*place: str) -> Any:
        found = await view(*place)
        await admin("DELETE", f"/v1/host/moot/keys/{guest.key_id}")
        return found

    monkeypatch.setattr(services.host, "view", slow_view)
    pieces: list[bytes] = []
    await asyncio.wait_for(guest.listen(places["events"], pieces), PATIENCE)
    assert b"data:" not in b"".join(pieces)


@pytest.mark.parametrize("form", ["md", "json", "bundle"])
async def test_an_export_is_cut_off_where_its_key_is_revoked(
    admin: Key, key: Callable[..., Awaitable[Key]], places: dict[str, str], form: str,
    services: Services, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It has no end, by which who reads it knows."""
    monkeypatch.setattr(export, "MOST_HELD", 1)
    path = places["thread"].replace("/stream", f"/export?format={form}")
    guest, read = await key(), services.store.read
    whole, pieces = list[bytes](), list[bytes]()
    await admin.listen(path, whole)

    async def slow_read(*place: Any) -> Any:
        if len(pieces) == 2:  # the head has left
            await admin("DELETE", f"/v1/host/moot/keys/{guest.key_id}")
        return await read(*place)

    monkeypatch.setattr(services.store, "read", slow_read)
    await guest.listen(path, pieces)
    assert b"".join(pieces[:2]) and len(pieces) < len(whole)
