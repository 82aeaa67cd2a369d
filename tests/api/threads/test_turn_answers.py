"""Each speaker is answered about its own turn, however many speak at once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moot.api.app import App
from moot.api.server import build_services
from moot.api.services import Services
from moot.clock import SystemClock
from moot.config.settings import Settings
from moot.core.events import decode
from moot.store.sqlite import SqliteStore
from tests.support.api.application import Said, ask
from tests.support.event_payloads import payload_json

SPEAKERS = 40
TALK = {
    "id": "talk", "name": "talk", "version": "1.0", "edges": [], "triggers": [], "variables": [],
    "metadata": {}, "settings": {},
    "nodes": [{"id": "floor", "typeId": "core.conversationGate", "name": "floor",
               "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}],
}  # fmt: skip


@pytest.fixture
async def services(settings: Settings) -> AsyncIterator[Services]:
    """On a disk: commits take their time, and many share one."""
    found = await build_services(settings, await SqliteStore.open(settings.database), SystemClock())
    yield found
    await found.host.aclose()
    await found.store.aclose()


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return Settings(database=settings.database, rate_limit=0)


async def opened(app: App, bearer: str) -> str:
    await ask(app, "POST", "/v1/host/moot/workflows", TALK, authorization=bearer)
    made = await ask(app, "POST", "/v1/runs", {"workflowId": "talk"}, authorization=bearer)
    return f"/v1/runs/{made.body['runId']}/interrupts/floor"


async def say(app: App, bearer: str, path: str, number: int, **more: Any) -> Said:
    turn = {"role": "agent", "speakerId": "host:a", "content": f"turn of {number}", **more}
    return await ask(app, "POST", path, {"resumeValue": turn}, authorization=bearer)


async def recorded(services: Services, path: str) -> dict[int, str]:
    """Index of each turn -> what was said."""
    events = map(decode, await services.store.read("default", path.split("/")[3]))
    said = [payload_json(event) for event in events if event.type == "conversation.exchanged"]
    return {payload["turnIndex"]: payload["turn"]["content"] for payload in said}


@pytest.mark.parametrize("named", [False, True], ids=["plain", "with a messageId"])
async def test_who_speaks_together_with_others_is_told_the_index_of_its_own_turn(
    services: Services, bearer: str, named: bool
) -> None:
    """The answer once told of the newest turn, which was somebody else's."""
    app = App(services)
    path = await opened(app, bearer)
    more = [{"messageId": f"m{number}"} if named else {} for number in range(SPEAKERS)]
    said = await asyncio.gather(
        *(say(app, bearer, path, number, **more[number]) for number in range(SPEAKERS))
    )
    assert {answer.status for answer in said} == {200}
    told = {answer.body["conversation"]["turnIndex"]: n for n, answer in enumerate(said)}
    assert {index: f"turn of {n}" for index, n in told.items()} == await recorded(services, path)
    assert sorted(told) == list(range(1, SPEAKERS + 1))


async def test_a_repeated_message_gets_the_very_answer_of_the_first(
    services: Services, bearer: str
) -> None:
    app = App(services)
    path = await opened(app, bearer)
    said = await asyncio.gather(
        *(say(app, bearer, path, n % 8, messageId=f"m{n % 8}") for n in range(SPEAKERS))
    )
    for number in range(8):
        assert len({str(answer.body) for answer in said[number::8]}) == 1
    assert len(await recorded(services, path)) == 8
    other = await say(app, bearer, path, 99, messageId="m0")
    assert other.status == 409, other.body


async def test_the_same_words_of_another_person_are_another_turn(
    services: Services, bearer: str
) -> None:
    """Who speaks is not in the body, so the same body once passed for the same turn: what the
    second person said was acknowledged and never recorded."""
    app = App(services)
    path = await opened(app, bearer)
    asked = {"resumeValue": {"content": "yes", "messageId": "1"}}
    people = []
    for name in ("user:eve", "user:fay"):
        made = {"name": name, "as": [name]}
        key = await ask(app, "POST", "/v1/host/moot/keys", made, authorization=bearer)
        people.append(f"Bearer {key.body['key']}")
    first = await ask(app, "POST", path, asked, authorization=people[0])
    assert first.status == 200
    other = await ask(app, "POST", path, asked, authorization=people[1])
    assert (other.status, other.body["error"]) == (409, "message_id_conflict")
    assert await ask(app, "POST", path, asked, authorization=people[0]) == first
