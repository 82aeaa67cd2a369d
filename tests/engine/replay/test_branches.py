"""Branches (protocol 9.2): another run's history, and a life of its own from there on."""

from collections.abc import Callable
from typing import Any

import pytest

from moot.core.commands import CancelRun
from moot.core.errors import EngineVersionMismatch, InterruptAlreadyResolved, Unprocessable
from moot.core.events import ENGINE_VERSION
from moot.core.ids import logical_invocation_id
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.rebuild import rebuild_rows
from moot.engine.replay.replay import replay_run
from moot.engine.replay.verify import verify_run
from tests.support.engine.branches import forked
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    delay,
    ended,
    log,
    node,
    order,
    sound,
    sub,
    until,
)
from tests.support.engine.replays import (
    answer,
    call,
    calls,
    council,
    flaky,
    hang,
    put,
    quickly,
    steer,
    waits,
)
from tests.support.event_payloads import payload_json


@pytest.fixture(autouse=True)
def _nobody_called() -> None:
    calls.clear()


async def test_a_branch_goes_on_by_itself(place: Place) -> None:
    host = place.host()
    source = await begun(host, chain(put("x", 1), put("y", 2), put("z", 3)))
    await ended(host, source)
    whole = await order(host, source)
    for from_seq in range(len(whole) + 1):
        run = await forked(host, source, from_seq)
        done = await ended(host, run.run_id)
        assert (done.status, done.variables) == (Status.COMPLETED, {"x": 1, "y": 2, "z": 3})
        assert await order(host, run.run_id) == whole
    await sound(host)


async def test_an_effect_of_the_history_is_not_made_again_and_a_later_one_is(place: Place) -> None:
    place.knows(call)
    host = place.host()
    nodes = [
        quickly("one", "acme.call"),
        node("ok", "core.approvalGate"),
        quickly("two", "acme.call"),
    ]
    body = chain(*nodes, channels={"log": {"reducer": "append"}})
    source = await begun(host, body)
    await until(host, source, waits)
    await answer(host, source, "ok", {"action": "accept"})
    await ended(host, source)
    whole = await order(host, source)
    assert calls["effect"] == 2
    first, second = [n for n, said in enumerate(whole) if said.startswith("moot.effect.started")]
    for from_seq in range(len(whole) + 1):
        before = calls["effect"]
        run = await forked(host, source, from_seq)
        found = await until(host, run.run_id, lambda run: waits(run) or run.terminal)
        if waits(found):
            await answer(host, run.run_id, "ok", {"action": "accept"})
        assert (await ended(host, run.run_id)).status is Status.COMPLETED
        made = (from_seq <= first) + (from_seq <= second)
        assert calls["effect"] - before == made, f"forked at {from_seq}: {whole[:from_seq]}"
    await sound(host)


async def test_a_branch_of_a_branch_knows_what_was_done_before_both(place: Place) -> None:
    place.knows(call, hang)
    host = place.host()
    nodes = [quickly("one", "acme.call"), node("ok", "core.approvalGate")]
    source = await begun(host, chain(*nodes, channels={"log": {"reducer": "append"}}))
    await until(host, source, waits)
    place_of = {said: n for n, said in enumerate(await order(host, source))}
    cut = place_of["moot.effect.finished one"] + 1
    once = await forked(host, source, cut)
    await until(host, once.run_id, waits)
    twice = await forked(host, once.run_id, cut)
    await until(host, twice.run_id, waits)
    thrice = await forked(host, twice.run_id, cut - 1)
    await until(host, thrice.run_id, waits)
    assert (calls["call"], calls["effect"]) == (4, 1)
    outputs = [run.nodes["one"].outputs for run in (once, twice, thrice)]
    assert outputs == [{"order": 1}] * 3
    await sound(host)


async def test_an_open_question_is_put_again_and_may_be_answered_otherwise(place: Place) -> None:
    host = place.host()
    body = chain(node("ok", "core.approvalGate", config={"title": "Ship it?"}), put("x", 1))
    source = await begun(host, body)
    await until(host, source, waits)
    length = len(await log(host, source))
    run = await forked(host, source, length)
    assert await host.store.work(2**62, 10) == [], "nothing is owed to who waits for an answer"
    rows, _ = await host.store.inbox(TENANT, 10)
    assert {row.run_id for row in rows} == {source, run.run_id}
    assert len({row.item_id for row in rows}) == 2
    await answer(host, run.run_id, "ok", {"action": "reject"})
    assert (await ended(host, run.run_id)).status is Status.FAILED
    assert (await host.view(TENANT, source)).run.status is Status.WAITING_APPROVAL
    await answer(host, source, "ok", {"action": "accept"})
    assert (await ended(host, source)).status is Status.COMPLETED
    with pytest.raises(InterruptAlreadyResolved):
        await answer(host, run.run_id, "ok", {"action": "accept"})
    await sound(host)


