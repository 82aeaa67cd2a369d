"""Who asks for an export and goes, or does not take it, costs no more than it has taken."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moot.api.app import App
from moot.api.services import Services
from moot.api.threads import export
from moot.config.settings import Settings
from tests.support.api.application import PATIENCE, ask

FORMS = ["md", "html", "json", "bundle"]
THREADS = "/v1/host/moot/threads"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("MOOT_BOOTSTRAP_KEY", raising=False)
    return Settings(database=str(tmp_path / "moot.db"), rate_limit=0)


@pytest.fixture
async def thread(services: Services, bearer: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """With some turns, which are read one by one."""
    app = App(services)
    made = await ask(app, "POST", THREADS, {"title": "Long"}, authorization=bearer)
    name = str(made.body["threadId"])
    for number in range(8):
        body = {"content": f"{number} " + "word " * 400}
        said = await ask(app, "POST", f"/threads/{name}/events", body, authorization=bearer)
        assert said.status == 200, said
    monkeypatch.setattr(export, "MOST_HELD", 1)
    return name


class Reads:
    """How much of the log is read for one reader, and how much of that at a time."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self._read, self.asked = services.store.read, list[int]()
        monkeypatch.setattr(services.store, "read", self)

    async def __call__(self, tenant: str, run_id: str, after: int, limit: int) -> list[bytes]:
        self.asked.append(limit)
        await asyncio.sleep(0)  # as a disk has it
        return await self._read(tenant, run_id, after, limit)


def scope_of(thread: str, form: str, bearer: str) -> dict[str, Any]:
    return {
        "type": "http", "method": "GET", "path": f"{THREADS}/{thread}/export",
        "query_string": f"format={form}".encode(), "client": ("192.0.2.1", 1),
        "headers": [(b"authorization", bearer.encode())],
    }  # fmt: skip


async def never() -> dict[str, Any]:
    return await asyncio.Future()


async def whole(services: Services, thread: str, form: str, bearer: str) -> bytes:
    pieces: list[bytes] = []

    async def take(message: dict[str, Any]) -> None:
        pieces.append(message.get("body", b""))

    await App(services)(scope_of(thread, form, bearer), never, take)
    return b"".join(pieces)


@pytest.mark.parametrize("form", FORMS[:3])
async def test_minutes_are_the_same_however_much_is_held_at_a_time(
    services: Services, thread: str, form: str, bearer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(services, monkeypatch)
    little = await whole(services, thread, form, bearer)
    assert len([asked for asked in reads.asked if asked > 2]) == 2, "its size is known from then on"
    monkeypatch.setattr(export, "MOST_HELD", 1 << 20)
    assert little == await whole(services, thread, form, bearer)


@pytest.mark.parametrize("form", FORMS)
async def test_nothing_is_read_for_who_has_gone(
    services: Services, thread: str, form: str, bearer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, gone = Reads(services, monkeypatch), asyncio.Event()
    await whole(services, thread, form, bearer)
    all_of_it, reads.asked = len(reads.asked), []
    taken: list[bytes] = []

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        taken.append(message.get("body", b""))
        if len(taken) == 3:  # the head, and something of the log
            gone.set()

    async with asyncio.timeout(PATIENCE):
        await App(services)(scope_of(thread, form, bearer), receive, send)
    assert len(reads.asked) < all_of_it - 3


@pytest.mark.parametrize("form", FORMS)
async def test_who_does_not_take_it_is_let_go(
    services: Services, thread: str, form: str, bearer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PATIENCE_S", 0.01)
    taken: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        taken.append(message)
        if len(taken) > 2:
            await asyncio.Future()  # nobody takes it

    async with asyncio.timeout(PATIENCE):
        await App(services)(scope_of(thread, form, bearer), never, send)
    assert len(taken) == 3 and taken[-1]["more_body"], "it has no end"
