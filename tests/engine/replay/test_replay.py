"""Replay (protocol 9, multi-agent G and I.7): said again from the record, and nothing is called."""

import pytest

from moot.core.commands import CancelRun, PauseRun, ResumeRun, SetVariables
from moot.core.ids import logical_invocation_id
from moot.core.runs.start import RunLimits
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.replay.replay import replay_run
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
    sound,
    sub,
    until,
)  # fmt: skip
from tests.support.engine.replays import (
    answer,
    call,
    calls,
    council,
    flaky,
    from_everywhere,
    hang,
    put,
    quickly,
    same,
    steer,
    waits,
)
from tests.support.event_payloads import payload_json


@pytest.fixture(autouse=True)
def _nobody_called() -> None:
    calls.clear()


# -- everything that is not asked or done again ------------------------------------------------

WRITE = {"channelName": "log", "value": "w", "reducer": "append"}
RICH = chain(
    put("x", 1), quickly("call", "acme.call"), quickly("flaky", "acme.flaky"), delay(1),
    node("write", "core.channelWrite", config=WRITE),
    node("ok", "core.approvalGate", config={"title": "Ship it?"}), put("y", {"a": [1]}),
    channels={"log": {"reducer": "append"}}, variables=[{"name": "seen", "type": "number"}],
)  # fmt: skip


async def rich(host: Host) -> str:
    run_id = await begun(host, RICH)
    await until(host, run_id, waits)
    await answer(host, run_id, "ok", {"action": "accept", "comment": "Go"})
    assert (await ended(host, run_id)).status is Status.COMPLETED
    return run_id


async def test_recorded_outcomes_are_served_and_nothing_is_called(place: Place) -> None:
    place.knows(call, flaky)
    host = place.host()
    source = await rich(host)
    assert calls == {"call": 1, "effect": 1, "flaky": 3}
    await from_everywhere(host, source)
    assert calls == {"call": 1, "effect": 1, "flaky": 3}


async def test_effects_artifacts_and_inbox_of_the_source_are_untouched(place: Place) -> None:
    place.knows(call, flaky)
    host = place.host()
    source = await rich(host)
    key = logical_invocation_id(TENANT, source, "call", 1, "shop:order")
    effect, inbox = (
        await host.store.effect(TENANT, source, key),
        await host.store.inbox(TENANT, 100),
    )
    assert effect is not None and effect.run_id == source
    [artifact] = [
        payload_json(e)["artifactId"] for e in await log(host, source) if "artifact" in e.type
    ]
    kept = await host.store.artifact(TENANT, source, artifact)
    now = await same(host, source)
    assert await host.store.effect(TENANT, source, key) == effect
    assert await host.store.inbox(TENANT, 100) == inbox
    assert await host.store.artifact(TENANT, source, artifact) == kept
    assert await host.store.artifact(TENANT, now.run_id, artifact) is None


async def test_a_replay_of_a_replay_is_the_same_again(place: Place) -> None:
    place.knows(call, flaky)
    host = place.host()
    once = await same(host, await rich(host))
    twice = await same(host, once.run_id)
    assert twice.forked_from is not None
    assert twice.forked_from.source_run_id == once.run_id


async def test_a_replay_is_still_one_after_a_restart_and_a_rebuild(sqlite: Place) -> None:
    sqlite.knows(call, flaky)
    host = sqlite.host()
    now = await same(host, await rich(host))
    fresh = await sqlite.restart(host)
    again = (await fresh.view(TENANT, now.run_id)).run
    assert again == now and again.replayed
    await sound(fresh)