async def test_time_stands_still_between_a_source_and_its_branch(place: Place) -> None:
    host = place.host()
    gate = node("ok", "core.interrupt", config={"timeoutMs": 60_000})
    source = await begun(host, definition([gate, delay(90_000)]))
    await until(host, source, waits)
    length = len(await log(host, source))
    place.clock.ahead_ms += 3_600_000
    run = await forked(host, source, length)
    left = run.interrupts["ok"].due
    assert left is not None and 50_000 < left - host.clock.millis() <= 60_000
    await answer(host, run.run_id, "ok", {"fine": True})
    place.clock.ahead_ms += 3_600_000
    again = await forked(host, run.run_id, len(await log(host, run.run_id)))
    due = again.nodes["wait"].due
    assert due is not None and 80_000 < due - host.clock.millis() <= 90_000


async def test_a_council_goes_on_in_the_branch_with_the_same_speakers(place: Place) -> None:
    host = place.host()
    channels = {"conversation": {"reducer": "message"}}
    source = await begun(host, chain(council(), put("x", 1), channels=channels))
    await until(host, source, waits)
    for number, name in enumerate(("host:ada", "host:bo", "host:ada")):
        said = {"role": "agent", "speakerId": name, "content": number, "messageId": f"m{number}"}
        await answer(host, source, "talk", said)
        await steer(host, source, "talk", prod=["host:bo"])
    await answer(host, source, "talk", {"operation": "close", "outcome": "June"})
    await ended(host, source)
    places = [
        n for n, e in enumerate(await log(host, source)) if e.type == "conversation.exchanged"
    ]
    run = await forked(host, source, places[1] + 1)
    assert await host.store.message(TENANT, run.run_id, "m1") == places[1]
    assert await host.store.message(TENANT, run.run_id, "m2") is None
    talk = run.conversations["talk"]
    assert (talk.turns, talk.open, talk.roster) == (2, True, ["host:ada", "host:bo"])
    assert talk.conversation_id == f"{source}:talk:1"
    said = {"role": "agent", "speakerId": "host:bo", "content": "No: May"}
    await answer(host, run.run_id, "talk", said)
    await answer(host, run.run_id, "talk", {"operation": "close", "outcome": "May"})
    done = await ended(host, run.run_id)
    assert done.nodes["talk"].outputs == {
        "outcome": "May", "conversationId": f"{source}:talk:1", "turnCount": 4
    }  # fmt: skip
    turns = [payload_json(e)["turn"] for e in await log(host, run.run_id) if "exchanged" in e.type]
    assert [turn["speakerId"] for turn in turns] == ["host:ada", "host:bo", "host:bo"]
    await sound(host)


async def test_a_run_in_the_middle_of_its_work_can_be_forked(place: Place) -> None:
    place.knows(hang, flaky)
    host = place.host()
    source = await begun(host, chain(put("x", 1), node("h", "acme.hang"), put("y", 1)))
    await until(host, source, lambda run: "h" in run.active)
    length = len(await log(host, source))
    run = await forked(host, source, length)
    await until(host, run.run_id, lambda run: "h" in run.active)
    await host.handle(TENANT, run.run_id, CancelRun(host.clock.millis()))
    assert (await host.view(TENANT, source)).run.status is Status.RUNNING


async def test_options_of_a_branch_are_those_of_its_source_and_what_it_is_given(
    place: Place,
) -> None:
    host = place.host()
    given: dict[str, Any] = {
        "configurable": {"acme.a": 1, "recursionLimit": 9},
        "tags": ["t"],
        "metadata": {"m": 1},
    }
    source = await begun(host, chain(put("x", 1), put("y", 1)), scope_id="one", **given)
    await ended(host, source)
    plain = await forked(host, source, 1)
    assert (plain.configurable, plain.tags, plain.metadata) == tuple(given.values())
    assert plain.scope_id is None
    run = await forked(
        host,
        source,
        1,
        configurable={"recursionLimit": 1},
        tags=["u"],
        metadata={"n": 2},
        note="why",
    )
    assert run.configurable == {"acme.a": 1, "recursionLimit": 1}
    assert (run.tags, run.metadata) == (["u"], {"m": 1, "n": 2})
    assert run.forked_from is not None and run.forked_from.note == "why"
    found = await ended(host, run.run_id)
    assert found.error is not None and found.error.code == "recursion_limit_exceeded"


