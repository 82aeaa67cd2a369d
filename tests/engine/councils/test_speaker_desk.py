"""Whoever is given the floor gets ready while that is on its way to disk. Nothing leaves the host
before it is there, and what was never kept has led to nothing."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from moot.agents.definitions.manifest import Agent
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.protocol import ModelRequest, Piece
from moot.agents.tools.toolbox import Toolbox
from moot.core.commands import TimePassed
from moot.core.errors import Conflict, StorageFailed
from moot.core.events import UNSET, Event, decode
from moot.engine.head import BasisEvent
from moot.engine.host import Host
from moot.engine.recovery import Recovery
from moot.store.protocol import Batch
from moot.store.sqlite.write.group_commit import QueuedBatch, Writer
from tests.support.engine.council_members import Council, at_rest, convened
from tests.support.engine.hosts import TENANT, Gated, Place, log, soon, sound
from tests.support.engine.replays import answer
from tests.support.event_payloads import payload_json

TWICE = {"mode": "round-robin", "rounds": 2}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host looks again after a second; here, after a hundredth."""
    monkeypatch.setattr(Recovery, "pause_s", 0.01)


class Watched(Council):
    """Models that look, when they are asked, at what is on disk."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.place = place
        #: what was on disk, and how many turns the model was told of
        self.seen: list[tuple[list[Event], int]] = []

    def choose(self, *given: Any, **more: Any) -> Any:
        chosen = super().choose(*given, **more)
        stream = chosen.stream

        async def watched(request: ModelRequest) -> AsyncGenerator[Piece, None]:
            [(_, run_id)] = await self.place.store.runs()
            rows = await self.place.store.read(TENANT, run_id, -1, 10_000)
            assert request.context is not None
            self.seen.append(([decode(row) for row in rows], len(request.context.heard)))
            async for piece in stream(request):
                yield piece

        chosen.stream = watched
        return chosen

    def on(self, wrapper: Any) -> Host:
        return self.place.host(wrapper, speaks=Invoker(self, self.find, self))


def gated(refuse: Callable[[Batch], bool]) -> Callable[[Any], Gated]:
    def wrapper(store: Any) -> Gated:
        made = Gated(store)
        made.refuse = refuse
        return made

    return wrapper


def turns(events: list[Event]) -> int:
    said = ("conversation.opened", "conversation.exchanged")
    return sum(event.type in said for event in events)


def check(seen: list[tuple[list[Event], int]]) -> None:
    """Whatever a model was told is on disk, and last of all that it is going to be asked."""
    for events, told in seen:
        assert events[-1].type == "moot.effect.started"
        assert told == turns(events)


def asked_in_their_own_name(events: list[Event]) -> None:
    given = {
        wake["wakeId"]: wake["agentId"]
        for event in events
        if event.type == "moot.participation.decided"
        for wake in payload_json(event)["wakes"]
    }
    for event in events:
        if event.type.startswith("agent."):
            assert event.hints is not UNSET
            assert given[event.hints["wake"]] == payload_json(event)["agentId"]


async def test_a_model_is_asked_when_the_call_and_all_it_is_told_are_on_disk(place: Place) -> None:
    council = Watched(place)
    host = council.on(Gated)
    run_id = await convened(host, TWICE)
    await at_rest(host, run_id)
    assert len(council.seen) == 6
    check(council.seen)
    await sound(host)


async def test_a_turn_and_the_next_call_share_one_sync(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[list[str]] = []
    commit = Writer._commit

    def counted(self: Writer, writes: list[QueuedBatch]) -> None:
        bodies = [
            body for write in writes for append in write.batch.appends for body in append.events
        ]
        groups.append([decode(body).type for body in bodies])
        commit(self, writes)

    monkeypatch.setattr(Writer, "_commit", counted)
    council = Council(sqlite)
    host = council.host(sqlite)
    run_id = await convened(host, TWICE)
    await at_rest(host, run_id)
    spoken = [group for group in groups if "conversation.exchanged" in group]
    assert len(spoken) == 6
    assert all(group[-1] == "moot.effect.started" for group in spoken[:-1])
    await sound(host)


@pytest.mark.parametrize("nth", range(1, 9))
async def test_when_the_disk_refuses_nobody_was_asked_for_nothing(place: Place, nth: int) -> None:
    """One write is refused, and with it whatever was decided on top of it meanwhile."""
    council, count = Watched(place), 0

    def refuse(batch: Batch) -> bool:
        nonlocal count
        count += bool(batch.appends)
        return count == nth + 1 and bool(batch.appends)

    host = council.on(gated(refuse))
    run_id = await convened(host, TWICE)
    await at_rest(host, run_id)
    check(council.seen)
    events = await log(host, run_id)
    begun = [event for event in events if event.type == "moot.effect.started"]
    assert len(council.seen) == len(begun) and turns(events) == 7
    asked_in_their_own_name(events)
    await sound(host)


class Slow(Council):
    """Bo's tools have to be fetched from far away, at first."""

    fetching = stopped = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.fetched: list[str] = []

    async def for_agent(self, agent: Agent) -> Toolbox:
        self.fetched.append(agent.name)
        if agent.name == "bo" and not self.fetching:
            self.fetching = True
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped = True
        return await super().for_agent(agent)