async def test_answers_of_every_kind_are_given_again_as_recorded(place: Place) -> None:
    host = place.host()
    quorum = {"title": "?", "requiredApprovals": 2, "rejectionPolicy": "majority"}
    event = {"kind": "external-event", "data": {"eventType": "paid", "correlation": {"id": 1}}}
    questions = {"questions": [{"id": "q", "question": "When?"}]}
    source = await begun(host, chain(
        node("ok", "core.approvalGate", config=quorum),
        node("what", "core.clarificationGate", config=questions),
        node("paid", "core.interrupt", config=event),
        node("late", "core.interrupt", config={"timeoutMs": 1, "onTimeout": "complete"}),
    ))  # fmt: skip
    await answer(host, source, "ok", {"action": "accept", "voter": "ann"})
    await answer(host, source, "ok", {"action": "accept", "voter": "ben"})
    await answer(host, source, "what", {"answers": {"q": "June"}})
    await answer(host, source, "paid", {"id": 1, "sum": 3})
    await ended(host, source)
    await from_everywhere(host, source)


async def test_a_council_says_every_turn_again_in_its_own_name(place: Place) -> None:
    host = place.host()
    channels = {"conversation": {"reducer": "message"}}
    source = await begun(host, chain(council(), put("x", 1), channels=channels))
    await until(host, source, waits)
    for number, name in enumerate(("host:ada", "host:bo", "host:ada")):
        said = {"role": "agent", "speakerId": name, "content": number, "to": "user"}
        await answer(host, source, "talk", said)
        await steer(host, source, "talk", prod=["host:bo"], mute={"targets": ["x"], "seconds": 9})
    decision = {"text": "June", "votes": {"host:ada": "yes"}, "citedTurns": [1]}
    await answer(host, source, "talk", {"operation": "close", "decision": decision})
    await ended(host, source)
    now = await same(host, source)
    turns = [
        payload_json(e) for e in await log(host, now.run_id) if e.type == "conversation.exchanged"
    ]
    assert [turn["turn"]["speakerId"] for turn in turns] == ["host:ada", "host:bo", "host:ada"]
    assert {turn["conversationId"] for turn in turns} == {f"{source}:talk:1"}
    assert turns[0]["turn"]["messageId"] == f"{source}:talk:1:1:agent"
    assert now.conversations["talk"].state.prodded == ["host:bo"]
    await from_everywhere(host, source)


async def test_children_are_not_started_again(place: Place) -> None:
    place.knows(call)
    host = place.host()
    child = chain(
        quickly("call", "acme.call"), put("x", 7), id="kid", channels={"log": {"reducer": "append"}}
    )
    each = {"workflowId": "kid", "items": [1, 2, 3], "outputMapping": {"y": "x"}}
    top = chain(sub("kid"), node("each", "moot.forEach", config=each), id="top")
    source = await begun(host, child, top)
    assert (await ended(host, source)).status is Status.COMPLETED
    runs = len(await host.store.runs())
    now = await same(host, source)
    assert len(await host.store.runs()) == runs + 1
    assert now.children == (await host.view(TENANT, source)).run.children
    assert calls["call"] == 4
    await from_everywhere(host, source)


async def test_the_replay_of_a_child_is_nobodys_child(place: Place) -> None:
    host = place.host()
    ask = chain(node("ok", "core.approvalGate"), id="kid")
    parent = await begun(host, ask, chain(sub("kid"), id="top"))
    await until(host, parent, lambda run: bool(run.mirrored))
    [kid] = (await host.view(TENANT, parent)).run.children
    now = await same(host, kid)
    row = await host.store.find_run(TENANT, now.run_id)
    assert row is not None and row.parent_run is None
    await host.handle(TENANT, now.run_id, CancelRun(host.clock.millis()))
    assert (await host.view(TENANT, parent)).run.status is Status.WAITING_APPROVAL
    await answer(host, kid, "ok", {"action": "accept"})
    assert (await ended(host, parent)).status is Status.COMPLETED