async def test_there_is_nothing_to_fork_past_the_end(place: Place) -> None:
    host = place.host()
    source = await begun(host, chain(put("x", 1)))
    length = (await ended(host, source)).next_sequence
    done = await forked(host, source, length)
    assert done.status is Status.COMPLETED
    with pytest.raises(Unprocessable):
        await forked(host, source, length + 1)


async def test_what_a_newer_engine_wrote_is_not_forked(place: Place) -> None:
    host = place.host()
    source = await begun(host, chain(put("x", 1)), engine_version=ENGINE_VERSION + 1)
    place_ = host, TENANT, source
    for fork in (forked(host, source, 1), replay_run(*place_, 0), verify_run(*place_)):
        with pytest.raises(EngineVersionMismatch):
            await fork
    assert len(await host.store.runs()) == 1


async def test_a_branch_lives_through_a_restart_and_a_rebuild(sqlite: Place) -> None:
    sqlite.knows(call)
    host = sqlite.host()
    nodes = [quickly("one", "acme.call"), node("ok", "core.approvalGate"), put("x", 1)]
    source = await begun(host, chain(*nodes, channels={"log": {"reducer": "append"}}))
    await until(host, source, waits)
    run = await forked(host, source, len(await log(host, source)))
    before = (await host.view(TENANT, run.run_id)).run
    fresh = await sqlite.restart(host)
    assert (await fresh.view(TENANT, run.run_id)).run == before
    await _rebuilt(fresh)
    for each in (source, run.run_id):
        await answer(fresh, each, "ok", {"action": "accept"})
        assert (await ended(fresh, each)).status is Status.COMPLETED
    assert calls["effect"] == 1
    await sound(fresh)


async def _rebuilt(host: Host) -> None:
    """Derived rows made anew are those that were there."""
    [source, fork] = [run_id for _, run_id in await host.store.runs()]
    name = logical_invocation_id(TENANT, source, "one", 1, "shop:order")
    rows = await host.store.effect(TENANT, source, name), (await host.store.inbox(TENANT, 10))[0]
    await rebuild_rows(host.store, host.flows)
    assert (
        await host.store.effect(TENANT, source, name),
        (await host.store.inbox(TENANT, 10))[0],
    ) == rows
    assert rows[0] is not None and rows[0].run_id == source != fork


# -- children ------------------------------------------------------------------------------------


async def test_a_living_child_is_forked_with_its_parent(place: Place) -> None:
    host = place.host()
    kid = chain(put("x", 7), node("ok", "core.approvalGate"), put("z", 8), id="kid")
    top = chain(put("a", 1), sub("kid", outputMapping={"y": "x"}), put("b", 2), id="top")
    source = await begun(host, kid, top)
    await until(host, source, lambda run: bool(run.mirrored))
    [child] = (await host.view(TENANT, source)).run.children
    length = len(await log(host, source))
    run = await forked(host, source, length)
    [own] = run.children
    assert own != child
    found = (await host.view(TENANT, own)).run
    assert (found.parent_run, found.parent_node) == (run.run_id, "sub")
    row = await host.store.find_run(TENANT, own)
    assert row is not None and row.parent_run == run.run_id
    await answer(host, own, "ok", {"action": "accept"})
    done = await ended(host, run.run_id)
    assert (done.status, done.variables) == (Status.COMPLETED, {"a": 1, "y": 7, "b": 2})
    assert done.children == {own: "completed"}
    assert (await host.view(TENANT, child)).run.status is Status.WAITING_APPROVAL
    assert (await host.view(TENANT, source)).run.children == {child: None}
    await sound(host)