async def test_who_gets_ready_for_what_is_never_kept_is_stopped(memory: Place) -> None:
    """Said again, it gives the floor under the same name: nobody else may stand in the way."""
    council, disk = Slow(memory), Gated(memory.store)
    host = memory.host(lambda _: disk, speaks=Invoker(council, council.find, council))
    run_id = await convened(host, {"mode": "addressed"})
    turn = {"turn": {"role": "user", "content": "Ship?", "to": "host:ada"}}
    await answer(host, run_id, "convo", turn)
    await at_rest(host, run_id)
    turn["turn"]["to"] = "host:bo"
    disk.gate.clear()
    said = asyncio.ensure_future(answer(host, run_id, "convo", turn))
    await soon(lambda: council.fetching)
    disk.refuse = lambda _: True
    disk.gate.set()
    with pytest.raises(StorageFailed):
        await said
    disk.refuse = lambda _: False
    await answer(host, run_id, "convo", turn)
    await at_rest(host, run_id)
    assert council.stopped and turns(await log(host, run_id)) == 5
    await sound(host)


async def test_who_gets_ready_is_not_disturbed_by_what_was_said_before(memory: Place) -> None:
    council, disk = Slow(memory), Gated(memory.store)
    host = memory.host(lambda _: disk, speaks=Invoker(council, council.find, council))
    run_id = await convened(host, {"mode": "addressed"})
    ask = {"turn": {"role": "user", "content": "Ship?", "to": "host:ada"}}
    await answer(host, run_id, "convo", ask)
    await at_rest(host, run_id)
    disk.gate.clear()
    plain = {"turn": {"role": "user", "content": "Hm."}}
    said = [asyncio.ensure_future(answer(host, run_id, "convo", turn)) for turn in (plain, ask)]
    await soon(lambda: disk.waiting == 3)
    disk.gate.set()
    await asyncio.gather(*said)
    await at_rest(host, run_id)
    assert council.fetched == ["ada", "ada"] and len(council.calls) == 2


async def test_a_command_that_goes_back_to_what_was_lost_is_refused(memory: Place) -> None:
    council = Council(memory)
    council.gate.clear()
    host = council.host(memory)
    run_id = await convened(host, TWICE)
    head = await host.runs.head(TENANT, run_id)
    kept, lost = BasisEvent(head, head.durable - 1), BasisEvent(head, head.durable)
    head.broken = True
    wake = TimePassed(host.clock.millis())
    await host.handle(TENANT, run_id, wake, basis=kept)
    with pytest.raises(Conflict):
        await host.handle(TENANT, run_id, wake, basis=lost)
    with pytest.raises(Conflict):
        await head.on_disk(head.durable)
