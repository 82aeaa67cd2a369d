"""The bench: real runs and councils in the test's own process, with a clock that it moves."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from moot import ApiError, NodeContext, node
from moot.testing import Bench, BenchError, Stuck, VirtualClock, asked, handed_over, happened, said
from tests.support.event_payloads import payload_json
from tests.support.servers import ROOT

FLOWS = ROOT / "examples" / "flows"
NAP = "workflow: nap\nsteps: [{id: nap, delay: 20h}, {set: {a: 1}}]\n"
ASK = """\
workflow: ask
steps:
  - id: ok
    approve: Shall we?
    timeout: 24h
"""


def brief() -> Bench:
    return Bench.load(FLOWS / "research-brief.yaml")


def test_a_worker_that_fails_is_brought_before_a_person() -> None:
    bench = brief().demo("checker", fail="timeout")
    run = bench.run(topic="x")
    assert run.status == "waiting-approval"
    assert run.handoff("checker").states == ["pending", "dispatching", "running", "failed"]
    assert run.resolve("reject").replay().identical


def test_handoffs_questions_and_events_can_be_looked_at() -> None:
    run = brief().demo("checker", fail="refusal", times=1).run(topic="bees")
    handed_over(run, "finder", "pending", "dispatching", "running", "completed", "harvested")
    assert run.handoff("finder").harvested == ["sources"]
    error = run.handoff("checker").error
    assert error is not None and error["code"] == "model_refused"
    asked(run, "A worker failed")
    happened(run, "run.started", "runOrchestrator.decided", "interrupt.requested")
    assert {child.status for child in run.children} == {"completed", "failed"}
    with pytest.raises(AssertionError, match=r"finder went pending → .* not pending → failed"):
        handed_over(run, "finder", "pending", "failed")
    with pytest.raises(AssertionError, match="Nothing was handed to 'zoe'"):
        run.handoff("zoe")
    with pytest.raises(AssertionError, match="does not ask 'Why'"):
        asked(run, "Why")
    with pytest.raises(AssertionError, match="did not happen"):
        happened(run, "run.completed")
    with pytest.raises(AssertionError, match=r"has no event run\.failed"):
        run.event("run.failed")
    with pytest.raises(AssertionError, match="has no node 'zoe'"):
        run.node("zoe")


def test_agents_say_what_a_script_says() -> None:
    bench = brief().script("finder", ["Bees live on roofs."]).script("ada", ["All is well."])
    run = bench.run(topic="bees")
    assert run.outputs["sources"] == "Bees live on roofs."
    assert run.outputs["summary"] == "All is well."
    assert run.verify().identical
    assert bench.ask("finder", "And wasps?").variables["text"] == "Bees live on roofs."


def test_a_run_is_forked_with_another_answer_and_compared() -> None:
    run = Bench.load(FLOWS / "release.yaml").run(product="X").answer("everybody").approve()
    assert run.outputs == {"result": "sent to everybody"}
    at = run.event("interrupt.resolved", "ok").seq
    other = run.fork(at, note="no", answer={"action": "reject"})
    assert other.outputs == {"result": "kept back"}
    assert run.diff(other).diverged_at_seq == at
    assert run.node("audience").status == "completed"


def test_time_passes_only_when_it_is_told_to_and_then_at_once() -> None:
    bench = Bench().flow(NAP).flow(ASK)
    began = time.monotonic()
    assert bench.run().status == "completed"
    waiting = bench.run("ask")
    bench.advance(hours=23)
    assert waiting.status == "waiting-approval"
    bench.advance(hours=2)
    assert waiting.status == "failed"
    assert waiting.error.code == "interrupt_timeout"
    assert time.monotonic() - began < 60
    with pytest.raises(ValueError, match="forward"):
        bench.clock.forward(-1)


def test_two_benches_tell_the_same_story_and_another_seed_another_one() -> None:
    def story(seed: str = "") -> list[Any]:
        bench = Bench(seed=seed).agent("ada", role="skeptic").agent("bo", role="builder")
        thread = bench.convene("Do we move?", "ada", "bo")
        return [(event.id, event.type, payload_json(event)) for event in thread.events]

    assert story() == story()
    assert story()[0][0] != story("other")[0][0]


def test_a_council_is_spoken_steered_and_closed() -> None:
    with Bench() as bench:
        for name, role in (("ada", "skeptic"), ("bo", "builder"), ("mo", "moderator")):
            bench.agent(name, f"You are {name}.", role=role)
        bench.script("ada", ["Not yet, @bo."]).demo("bo", fail="error", times=1)
        thread = bench.convene("Do we move?", "ada", "bo", moderator="mo")
        said(thread, "ada", "Not yet")
        assert thread.speakers[:3] == ["user", "ada", "system"]
        assert thread.speakers[-1] == "mo" and thread.floor["phase"] == "over"
        assert len(thread.said_by("bo")) == 1
        thread.control(mute=["host:bo"])
        thread.say("@ada and now?", to="ada")
        assert thread.speakers[-1] == "ada"
        thread.close("We wait")
        assert not thread.open and "We wait" in thread.minutes()
        assert thread.run.replay().identical
        with pytest.raises(AssertionError, match="bo never said 'Goodbye'"):
            said(thread, "bo", "Goodbye")


def test_who_is_not_of_this_host_is_waited_for_and_passed_over_in_time() -> None:
    with Bench() as bench:
        bench.agent("ada", role="skeptic")
        bench.client.keys.create("rex", speaks_as=["host:rex"])
        thread = bench.convene("Well?", "ada", "rex", policy={"rounds": 1})
        assert thread.speakers == ["user", "ada"]
        thread.say("I am from outside.", speaker="rex")
        assert thread.speakers == ["user", "ada", "rex"] and thread.floor["phase"] == "over"


@node("acme.slow", retries=2)
async def slow(ctx: NodeContext) -> dict[str, Any]:
    await asyncio.sleep(0.01)
    if ctx.attempt < 3:
        raise RuntimeError("not yet")
    return {"attempt": ctx.attempt}


def test_nodes_of_the_test_are_tried_again_without_waiting() -> None:
    bench = Bench().nodes(slow).flow("workflow: w\nsteps: [{id: s, node: acme.slow}]\n")
    run = bench.run()
    assert run.node("s").outputs == {"attempt": 3}
    with pytest.raises(BenchError, match="before the first run"):
        bench.nodes(slow)
    with pytest.raises(BenchError, match="mark it with @node"):
        Bench().nodes(test_nodes_of_the_test_are_tried_again_without_waiting)


def test_a_run_is_cancelled_and_asks_no_more() -> None:
    run = Bench().flow(ASK).run()
    assert run.cancel("enough").status == "cancelled"
    with pytest.raises(AssertionError, match="has 0 such questions"):
        run.approve()


def test_the_whole_api_is_there_and_streams_too() -> None:
    with Bench() as bench:
        bench.flow(ASK)
        started = bench.client.runs.start("ask")
        events = started.events(timeout=20)
        seen = [next(events)]
        bench.settle(started.id)
        bench.client.inbox.approve(bench.client.inbox.list().items[0])
        seen += list(events)
        assert [event.seq for event in seen] == list(range(len(seen)))
        assert seen[-1].type == "run.completed"
        endless = bench.client.runs.start("ask").events()
        next(endless)
        endless.close()
        with pytest.raises(ApiError):
            bench.client.runs.get("run_none")


def test_a_database_is_kept_over_a_restart(tmp_path: Path) -> None:
    with Bench(database=tmp_path / "moot.db").flow(ASK) as bench:
        run = bench.run()
        bench.restart()
        assert run.id in {row.run_id for row in bench.client.runs.list(status="waiting")}
    with pytest.raises(BenchError, match="with a database"):
        Bench().restart()


def test_mistakes_are_named_where_they_are(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="Name a workflow file"):
        Bench.load()
    with pytest.raises(BenchError, match="no workflow on this bench"):
        Bench().run()
    (tmp_path / "flow.yaml").write_text("workflow: x\nsteps: [{sett: 1}]\n")
    with pytest.raises(ValueError, match=r"flow\.yaml:2"):
        Bench.load(tmp_path / "flow.yaml")
    (tmp_path / "flow.yaml").write_text(NAP)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "ada.md").write_text("---\nroll: x\n---\n")
    with pytest.raises(BenchError, match=r"agents/ada\.md:2: 'roll'"):
        Bench.load(tmp_path / "flow.yaml").run()
    with pytest.raises(ApiError, match="no workflow"):
        Bench().flow(NAP).run("nop")
    with pytest.raises(Exception, match="no agent 'zoe'"):
        Bench().flow(NAP).script("zoe", ["Hello"]).run()


def test_what_never_comes_to_rest_is_said_to_be_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    @node("acme.hang")
    async def hang(ctx: NodeContext) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("moot.testing.bench_host.TIMEOUT_S", 0.2)
    bench = Bench().nodes(hang).flow("workflow: w\nsteps: [{id: s, node: acme.hang}]\n")
    with pytest.raises(Stuck, match=r"still running after 0\.2 s"):
        bench.run()


def test_the_clock_draws_the_same_ids_every_time() -> None:
    first, second = VirtualClock("a"), VirtualClock("a")
    drawn = [first.new_id("run_") for _ in range(3)]
    assert drawn == [second.new_id("run_") for _ in range(3)]
    assert len(set(drawn)) == 3 and all(len(name) == 24 for name in drawn)
    assert first.micros() < first.micros()
    assert first.new_secret("hk_") != first.new_secret("hk_")
