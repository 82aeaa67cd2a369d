"""The inbox over HTTP: waiting for it to change, and what a run waits for."""

import asyncio
import time
from pathlib import Path

import pytest

from moot.api.app import App
from moot.api.services import Services
from moot.config.settings import Settings
from moot.core.workflows.yaml import compile_yaml
from tests.support.api.application import PATIENCE, Said, ask, soon

INBOX = "/v1/host/moot/inbox"
ASKS = """
workflow: asks
steps: [{id: gate, node: core.approvalGate, config: {title: "Ship it?", requiredApprovals: 2}}]
"""


class Desk:
    """One tenant's way to the host."""

    def __init__(self, services: Services, key: str) -> None:
        self.services, self._app, self._key = services, App(services), key

    async def __call__(self, method: str, path: str, body: object = None) -> Said:
        return await ask(self._app, method, path, body, authorization=self._key)

    async def begin(self) -> str:
        flow = await self("POST", "/v1/host/moot/workflows", compile_yaml(ASKS, "test"))
        assert flow.status == 201
        return str((await self("POST", "/v1/runs", {"workflowId": "asks"})).body["runId"])

    def waiting(self, query: str) -> "asyncio.Task[Said]":
        return asyncio.ensure_future(self("GET", f"{INBOX}?{query}"))

    async def has_readers(self) -> None:
        """Until somebody waits for news."""
        await soon(lambda: self.services.host.hub.count() == 1)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("MOOT_BOOTSTRAP_KEY", raising=False)
    return Settings(database=str(tmp_path / "moot.db"), rate_limit=0)


@pytest.fixture
def desk(services: Services, bearer: str) -> Desk:
    return Desk(services, bearer)


async def test_a_known_revision_is_waited_beyond_and_news_come_at_once(desk: Desk) -> None:
    waiting = desk.waiting("revision=0&wait=30")
    await desk.has_readers()
    assert not waiting.done()
    run_id = await desk.begin()
    said = (await asyncio.wait_for(waiting, PATIENCE)).body
    assert [item["runId"] for item in said["items"]] == [run_id]
    assert said["revision"] == 1


async def test_another_revision_is_answered_at_once(desk: Desk) -> None:
    await desk.begin()
    for query in ("revision=0&wait=30", "wait=30", ""):
        said = await asyncio.wait_for(desk.waiting(query), PATIENCE)
        assert said.body["revision"] == 1


async def test_when_nothing_happens_the_same_is_said_after_the_wait(desk: Desk) -> None:
    begun = time.monotonic()
    said = await desk("GET", f"{INBOX}?revision=0&wait=1")
    assert time.monotonic() - begun >= 1
    assert said.body == {"items": [], "revision": 0}


async def test_nobody_is_left_listening(desk: Desk) -> None:
    await desk("GET", f"{INBOX}?revision=0&wait=1")
    waiting = desk.waiting("revision=0&wait=30")
    await desk.has_readers()
    assert desk.services.host.hub.count() == 1
    waiting.cancel()
    await asyncio.wait([waiting])
    assert desk.services.host.hub.count() == 0


async def test_a_host_that_stops_keeps_nobody_waiting(desk: Desk) -> None:
    waiting = desk.waiting("revision=0&wait=30")
    await desk.has_readers()
    desk.services.host.hub.close()
    assert (await asyncio.wait_for(waiting, PATIENCE)).status == 200


async def test_another_tenants_questions_wake_nobody_here(desk: Desk) -> None:
    made = await desk("POST", "/v1/host/moot/keys", {"name": "x", "tenant": "other"})
    stranger = Desk(desk.services, f"Bearer {made.body['key']}")
    waiting = stranger.waiting("revision=0&wait=30")
    run_id = await desk.begin()
    await asyncio.sleep(0.1)
    assert not waiting.done()
    waiting.cancel()
    assert (await stranger("GET", f"/v1/host/moot/runs/{run_id}/interrupts")).status == 404


@pytest.mark.parametrize("query", ["wait=31", "wait=-1", "wait=x", "revision=-2", "revision=x"])
async def test_bounds_are_kept(desk: Desk, query: str) -> None:
    assert (await desk("GET", f"{INBOX}?{query}")).status == 400


async def test_a_runs_questions_are_told_with_their_votes_and_who_answered(desk: Desk) -> None:
    run_id = await desk.begin()
    path = f"/v1/host/moot/runs/{run_id}/interrupts"
    answer = f"/v1/runs/{run_id}/interrupts/gate"
    for voter in ("bo", "cy"):
        [asked] = (await desk("GET", path)).body["open"]
        assert (asked["nodeId"], asked["question"]) == ("gate", "Ship it?")
        assert asked.get("votes", {}) == ({} if voter == "bo" else {"bo": "accept"})
        value = {"resumeValue": {"action": "accept", "voter": voter}}
        assert (await desk("POST", answer, value)).status == 200
    said = (await desk("GET", path)).body
    assert said["open"] == []
    assert [(last["nodeId"], last["action"]) for last in said["answered"]] == [("gate", "accept")]
