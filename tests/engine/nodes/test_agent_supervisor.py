"""Supervisors that are agents: each turn one call, recorded before anything follows from it."""

from typing import Any

import pytest

from moot.config.models import ScriptLine
from moot.core.payloads.agents import (
    AgentDecided,
    AgentReasoned,
    InvocationCompleted,
    InvocationStarted,
    PromptResolved,
)
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.status import Status
from moot.engine.replay.replay import replay_run
from tests.support.engine.agents import Counted, Staff, payloads, told
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    edge,
    ended,
    log,
    node,
    soon,
    sound,
    until,
)  # fmt: skip

PERSON = Speaker("key_ada", ("user:ada",))
TURN = [
    InvocationStarted.event_type,
    PromptResolved.event_type,
    AgentReasoned.event_type,
    AgentDecided.event_type,
    InvocationCompleted.event_type,
]


def led(pin: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    """A supervisor and what carries out its decisions."""
    pinned = {} if pin is None else {"agent": pin}
    named = {} if pin is not None else {"agent": "mo"}
    boss = node("boss", "core.orchestrator.supervisor", config={**named, **config}, **pinned)
    mapping = {"inputMapping": {"topic": "topic"}, "outputMapping": {"found": "text"}}
    hands = node("hands", "core.dispatch", config=mapping)
    edges = [edge("boss", "hands"), edge("hands", "boss")]
    return definition([boss, hands], edges, id="led")


def hand(*workers: str, sure: float = 0.9) -> ScriptLine:
    decision = {"kind": "next-worker", "nextWorkerIds": list(workers)}
    return ScriptLine(json={"decision": decision, "confidence": sure})


def enough(reason: str = "all is said", sure: float = 0.9) -> ScriptLine:
    return ScriptLine(
        json={"decision": {"kind": "terminate", "reason": reason}, "confidence": sure}
    )


async def crew(place: Place, *script: ScriptLine, **more: Counted) -> Staff:
    staff = Staff(place, mo=Counted(*script), finder=Counted("Two sources."), **more)
    await staff.hires("mo", role="lead")
    await staff.hires("finder", prompt="You find sources.")
    for name in more:
        await staff.hires(name)
    return staff


async def test_agents_work_for_an_agent(place: Place) -> None:
    staff = await crew(place, hand("host:finder"), enough())
    host = staff.host()
    run_id = await begun(host, led(workers=["host:finder"]), inputs={"topic": "bees"})
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and run.variables["found"] == "Two sources."
    assert await told(host, run_id) == [*TURN, *TURN]
    kinds = [each["decision"] for each in await payloads(host, run_id, "runOrchestrator.decided")]
    assert [each["kind"] for each in kinds] == ["next-worker", "terminate"]
    [child] = run.children
    ran = (await host.view(TENANT, child)).run
    assert ran.workflow_id == "moot.ask" and ran.agent == {"agentId": "host:finder"}
    assert (await payloads(host, child, InvocationStarted.event_type))[0][
        "source"
    ] == "workflow-node"
    asked = staff.models["finder"].asked[0]
    assert '<data name="topic">\nbees\n</data>' in str(asked.messages[-1].content)
    second = staff.models["mo"].asked[1]
    assert "Worker host:finder: completed" in str(second.messages[-1].content)
    assert [message.role for message in second.messages].count("assistant") == 1
    await sound(host)


async def test_a_pin_names_the_supervisor_as_well(place: Place) -> None:
    staff = await crew(place, enough())
    host = staff.host()
    run = await ended(host, await begun(host, led({"agentId": "host:mo"})))
    assert run.status is Status.COMPLETED
    assert run.orchestrator is not None and run.orchestrator.agent_id == "host:mo"


async def test_a_replay_asks_nobody_and_ends_the_same(place: Place) -> None:
    staff = await crew(place, hand("host:finder"), enough())
    host = staff.host()
    run_id = await begun(host, led())
    then = await ended(host, run_id)
    asked = [len(model.asked) for model in staff.models.values()]
    now = await replay_run(host, TENANT, run_id, 0)
    assert (now.status, now.variables) == (then.status, then.variables)
    assert [len(model.asked) for model in staff.models.values()] == asked
    types = [event.type for event in await log(host, run_id)]
    assert [event.type for event in await log(host, now.run_id)] == types


async def test_a_worker_that_fails_is_told_and_the_others_go_on(place: Place) -> None:
    """Sequential workers: one is refused by its model, the other answers."""
    no = Counted(ScriptLine(refusal="No."))
    staff = await crew(place, hand("host:checker", "host:finder"), enough(), checker=no)
    host = staff.host()
    run_id = await begun(host, led())
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and run.variables["found"] == "Two sources."
    seen = str(staff.models["mo"].asked[1].messages[-1].content)
    assert "Worker host:checker: failed (model_refused)" in seen
    assert "Worker host:finder: completed" in seen


async def test_a_worker_nobody_knows_is_not_put_right(place: Place) -> None:
    """With a list of workers the answer is sent back once, then the node fails; without one the
    decision is recorded and cannot be carried out."""
    staff = await crew(place, hand("host:findr"))
    host = staff.host()
    run = await ended(host, await begun(host, led(workers=["host:finder"])))
    assert run.status is Status.FAILED and len(staff.models["mo"].asked) == 2
    assert run.nodes["boss"].error.code == "model_answer_invalid"
    run = await ended(host, await begun(host, led()))
    assert run.nodes["hands"].error.code == "unknown_child_workflow"


async def test_an_answer_that_is_no_decision_is_asked_for_once_more(place: Place) -> None:
    staff = await crew(
        place, ScriptLine(json={"decision": {"kind": "dance"}, "confidence": 1}), enough()
    )
    host = staff.host()
    run = await ended(host, await begun(host, led()))
    assert run.status is Status.COMPLETED and len(staff.models["mo"].asked) == 2


@pytest.mark.parametrize(("sure", "asked", "waits"), [
    (0.69, None, True), (0.7, None, False), (0.4, 0.3, True), (0.6, 0.3, False), (0.8, 0.9, True),
])  # fmt: skip
async def test_how_sure_a_supervisor_is(
    place: Place, sure: float, asked: float | None, waits: bool
) -> None:
    """Below the threshold the decision is held back; below 0.5 a recorded one is not carried out
    unseen, whatever the threshold."""
    staff = await crew(place, hand("host:finder", sure=sure), enough())
    host = staff.host()
    options = {} if asked is None else {"escalationThreshold": asked}
    run_id = await begun(host, led(), configurable=options)
    run = await until(
        host, run_id, lambda run: run.terminal or run.status is Status.WAITING_APPROVAL
    )
    assert run.terminal is not waits
    decided = await payloads(host, run_id, "runOrchestrator.decided")
    assert bool(decided) is (sure >= (asked or 0.7))


async def test_a_held_decision_is_ratified_by_a_person_after_a_restart(place: Place) -> None:
    staff = await crew(place, hand("host:finder", sure=0.2), enough())
    host = staff.host()
    run_id = await begun(host, led())
    await until(host, run_id, lambda run: run.status is Status.WAITING_APPROVAL)
    assert (await payloads(host, run_id, InvocationCompleted.event_type))[0][
        "outcome"
    ] == "escalated"
    assert await payloads(host, run_id, "runOrchestrator.decided") == []
    host = await staff.again(host)
    answer = GateAnswer(
        node_id="boss", value={"action": "accept"}, who=PERSON, at=host.clock.millis()
    )
    await host.handle(TENANT, run_id, answer)
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and run.variables["found"] == "Two sources."
    assert len(staff.models["mo"].asked) == 2
    await sound(host)


async def test_a_crash_between_the_answer_and_the_decision_asks_nobody_again(place: Place) -> None:
    staff = await crew(place, hand("host:finder"), enough())
    mo = staff.models["mo"]
    mo.gate.clear()
    host = staff.host()
    run_id = await begun(host, led())
    await soon(lambda: mo.asked)
    host = await staff.again(host)
    await soon(lambda: len(mo.asked) == 2)
    mo.gate.set()
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and await told(host, run_id) == [*TURN, *TURN]
    assert len(await payloads(host, run_id, "moot.effect.finished")) == 2
    await sound(host)


async def test_rules_come_before_the_agent(place: Place) -> None:
    rule = {
        "when": "workers.exists(w, w.status == 'failed')",
        "decision": {"kind": "escalate", "prompt": "A worker failed. Go on?"},
    }
    no = Counted(ScriptLine(refusal="No."))
    staff = await crew(place, hand("host:checker"), enough(), checker=no)
    host = staff.host()
    run_id = await begun(host, led(rules=[rule]))
    await until(host, run_id, lambda run: run.status is Status.WAITING_APPROVAL)
    answer = GateAnswer(
        node_id="hands", value={"action": "accept"}, who=PERSON, at=host.clock.millis()
    )
    await host.handle(TENANT, run_id, answer)
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and len(staff.models["mo"].asked) == 2


async def test_the_demo_model_leads_two_workers_by_itself(place: Place) -> None:
    staff = Staff(place)
    for name in ("mo", "finder", "checker"):
        await staff.hires(name)
    host = staff.host()
    run_id = await begun(host, led(workers=["finder", "checker"]), inputs={"topic": "bees"})
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and len(run.children) == 2
    assert run.variables["found"]


async def test_a_workflow_of_a_name_comes_before_an_agent(place: Place) -> None:
    staff = await crew(place, hand("finder"), enough())
    host = staff.host()
    put = node("set", "core.setVariable", config={"name": "text", "value": "a workflow"})
    run = await ended(host, await begun(host, chain(put, id="finder"), led()))
    assert run.variables["found"] == "a workflow"
