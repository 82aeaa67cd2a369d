"""Councils that the host leads: said again without a call, and forked at any event."""

import asyncio
from typing import Any

from moot.core.events import Event
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.replay.replay import replay_run
from tests.support.engine.branches import forked
from tests.support.engine.council_members import TO_THE_END, Council, at_rest, convened, floor
from tests.support.engine.hosts import TENANT, Place, ended, log, order, soon, sound
from tests.support.engine.replays import answer, same, steer
from tests.support.event_payloads import payload_json

STEPS = ("moot.participation.decided", "moot.participation.stopped", "conversation.exchanged")


def payloads(events: list[Event], *types: str) -> list[Any]:
    return [payload_json(event) for event in events if event.type in types]


def spoken(events: list[Event]) -> list[tuple[str, Any]]:
    turns = [said["turn"] for said in payloads(events, "conversation.exchanged")]
    return [(turn["from"], turn["content"]) for turn in turns]


async def test_a_replay_says_the_same_turns_and_calls_nobody(place: Place) -> None:
    council = Council(place)
    host = council.host(place)
    source = await convened(host, TO_THE_END)
    assert (await ended(host, source)).status is Status.COMPLETED
    before, called = await log(host, source), list(council.calls)
    assert len(called) == 5 and len(spoken(before)) == 3
    for from_seq in range(len(before) + 1):
        now = await same(host, source, from_seq)
        assert payloads(await log(host, now.run_id), *STEPS) == payloads(before, *STEPS)
    assert council.calls == called
    await sound(host)


async def test_a_replay_of_a_council_that_goes_on_gives_nobody_the_floor(memory: Place) -> None:
    council = Council(memory)
    host = council.host(memory)
    council.gate.clear()
    source = await convened(host, {"mode": "round-robin"})
    await soon(lambda: council.calls)
    now = await replay_run(host, TENANT, source, 0)
    assert list((await floor(host, now.run_id)).wakes) == list((await floor(host, source)).wakes)
    assert len(council.calls) == 1 and await order(host, now.run_id) == await order(host, source)
    council.gate.set()
    await at_rest(host, source)
    assert (await floor(host, now.run_id)).wakes
    await sound(host)


async def test_every_fork_goes_on_and_asks_only_what_was_not_answered(memory: Place) -> None:
    council = Council(memory)
    host = council.host(memory)
    source = await convened(host, TO_THE_END)
    await ended(host, source)
    before = await log(host, source)
    for from_seq in range(1, len(before)):
        council.calls.clear()
        fork = await forked(host, source, from_seq)
        run = await ended(host, fork.run_id)
        told = await log(host, run.run_id)
        assert run.status is Status.COMPLETED, await order(host, run.run_id)
        assert len(spoken(told)) == 3 and run.outputs is not None
        known = {
            payload_json(event)["ordinal"] for event in before[: fork.inherited]
            if event.type == "moot.effect.started"
        }  # fmt: skip
        assert len(council.calls) == 5 - len(known), "what was answered is not asked again"
    await sound(host)


async def test_a_fork_of_a_speaker_at_work_speaks_too(place: Place) -> None:
    """The wake that was open at the fork is open in both; each is answered once."""
    council = Council(place)
    host = council.host(place)
    council.gate.clear()
    source = await convened(host, {"mode": "round-robin", "rounds": 1})
    await soon(lambda: council.calls)
    fork = await forked(host, source, (await host.view(TENANT, source)).run.next_sequence)
    assert (await floor(host, fork.run_id)).wakes.keys() == (await floor(host, source)).wakes.keys()
    council.gate.set()
    for run_id in (source, fork.run_id):
        await at_rest(host, run_id)
        events = await log(host, run_id)
        assert [name for name, _ in spoken(events)] == ["host:ada", "host:bo", "host:mo"]
        assert len(payloads(events, "moot.participation.answered")) == 3
    await sound(host)


async def test_other_models_speak_from_the_fork_on_only(memory: Place) -> None:
    council = Council(memory)
    host = council.host(memory)
    source = await convened(host, {"mode": "round-robin", "rounds": 2})
    await at_rest(host, source)
    before = await log(host, source)
    third = [e.sequence for e in before if e.type == "moot.participation.decided"][2]
    council.calls.clear()
    fork = await forked(host, source, third, edit={"models": {"bo": "other"}})
    await at_rest(host, fork.run_id)
    assert [(name.lower(), model) for name, model in council.calls] == [
        ("mo", "demo"), ("ada", "demo"), ("bo", "other"), ("mo", "demo"),
    ]  # fmt: skip
    told = await log(host, fork.run_id)
    assert spoken(told)[:2] == spoken(before)[:2]
    turns = [said["turn"] for said in payloads(told, "conversation.exchanged")]
    models = [turn["agent"]["model"]["model"] for turn in turns if turn["from"] == "host:bo"]
    assert models == ["demo", "other"]
    await sound(host)


async def asked(host: Host, run_id: str) -> str:
    async with asyncio.timeout(60):
        while not (found := (await floor(host, run_id)).asks):
            await asyncio.sleep(0.002)
    return next(iter(found))


async def test_a_tool_that_is_asked_for_is_allowed_in_the_branch_alone(place: Place) -> None:
    council = Council(place, digs=True)
    host = council.host(place)
    source = await convened(host, {"mode": "addressed"})
    await answer(host, source, "convo", {"content": "@ada dig"})
    name = await asked(host, source)
    fork = await forked(host, source, (await host.view(TENANT, source)).run.next_sequence)
    assert await asked(host, fork.run_id) == name
    await steer(host, fork.run_id, "convo", allow=name)
    await at_rest(host, fork.run_id)
    assert council.dug == 1 and (await floor(host, source)).asks
    await steer(host, source, "convo", deny=name)
    await at_rest(host, source)
    assert council.dug == 1
    assert len(payloads(await log(host, fork.run_id), "moot.tool.asked")) == 1
    now = await replay_run(host, TENANT, fork.run_id, 0)
    assert await order(host, now.run_id) == await order(host, fork.run_id)
    assert council.dug == 1
    await sound(host)


async def test_a_stop_a_held_turn_and_a_silence_are_said_again(memory: Place) -> None:
    council = Council(memory)
    host = council.host(memory)
    source = await convened(host, {"rounds": 3, "limits": {"consecutive": 2, "silence": 30}})
    await at_rest(host, source)
    council.gate.clear()
    await steer(host, source, "convo", **{"continue": True})
    await soon(lambda: len(council.calls) == 3)
    await steer(host, source, "convo", mute=["host:mo"])
    council.gate.set()
    await at_rest(host, source)
    [held] = payloads(await log(host, source), "moot.turn.held")
    await steer(host, source, "convo", unmute=["host:mo"], admit=held["held"])
    called = len(council.calls)
    now = await same(host, source)
    again = await log(host, now.run_id)
    assert payloads(again, *STEPS) == payloads(await log(host, source), *STEPS)
    assert len(council.calls) == called
    fork = await forked(host, source, (await host.view(TENANT, source)).run.next_sequence)
    await steer(host, fork.run_id, "convo", **{"continue": {"rounds": 1}})
    await at_rest(host, fork.run_id)
    assert len(council.calls) > called
    await sound(host)
