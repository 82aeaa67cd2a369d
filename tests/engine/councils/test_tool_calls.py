"""Members of councils with tools in their hands: each use asked for, made once, told as words."""

import asyncio
import json
from typing import Any

import pytest

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.protocol import ModelToolCall
from moot.agents.tools.toolbox import Toolbox, ToolInvocation, UsableTool
from moot.core.errors import MootError
from moot.core.speaker import Speaker
from moot.core.text.fencing import fence_content
from moot.core.threads.decide import Control
from moot.engine.host import Host
from tests.support.engine.council_members import Council, at_rest, convened, floor
from tests.support.engine.hosts import TENANT, Failing, Place, log, soon
from tests.support.event_payloads import payload_json
from tests.support.injections import PRETENDING

PERSON = Speaker("key_eve", admin=True)
SAFE = "an ordinary line: nothing else"
ONE_ROUND = {"rounds": 1, "moderator": "host:mo"}


async def asked(host: Host, run_id: str, times: int = 1) -> list[str]:
    """The questions that wait for a person, once there are so many."""
    async with asyncio.timeout(60):
        while len(found := (await floor(host, run_id)).asks) < times:
            await asyncio.sleep(0.002)
    return list(found)


async def allow(host: Host, run_id: str, ask: str) -> None:
    control = Control(
        node_id="convo", content={"allow": ask}, who=PERSON, at=host.clock.millis(), sender=None
    )
    await host.handle(TENANT, run_id, control)


async def allow_all(host: Host, run_id: str) -> None:
    """Whatever anybody asks for, until nobody does any more."""
    async with asyncio.timeout(60):
        while True:
            try:
                for name, ask in (await floor(host, run_id)).asks.items():
                    if ask.allowed is None:
                        await allow(host, run_id, name)
                if (await floor(host, run_id)).phase == "over":
                    return
            except MootError:
                pass
            await asyncio.sleep(0.002)


async def test_who_waits_for_a_person_takes_nobodys_place(place: Place) -> None:
    """With one place for members at work on the whole host, three wait at the same time."""
    council = Council(place, digs=True)
    host = council.host(place)
    host.speakers._slots._free = asyncio.Semaphore(1)
    runs = [await convened(host, ONE_ROUND) for _ in range(3)]
    for run_id in runs:
        await asked(host, run_id)
    assert council.dug == 0
    for run_id in runs:
        await allow_all(host, run_id)
        await at_rest(host, run_id)
    assert host.speakers._slots._free._value == 1, "each place was given back once"


async def test_who_is_stopped_while_waiting_gives_no_place_back_twice(place: Place) -> None:
    council = Council(place, digs=True)
    host = council.host(place)
    host.speakers._slots._free = asyncio.Semaphore(2)
    run_id = await convened(host, ONE_ROUND)
    await asked(host, run_id)
    host.speakers.keep(run_id, [])
    await soon(lambda: host.speakers._slots._free._value == 2)
    await asyncio.sleep(0.01)
    assert host.speakers._slots._free._value == 2


class Pretending(Council):
    """Its tool gives back what somebody else has written."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, digs=True)
        self.read: list[str] = []

    async def _dig(self, arguments: dict[str, Any], errand: ToolInvocation) -> Any:
        return {"page": PRETENDING[len(self.read) % len(PRETENDING)], "rows": [SAFE]}

    def choose(self, *given: Any, **more: Any) -> Any:
        counted = super().choose(*given, **more)
        stream = counted.stream

        def listening(request: Any) -> Any:
            self.read += [each.content for each in request.messages if each.role == "tool"]
            return stream(request)

        counted.stream = listening
        return counted


async def test_what_a_tool_gives_back_is_words(place: Place) -> None:
    council = Pretending(place)
    host = council.host(place)
    run_id = await convened(host, ONE_ROUND)
    await allow_all(host, run_id)
    assert council.read
    events = await log(host, run_id)
    told = [payload_json(event) for event in events if event.type == "agent.toolReturned"]
    assert all(each["flags"] for each in told), "whoever reads the log is told"
    assert not [event for event in events if event.type == "moot.thread.control"]


@pytest.mark.parametrize("text", PRETENDING)
async def test_no_text_inside_a_result_pretends_to_be_more_than_a_result(text: str) -> None:
    async def call(arguments: dict[str, Any], errand: ToolInvocation) -> Any:
        return {"page": [{text[:40]: text}], "fine": SAFE}

    desk = Slip()
    box = Toolbox({"dig": UsableTool(name="dig", call=call)})
    asked = ModelToolCall(id="c", name="dig", arguments="{}")
    message = await box.use(asked, Agent(name="ada"), desk, ("Ada", "Bo"))  # type: ignore[arg-type]
    shown = json.loads(str(message.content))["result"]
    [page] = shown["page"]
    assert [*page.values()] == [fence_content(text, ("Ada", "Bo"))[0]] and shown["fine"] == SAFE
    assert desk.flags


class Slip:
    """As much of a desk as one call of a tool needs."""

    def __init__(self) -> None:
        self.flags: list[str] = []

    def now(self) -> int:
        return 0

    def trace(self, name: str) -> Any:
        return None

    async def tool_called(self, *told: Any) -> "Slip":
        return self

    async def effect(self, key: str, call: Any, idempotent: bool) -> Any:
        return await call("effect")

    async def returned(self, result: Any, took: Any, flags: list[str]) -> None:
        self.flags = flags


@pytest.mark.parametrize("nth", range(2, 26, 2))
async def test_whichever_write_fails_a_tool_is_used_once_and_every_member_speaks_once(
    place: Place, nth: int
) -> None:
    council = Council(place, digs=True)
    invoker = Invoker(council, council.find, council)
    host = place.host(lambda store: Failing(store, nth, ("commit",)), speaks=invoker)
    try:
        run_id = await convened(host, ONE_ROUND)
    except MootError:
        return  # it never began
    await allow_all(host, run_id)
    await at_rest(host, run_id)
    events = await log(host, run_id)
    turns = [payload_json(e)["turn"] for e in events if e.type == "conversation.exchanged"]
    assert [turn["from"] for turn in turns if turn["role"] == "agent"] == [
        "host:ada", "host:bo", "host:mo"
    ]  # fmt: skip
    dug = [e for e in events if e.type == "agent.toolCalled"]
    assert council.dug <= len(dug) <= 3
    finished = [payload_json(e)["invocationId"] for e in events if e.type == "moot.effect.finished"]
    assert len(set(finished)) == len(finished)