async def test_a_replay_holds_no_place_that_only_one_may_have(place: Place) -> None:
    host = place.host()
    source = await begun(host, chain(node("ok", "core.approvalGate")), scope_id="the-one")
    await same(host, source)
    assert await host.store.active_run(TENANT, "the-one") == source
    await answer(host, source, "ok", {"action": "accept"})
    await ended(host, source)
    assert await host.store.active_run(TENANT, "the-one") is None


# -- order: what happened at once is said at once ----------------------------------------------


async def test_a_question_beside_a_pure_node_is_no_difference(place: Place) -> None:
    host = place.host()
    source = await begun(host, definition([node("a", "core.approvalGate"), node("b"), node("c")]))
    await answer(host, source, "a", {"action": "accept"})
    await ended(host, source)
    await from_everywhere(host, source)


async def test_timers_that_fell_due_together_are_no_difference(place: Place) -> None:
    host = place.host()
    edges = [edge("wait", "a"), edge("other", "b")]
    source = await begun(
        host, definition([delay(5), delay(5, "other"), node("a"), node("b")], edges)
    )
    await ended(host, source)
    await from_everywhere(host, source)


async def test_a_run_that_hit_a_limit_is_the_same_again(place: Place) -> None:
    place.knows(flaky, hang)
    host = place.host(limits=RunLimits(node_executions=3))
    slow = [delay(60_000), node("a"), node("b"), node("c")]
    source = await begun(host, definition(slow))
    assert (await ended(host, source)).error is not None
    await from_everywhere(host, source)
    again = definition([quickly("f", "acme.flaky"), delay(60_000)], id="again")
    source = await begun(host, again)
    found = await ended(host, source)
    assert found.error is not None and found.error.code == "recursion_limit_exceeded"
    await from_everywhere(host, source)
    timed = definition([delay(60_000), node("h", "acme.hang")], id="t", settings={"timeout": 20})
    source = await begun(host, timed)
    found = await ended(host, source)
    assert found.error is not None and found.error.code == "run_timeout"
    await from_everywhere(host, source)


async def test_what_operators_did_is_not_said_again_and_makes_no_difference(place: Place) -> None:
    place.knows(hang)
    host = place.host()
    source = await begun(host, chain(delay(60_000), put("x", 1)))
    await host.handle(TENANT, source, PauseRun(host.clock.millis(), "immediate"))
    await host.handle(TENANT, source, ResumeRun(host.clock.millis()))
    await host.handle(TENANT, source, SetVariables({"v": 1}, host.clock.millis()))
    place.clock.ahead_ms += 60_000
    host.timers.look()
    await ended(host, source)
    whole = await order(host, source)
    for from_seq in range(len(whole) + 1):
        now = await replay_run(host, TENANT, source, from_seq)
        told = await order(host, now.run_id)
        assert told[:from_seq] == whole[:from_seq]
        assert [t for t in told if "run.pa" not in t and "run.re" not in t] == [
            t for t in whole if "run.pa" not in t and "run.re" not in t
        ]
        assert now.status is Status.COMPLETED and now.variables == {"v": 1, "x": 1}
    await sound(host)


async def test_time_to_live_counts_from_the_time_it_was(place: Place) -> None:
    host = place.host()
    write = {"channelName": "log", "value": "w", "reducer": "append", "ttlMs": 60_000}
    nodes = [node(name, "core.channelWrite", config=write) for name in ("a", "b")]
    source = await begun(
        host, chain(*nodes, channels={"log": {"reducer": "append", "ttlMs": 60_000}})
    )
    found = await ended(host, source)
    assert len(found.channels["log"]) == 2
    place.clock.ahead_ms += 3_600_000
    await from_everywhere(host, source)


async def test_a_replay_from_the_same_flow_of_another_run_is_its_own(place: Place) -> None:
    host = place.host()
    flow = await registered(host, chain(put("x", 1)))
    first, second = await another(host, flow), await another(host, flow, inputs={"z": 2})
    assert (await same(host, first)).variables == {"x": 1}
    assert (await same(host, second)).variables == {"x": 1, "z": 2}
