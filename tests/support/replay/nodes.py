"""Scenes of nodes at work: branches, channels, children, pauses, effects, limits."""

import asyncio

from moot.core.commands import CancelRun, PauseRun, ResumeRun
from tests.support.replay.story import TENANT, Story, chain, edge, node, port, workflow, write


async def branches(story: Story) -> None:
    """A retry, an error branch, a skip, a disabled node, a join."""
    nodes = [
        node("start", "core.start"),
        node("flaky", "acme.flaky", settings={"maxRetries": 2, "retryDelayMs": 100}),
        node("boom", "core.fail", config={"code": "boom"}),
        node("never"),
        node("rescue", "core.identity", inputs={"who": port("who")}),
        node("off", disabled=True),
        node("join", "core.merge"),
    ]
    edges = [
        edge("start", "flaky"), edge("start", "boom"), edge("boom", "never"),
        edge("boom", "rescue", "any_failed"), edge("start", "off"), edge("flaky", "join"),
        edge("rescue", "join"), edge("off", "join"),
    ]  # fmt: skip
    run_id = await story.begin(
        workflow("branches", nodes, edges), inputs={"who": "Ada"}, tags=["golden"],
        metadata={"why": "replay"}, configurable={"recursionLimit": 50}, scope_id="scope-1",
    )  # fmt: skip
    await story.wait(run_id, 60)


async def channels(story: Story) -> None:
    """Every reducer, with time to live, bounds and a declared default."""
    vote = {"userId": "ada", "action": "yes", "timestamp": "t"}
    message = {"messageId": "m1", "role": "user", "content": "hello"}
    declared = {
        "tally": {"reducer": "counter", "default": 10},
        "minutes": {"reducer": "append", "maxSize": 2},
        "talk": {"reducer": "message"},
        "hush": {"reducer": "append", "sensitive": True},
    }
    nodes = [
        write("c1", "tally", "counter", 5), write("c2", "tally", "counter", -2.5),
        write("a1", "minutes", "append", "one"), write("a2", "minutes", "append", ["two"]),
        write("a3", "minutes", "append", None), write("r1", "topic", "replace", ["seed"]),
        write("r2", "topic", "append", "more"), write("m1", "facts", "merge", {"a": 1, "b": 1}),
        write("m2", "facts", "merge", {"b": {"c": 2}}), write("v1", "poll", "votes", vote),
        write("v2", "poll", "votes", {**vote, "action": "no"}),
        write("f1", "words", "feedback", {"feedback": "good", "iteration": 1}),
        write("t1", "talk", "message", message), write("t2", "talk", "message", message),
        write("h1", "hush", "append", "a secret nobody reads"),
        write("x1", "fresh", "append", "old", ttlMs=200),
        node("wait", "core.delay", config={"ms": 300}),
        write("x2", "fresh", "append", "new", ttlMs=200),
    ]  # fmt: skip
    await story.wait(await story.begin(chain("channels", *nodes, channels=declared)), 150)


async def families(story: Story) -> None:
    """A child that completes, one that fails and is absorbed, one for each of two items."""
    kid = chain(
        "kid", node("set", "core.setVariable", config={"name": "answer", "value": 42}),
        variables=[{"name": "answer", "type": "number"},
                   {"name": "given", "type": "object", "defaultValue": "default"}],
    )  # fmt: skip
    broken = chain("broken", node("boom", "core.fail"))
    mapping = {"inputMapping": {"given": "mine"}, "outputMapping": {"got": "answer"}}
    nodes = [
        node("sub", "core.subWorkflow", config={"workflowId": "kid", **mapping}),
        node("soft", "core.subWorkflow", config={
            "workflowId": "broken", "onChildFailure": "absorb"}),
        node("each", "moot.forEach", config={"workflowId": "kid", "items": ["a", "b"]}),
    ]  # fmt: skip
    await story.wait(await story.begin(kid, broken, chain("parent", *nodes)))


async def pauses(story: Story) -> None:
    """An immediate pause, a resume, a draining pause, a resume, a cancel."""
    nodes = [
        node("nap", "core.delay", config={"ms": 1000}),
        node("long", "core.delay", config={"ms": 90_000}),
    ]
    run_id = await story.begin(chain("pauses", *nodes))
    handle, now = story.host.handle, story.now
    await handle(TENANT, run_id, PauseRun(now(), "immediate", "lunch", "key_story"))
    story.clock.pass_time(60_000)
    await handle(TENANT, run_id, ResumeRun(now(), "back", "key_story"))
    await handle(TENANT, run_id, PauseRun(now(), "drain-current-node"))
    story.clock.pass_time(1_000)
    story.host.timers._fire()
    await asyncio.sleep(0.01)
    await handle(TENANT, run_id, ResumeRun(now()))
    await handle(TENANT, run_id, CancelRun(now(), "enough", "key_story"))


async def effects(story: Story) -> None:
    """An effect, log lines, streamed output, an artifact, a sensitive variable."""
    nodes = [
        node("pay", "acme.busy", inputs={"key": port("secret")}),
        node("art", "conformance.artifact.emit", config={"artifactType": "note", "data": {"n": 1}}),
        node("copy", "core.identity", inputs={"copied": port("secret")}),
    ]
    secret = [{"name": "secret", "type": "string", "sensitive": True}]
    run_id = await story.begin(
        chain("effects", *nodes, variables=secret), inputs={"secret": "correct horse battery"}
    )
    await story.wait(run_id)


async def caps(story: Story) -> None:
    """More nodes than the run may start."""
    body = chain("caps", *(node(f"n{n}") for n in range(6)))
    await story.wait(await story.begin(body, configurable={"recursionLimit": 3}))


async def late(story: Story) -> None:
    """A run that is out of time while it waits, and stopped in the middle."""
    body = chain("late", node("nap", "core.delay", config={"ms": 60_000}))
    await story.wait(await story.begin(body, configurable={"runTimeoutMs": 2000}), 500)


async def given_up(story: Story) -> None:
    """A node fails as often as it may be tried."""
    again = {"maxRetries": 1, "retryDelayMs": 10}
    config = {"code": "c", "message": "m", "retryable": True}
    body = chain("given-up", node("bad", "core.fail", config=config, settings=again))
    await story.wait(await story.begin(body), 100)


async def memories(story: Story) -> None:
    """A worker remembers and deletes, in a memory of its own and in a shared one; the node beside
    the supervisor is reminded of it a turn later."""
    shared = {"agentSharing": "shared:team"}
    worker = chain("worker", node("keep", "acme.mind"), node("share", "acme.mind", config=shared))
    plan = [{"kind": "next-worker", "nextWorkerIds": ["worker"]}]
    nodes = [
        node("boss", "core.orchestrator.supervisor", config={"plan": plan}),
        node("look", "acme.mind", config=shared),
        node("hands", "core.dispatch", config={"memoryScopeIsolation": "isolated"}),
    ]
    edges = [edge("boss", "look"), edge("look", "hands"), edge("hands", "boss")]
    run_id = await story.begin(worker, workflow("memories", nodes, edges), scope_id="desk")
    await story.wait(run_id)