async def test_a_child_that_has_ended_stays_the_recorded_one(place: Place) -> None:
    host = place.host()
    top = chain(sub("kid", outputMapping={"y": "x"}), put("b", 2), put("c", 3), id="top")
    source = await begun(host, chain(put("x", 7), id="kid"), top)
    done = await ended(host, source)
    places = {said: n for n, said in enumerate(await order(host, source))}
    run = await forked(host, source, places["node.completed sub"] + 1)
    assert (await ended(host, run.run_id)).children == done.children
    assert len(await host.store.runs()) == 3


async def test_every_fork_of_a_family_comes_to_the_same(place: Place) -> None:
    host = place.host()
    leaf = chain(delay(1), put("x", 1), id="leaf")
    kid = chain(sub("leaf", outputMapping={"x": "x"}), delay(1), id="kid")
    each = {"workflowId": "kid", "items": [1, 2], "outputMapping": {"y": "x"}}
    top = chain(node("each", "moot.forEach", config=each), put("b", 2), id="top")
    source = await begun(host, leaf, kid, top)
    done = await ended(host, source)
    for from_seq in range(done.next_sequence + 1):
        run = await forked(host, source, from_seq)
        found = await ended(host, run.run_id)
        assert (found.status, found.variables) == (Status.COMPLETED, {"y": 1, "b": 2})
        assert all(status == "completed" for status in found.children.values())
        assert found.nodes["each"].outputs is not None
        assert found.nodes["each"].outputs["iterations"] == 2
    await sound(host)


def _wave(policy: str) -> dict[str, Any]:
    plan = [{"kind": "next-worker", "nextWorkerIds": ["kid", "kid", "kid"]}]
    config = {
        "fanOutPolicy": policy, "outputMapping": {"got": "x"},
        **({"joinPolicy": {"mode": "wait-all"}} if policy == "parallel" else {}),
    }  # fmt: skip
    return chain(
        node("boss", "core.orchestrator.supervisor", config={"plan": plan}),
        node("hand", "core.dispatch", config=config),
        id="top",
    ) | {"edges": [
        {"id": "a", "sourceNodeId": "boss", "targetNodeId": "hand"},
        {"id": "b", "sourceNodeId": "hand", "targetNodeId": "boss"},
    ]}  # fmt: skip


@pytest.mark.parametrize("policy", ["parallel", "sequential"])
async def test_a_wave_of_children_is_forked_and_comes_together(place: Place, policy: str) -> None:
    host = place.host()
    kid = chain(node("ok", "core.approvalGate"), put("x", 7), id="kid")
    source = await begun(host, kid, _wave(policy))
    most = 3 if policy == "parallel" else 1
    await until(host, source, lambda run: len(run.children) == most)
    first = next(iter((await host.view(TENANT, source)).run.children))
    await answer(host, first, "ok", {"action": "accept"})
    await until(host, source, lambda run: run.children.get(first) == "completed")
    await until(host, source, lambda run: policy == "parallel" or len(run.children) == 2)
    run = await forked(host, source, len(await log(host, source)))
    assert next(iter(run.children)) == first
    theirs = set((await host.view(TENANT, source)).run.children) - {first}
    for _ in range(2):
        name = next(n for n, status in run.children.items() if status is None)
        assert name not in theirs
        await until(host, name, waits)
        await answer(host, name, "ok", {"action": "accept"})
        run = await until(host, run.run_id, _settled(name))
    done = await ended(host, run.run_id)
    assert (done.status, done.variables) == (Status.COMPLETED, {"got": 7})
    assert len(done.children) == 3
    assert set((await host.view(TENANT, source)).run.children) >= theirs
    await sound(host)


def _settled(name: str) -> Callable[[Run], bool]:
    def reached(run: Run) -> bool:
        lives = [status for status in run.children.values() if status is None]
        return run.terminal or (run.children.get(name) is not None and bool(lives))

    return reached


async def test_the_branch_of_a_child_is_nobodys_child(place: Place) -> None:
    host = place.host()
    ask = chain(node("ok", "core.approvalGate"), id="kid")
    parent = await begun(host, ask, chain(sub("kid"), id="top"))
    await until(host, parent, lambda run: bool(run.mirrored))
    [kid] = (await host.view(TENANT, parent)).run.children
    run = await forked(host, kid, len(await log(host, kid)))
    assert run.parent_run is None
    await answer(host, run.run_id, "ok", {"action": "accept"})
    assert (await ended(host, run.run_id)).status is Status.COMPLETED
    assert (await host.view(TENANT, parent)).run.status is Status.WAITING_APPROVAL
