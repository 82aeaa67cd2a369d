"""Supervisors on a real host: restarts in the middle of a wave, workers that come late, replays."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.engine.host import Host
from moot.engine.replay.replay import replay_run
from tests.support.engine.handoffs import Plan, chains, check, lived, plans
from tests.support.engine.hosts import (
    TENANT,
    Place,
    another,
    begun,
    chain,
    definition,
    delay,
    edge,
    ended,
    log,
    node,
    order,
    registered,
    soon,
    sound,
    until,
)  # fmt: skip
from tests.support.engine.replays import answer, call, calls, from_everywhere, same, waits
from tests.support.event_payloads import payload_json

DONE = {"kind": "terminate", "reason": "goal-reached"}


@pytest.fixture(autouse=True)
def _nobody_called() -> None:
    calls.clear()


def hand(*workers: str, **more: Any) -> dict[str, Any]:
    return {"kind": "next-worker", "nextWorkerIds": list(workers), **more}


def led(*plan: Any, nodes: tuple[Any, ...] = (), edges: tuple[Any, ...] = (), **config: Any) -> Any:
    mapping = {"outputMapping": {"result": "out"}, **config}
    both = [
        node("boss", SUPERVISOR, config={"plan": [*plan]}),
        node("hands", DISPATCH, config=mapping),
    ]
    loop = [edge("boss", "hands"), edge("hands", "boss"), *edges]
    variables = [{"name": "result", "type": "string"}]
    return definition([*both, *nodes], loop, id="led", variables=variables)


def worker(name: str, *nodes: Any) -> dict[str, Any]:
    out = {"name": "out", "type": "string", "defaultValue": f"of {name}"}
    return chain(*(nodes or (node("w"),)), id=name, variables=[out])


async def children(host: Host, run_id: str) -> list[Run]:
    found = (await host.view(TENANT, run_id)).run.children
    return [(await host.view(TENANT, name)).run for name in found]


async def phases(host: Host, run_id: str) -> list[str]:
    return [payload_json(e)["phase"] for e in await log(host, run_id) if "phase" in payload_json(e)]


async def test_a_loop_runs_to_its_end(place: Place) -> None:
    host = place.host()
    run = await ended(host, await begun(host, worker("a"), led(hand("a"), hand("a"), DONE)))
    assert run.status is Status.COMPLETED and run.variables == {"result": "of a"}
    assert len(run.children) == 2
    await sound(host)


async def test_a_restart_in_the_middle_of_a_wave_loses_nobody(place: Place) -> None:
    host = place.host()
    slow = worker("slow", delay(60_000))
    run_id = await begun(
        host, worker("a"), slow, led(hand("slow", "a", "slow"), DONE, fanOutPolicy="parallel")
    )
    await until(
        host, run_id, lambda run: len(run.children) == 3 and "completed" in run.children.values()
    )
    await place.crash(host)
    fresh = place.host()
    await fresh.recover()
    place.clock.ahead_ms += 61_000
    fresh.timers._fire()
    run = await ended(fresh, run_id)
    assert run.status is Status.COMPLETED and len(run.children) == 3
    assert (await phases(fresh, run_id)).count("output.harvested") == 3
    await sound(fresh)


async def test_a_child_that_ended_unseen_is_harvested_after_a_restart(place: Place) -> None:
    host = place.host()
    run_id = await begun(
        host, worker("ask", node("ok", "core.approvalGate")), led(hand("ask"), DONE)
    )
    await until(host, run_id, lambda run: bool(run.children))
    [child] = await children(host, run_id)
    host.tasks.start, kept = lambda work: work.close(), host.tasks.start  # type: ignore[method-assign,assignment,func-returns-value]
    await answer(host, child.run_id, "ok", {"action": "accept"})
    host.tasks.start = kept  # type: ignore[method-assign]
    assert not (await host.view(TENANT, run_id)).run.terminal
    await place.crash(host)
    fresh = place.host()
    await fresh.recover()
    assert (await ended(fresh, run_id)).variables == {"result": "of ask"}
    await sound(fresh)


async def test_a_worker_nobody_knows_fails_the_run(place: Place) -> None:
    host = place.host()
    run_id = await begun(host, led(hand("nobody"), DONE))
    run = await ended(host, run_id)
    assert run.error is not None and run.error.code == "unknown_child_workflow"
    assert await phases(host, run_id) == ["dispatch.began", "dispatch.failed"]
    await sound(host)


async def test_a_worker_that_is_registered_later_is_found(place: Place) -> None:
    host = place.host()
    ask = {"kind": "ask-user", "prompt": "Is it there?"}
    run_id = await begun(host, led(ask, hand("late"), DONE))
    await until(host, run_id, waits)
    failed = await ended(host, await begun(host, led(hand("late"), DONE)))
    assert failed.status is Status.FAILED
    await registered(host, worker("late"))
    await answer(host, run_id, "hands", {"content": "It is."})
    assert (await ended(host, run_id)).variables == {"result": "of late"}


async def test_a_worker_that_is_only_on_disk_is_read_first(sqlite: Place) -> None:
    host = sqlite.host()
    await registered(host, worker("a"))
    ask = {"kind": "ask-user", "prompt": "Now?"}
    run_id = await begun(host, led(ask, hand("a"), DONE))
    await until(host, run_id, waits)
    fresh = await sqlite.restart(host)
    await answer(fresh, run_id, "hands", {"content": "Yes."})
    assert (await ended(fresh, run_id)).variables == {"result": "of a"}
    await sound(fresh)


async def test_a_worker_whose_node_types_are_gone_is_refused_and_nothing_hangs(
    sqlite: Place,
) -> None:
    sqlite.knows(call)
    host = sqlite.host()
    await registered(host, worker("gone", node("w", "acme.call")))
    ask = {"kind": "ask-user", "prompt": "Now?"}
    run_id = await begun(host, led(ask, hand("gone"), DONE))
    await until(host, run_id, waits)
    del sqlite.types["acme.call"]
    fresh = await sqlite.restart(host)
    await answer(fresh, run_id, "hands", {"content": "Yes."})
    run = await ended(fresh, run_id)
    assert run.error is not None and run.error.code == "unknown_child_workflow"


@pytest.mark.parametrize("policy", ["sequential", "parallel"])
async def test_a_replay_starts_no_children_and_ends_the_same(place: Place, policy: str) -> None:
    host = place.host()
    bad = chain(node("w", "core.fail"), id="bad")
    flow = led(hand("a", "bad"), hand("b"), DONE, fanOutPolicy=policy)
    source = await begun(host, worker("a"), worker("b"), bad, flow)
    assert (await ended(host, source)).status is Status.COMPLETED
    before = len(await host.store.runs())
    now = await same(host, source)
    assert len(await host.store.runs()) == before + 1
    assert now.orchestrator is not None and now.orchestrator.decisions == 3
    await from_everywhere(host, source)


async def test_a_replay_of_weak_decisions_and_questions_asks_nobody(place: Place) -> None:
    host = place.host()
    ask = {"kind": "ask-user", "prompt": "Enough?"}
    source = await begun(host, worker("a"), led(hand("a", confidence=0.3), ask, DONE))
    await until(host, source, waits)
    await answer(host, source, "hands", {"action": "accept"})
    await until(host, source, lambda run: "hands" in run.conversations)
    await answer(host, source, "hands", {"content": "Yes."})
    assert (await ended(host, source)).status is Status.COMPLETED
    await from_everywhere(host, source)


@pytest.mark.parametrize(
    "value",
    [
        {"action": "reject"},
        {"action": "edit-accept", "editedArtifactData": hand("b")},
        {"action": "edit-accept", "editedArtifactData": DONE},
    ],
)  # fmt: skip
async def test_a_replay_says_again_what_a_person_made_of_a_decision(
    place: Place, value: Any
) -> None:
    host = place.host()
    flow = led(hand("a", confidence=0.3), hand("a"), DONE)
    source = await begun(host, worker("a"), worker("b"), flow)
    await until(host, source, waits)
    await answer(host, source, "hands", value)
    assert (await ended(host, source)).status is Status.COMPLETED
    now = await same(host, source)
    assert [payload_json(e).get("iteration") for e in await log(host, now.run_id)] == [
        payload_json(e).get("iteration") for e in await log(host, source)
    ]
    await from_everywhere(host, source)


async def test_a_replay_of_a_held_decision_asks_nobody(place: Place) -> None:
    host = place.host()
    flow = led(nodes=(), fanOutPolicy="sequential")
    flow["nodes"][0]["config"] = {"mockPendingDecision": DONE, "mockConfidence": 0.2}
    source = await begun(host, flow)
    await until(host, source, waits)
    await answer(host, source, "boss", {"action": "accept"})
    assert (await ended(host, source)).status is Status.COMPLETED
    await from_everywhere(host, source)


@pytest.mark.parametrize("given", [{"iterationCap": 1}, {}])
async def test_a_replay_of_a_loop_that_went_too_far(place: Place, given: Any) -> None:
    host = place.host()
    flow = led(hand("a"), hand("a"), DONE, **given)
    options = {} if given else {"configurable": {"maxLoopIterations": 1}}
    source = await begun(host, worker("a"), flow, **options)
    run = await ended(host, source)
    assert run.error is not None and run.error.code == "loop_limit_exceeded"
    await from_everywhere(host, source)


async def test_a_replay_of_a_worker_that_was_not_there(place: Place) -> None:
    host = place.host()
    source = await begun(host, led(hand("nobody"), DONE))
    await ended(host, source)
    await from_everywhere(host, source)


async def test_a_tree_is_cancelled_at_its_root(place: Place) -> None:
    host = place.host()
    slow = worker("slow", delay(60_000))
    inner = {**led(hand("slow", "slow"), DONE, fanOutPolicy="parallel"), "id": "inner"}
    run_id = await begun(
        host, slow, inner, led(hand("inner", "slow"), DONE, fanOutPolicy="parallel")
    )
    await until(host, run_id, lambda run: len(run.children) == 2)
    first = (await children(host, run_id))[0].run_id
    await until(host, first, lambda run: len(run.children) == 2)
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis(), "enough"))
    everyone = [name for _, name in await host.store.runs()]
    assert len(everyone) == 5
    for name in everyone:
        assert (await host.view(TENANT, name)).run.status is Status.CANCELLED
    assert len(host.timers) == 0
    await sound(host)


async def test_losers_are_cancelled_with_the_join(place: Place) -> None:
    host = place.host()
    slow = worker("slow", delay(60_000))
    flow = led(
        hand("slow", "a", "slow"), DONE, fanOutPolicy="parallel", joinPolicy={"mode": "first"}
    )
    run_id = await begun(host, worker("a"), slow, flow)
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and run.variables == {"result": "of a"}
    assert sorted(each.status for each in await children(host, run_id)) == [
        "cancelled", "cancelled", "completed"
    ]  # fmt: skip
    said = payload_json((await log(host, next(iter(run.children))))[-1])
    assert (said["reason"], said["parentRunId"]) == ("not-needed", run_id)
    assert len(host.timers) == 0
    await sound(host)


async def test_a_paused_wave_goes_on_where_it_was(place: Place) -> None:
    host = place.host()
    slow = worker("slow", delay(60_000))
    run_id = await begun(host, slow, led(hand("slow"), DONE))
    await until(host, run_id, lambda run: bool(run.children))
    await host.handle(TENANT, run_id, PauseRun(host.clock.millis(), "immediate"))
    await until(host, run_id, lambda run: run.status is Status.PAUSED)
    place.clock.ahead_ms += 61_000
    host.timers._fire()
    child = (await children(host, run_id))[0].run_id
    await ended(host, child)
    await host.handle(TENANT, run_id, ResumeRun(host.clock.millis()))
    run = await ended(host, run_id)
    assert run.variables == {"result": "of slow"} and len(run.children) == 1
    await sound(host)


async def test_an_effect_of_a_loop_is_made_in_every_round(place: Place) -> None:
    place.knows(call)
    host = place.host()
    between = (edge("boss", "mid"), edge("mid", "hands"))
    flow = led(hand("a"), DONE, nodes=(node("mid", "acme.call"),), edges=between)
    flow = {**flow, "channels": {"log": {"reducer": "append"}}}
    source = await begun(host, worker("a"), flow)
    assert (await ended(host, source)).status is Status.COMPLETED, await order(host, source)
    assert calls["effect"] == 2
    await same(host, source)
    await sound(host)


async def test_a_parent_shows_that_its_worker_waits(place: Place) -> None:
    host = place.host()
    flow = await registered(
        host, worker("ask", node("ok", "core.approvalGate")), led(hand("ask"), DONE)
    )
    run_id = await another(host, flow)
    await until(host, run_id, lambda run: run.status is Status.WAITING_APPROVAL)
    [child] = await children(host, run_id)
    await answer(host, child.run_id, "ok", {"action": "accept"})
    assert (await ended(host, run_id)).status is Status.COMPLETED
    await soon(lambda: True)


# -- handoffs --------------------------------------------------------------------------------------


async def _tried(kind: str, plan: Plan, again: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(kind, Path(folder))
        await place.open()
        try:
            host, run, events = await lived(place, plan)
            children = {name: (await host.view(TENANT, name)).run for name in run.children}
            check(plan, run, events, children)
            if again:
                fork = await replay_run(host, TENANT, run.run_id, 0)
                told = await host.runs.log(await host.view(TENANT, fork.run_id))
                assert [event.type for event in told] == [event.type for event in events]
                assert fork.variables == run.variables, "merged in the recorded order"
                assert len(chains(told)) == len(chains(events))
        finally:
            await place.aclose()


@given(plans())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_plan_in_memory(plan: Plan) -> None:
    asyncio.run(_tried("memory", plan, again=True))


@given(plans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_plan_on_disk(plan: Plan) -> None:
    asyncio.run(_tried("sqlite", plan, again=False))
