"""A supervisor and its dispatch node: handoffs, weak and held decisions (protocol B, C, D)."""

from typing import Any

import pytest

from moot.core.errors import BadRequest
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from tests.support.core.simulator import ADA, Life, World, compiled, definition, edge, node
from tests.support.core.supervisors import (
    DONE,
    ask,
    cause,
    check_chains,
    end,
    fast,
    hand,
    kids,
    phases,
    planned,
    settle,
    told,
    variable,
    worker,
    world,
)  # fmt: skip
from tests.support.event_payloads import payload_json

RESULT = variable("result", "before")
OUT = {"result": "out"}


def errors(life: Life) -> str:
    assert life.run.error is not None
    return str(life.run.error.code)


# -- the sequences of the digest -----------------------------------------------------------------


def test_one_worker_completes_and_is_harvested() -> None:
    place = world(fast("a", variable("out", "done")))
    life = place.start(
        planned(hand("a"), DONE, dispatch={"outputMapping": OUT}, variables=[RESULT])
    )
    settle(place)
    assert told(life) == [
        "run.started", "node.started sup", "decided next-worker", "node.completed sup",
        "node.started dis", "dispatch.began a", "node.dispatched dis", "dispatch.succeeded a",
        "child.completed a", "variable.changed dis", "output.harvested a", "node.completed dis",
        "node.started sup", "decided terminate", "node.completed sup", "node.started dis",
        "node.completed dis", "run.completed",
    ]  # fmt: skip
    causes = {n: cause(life, life.log[n]) for n in (5, 6, 7, 8, 10, 17)}
    assert causes == {5: 2, 6: 2, 7: 5, 8: 7, 10: 8, 17: 13}
    child = kids(place, life)[0].run.run_id
    assert payload_json(life.log[10])["harvestedKeys"] == ["result"]
    assert payload_json(life.log[11])["outputs"] == {
        "childRunId": child,
        "childStatus": "completed",
    }
    assert [payload_json(e)["iteration"] for e in life.told("runOrchestrator.decided")] == [1, 2]
    assert {e.node_id for e in life.told("runOrchestrator.decided")} == {"sup"}
    assert life.run.variables == {"result": "done"}
    assert life.run.outputs == {"reason": "goal-reached"}
    check_chains(life)


def test_a_worker_that_is_not_there_fails_the_run() -> None:
    place = world()
    life = place.start(planned(hand("nobody"), DONE))
    assert told(life)[4:] == [
        "node.started dis", "dispatch.began nobody", "dispatch.failed nobody", "node.failed dis",
        "run.failed",
    ]  # fmt: skip
    assert (cause(life, life.log[5]), cause(life, life.log[6])) == (2, 5)
    assert payload_json(life.log[6])["error"]["code"] == errors(life) == "unknown_child_workflow"
    assert not any("childRunId" in payload_json(event) for event in life.log)


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_worker_that_does_not_complete_gives_nothing_and_the_supervisor_goes_on(how: str) -> None:
    place = world(worker("a", variable("out", "done")))
    life = place.start(
        planned(hand("a"), DONE, dispatch={"outputMapping": OUT}, variables=[RESULT])
    )
    end(place, place.child_of(life), how)
    assert phases(life) == ["dispatch.began a", "dispatch.succeeded a", f"child.{how} a"]
    assert set(payload_json(life.log[8])["error"]) >= {"code", "message"}
    assert life.run.nodes["dis"].status == "completed"
    assert payload_json(life.log[9])["outputs"]["childStatus"] == how
    assert life.run.variables == {"result": "before"}
    assert life.run.status is Status.COMPLETED
    check_chains(life)


def test_nothing_is_harvested_where_nothing_is_mapped() -> None:
    place = world(fast("a", variable("out", "done")))
    life = place.start(planned(hand("a"), DONE, variables=[RESULT]))
    settle(place)
    assert phases(life) == ["dispatch.began a", "dispatch.succeeded a", "child.completed a"]
    assert life.run.variables == {"result": "before"} and life.run.status is Status.COMPLETED


def test_two_workers_one_after_the_other_hand_over_what_they_know() -> None:
    config = {
        "perWorkerOutputMappings": {"a": {"shared": "output"}},
        "perWorkerInputMappings": {"b": {"input": "shared"}},
    }
    place = world(fast("a", variable("output", "hello")), fast("b", variable("input", "none")))
    life = place.start(
        planned(hand("a", "b"), DONE, dispatch=config, variables=[variable("shared", "")])
    )
    settle(place)
    assert phases(life) == [
        "dispatch.began a", "dispatch.succeeded a", "child.completed a", "output.harvested a",
        "dispatch.began b", "dispatch.succeeded b", "child.completed b",
    ]  # fmt: skip
    a, b = kids(place, life)
    assert a.run.variables == {"output": "hello"} and b.run.variables == {"input": "hello"}
    done = payload_json(life.told("node.completed")[1])["outputs"]
    assert done == {"childRunId": b.run.run_id, "childStatus": "completed"}
    check_chains(life)


def test_a_wave_comes_together_in_the_order_its_children_ended() -> None:
    config = {"fanOutPolicy": "parallel", "outputMapping": OUT}
    place = world(worker("a", variable("out", "of a")), worker("b", variable("out", "of b")))
    life = place.start(planned(hand("a", "b"), DONE, dispatch=config, variables=[RESULT]))
    a, b = kids(place, life)
    end(place, b)
    assert life.run.variables == {"result": "before"}, "mapped after the join, not before"
    end(place, a)
    assert told(life)[5:20] == [
        "core.dispatch.fanOut dis", "dispatch.began a", "node.dispatched dis",
        "dispatch.succeeded a", "dispatch.began b", "node.dispatched dis", "dispatch.succeeded b",
        "child.completed b", "child.completed a", "core.dispatch.join dis",
        "variable.changed dis", "output.harvested b", "variable.changed dis", "output.harvested a",
        "node.completed dis",
    ]  # fmt: skip
    assert cause(life, life.log[5]) == cause(life, life.log[14]) == 2
    assert payload_json(life.log[5]) == {
        "fanOutPolicy": "parallel", "childCount": 2, "joinMode": "wait-all"
    }  # fmt: skip
    assert (cause(life, life.log[16]), cause(life, life.log[18])) == (12, 13)
    names = [b.run.run_id, a.run.run_id]
    assert payload_json(life.log[14]) == {
        "joinOutcome": "satisfied", "completedCount": 2, "failedCount": 0, "cancelledCount": 0,
        "mergeOrder": names,
    }  # fmt: skip
    assert [
        each["childRunId"] for each in payload_json(life.log[19])["outputs"]["children"]
    ] == names
    assert life.run.variables == {"result": "of a"}, "the last to end has the last word"
    check_chains(life)


@pytest.mark.parametrize("decision", [hand("a", confidence=0.3), {**DONE, "confidence": 0.49}])
def test_a_weak_decision_waits_for_a_person(decision: dict[str, Any]) -> None:
    place = world(fast("a"))
    life = place.start(planned(decision, DONE))
    assert told(life)[4:] == [
        "node.started dis", "core.workflowChain.confidence-escalated dis",
        "interrupt.requested dis", "node.suspended dis", "approval.requested dis",
    ]  # fmt: skip
    said = life.log[5]
    assert cause(life, said) == 2 and life.run.status is Status.WAITING_APPROVAL
    assert payload_json(said) == {
        "confidence": decision["confidence"], "floor": 0.5, "escalationKind": "escalate",
        "parentRunId": life.run.run_id, "originalDecision": decision,
        **({"workerId": "a"} if "nextWorkerIds" in decision else {}),
    }  # fmt: skip
    assert phases(life) == []


def test_a_decision_at_the_floor_is_carried_out() -> None:
    place = world(fast("a"))
    life = place.start(planned(hand("a", confidence=0.5), DONE))
    settle(place)
    assert life.run.status is Status.COMPLETED


# -- weak decisions, answered --------------------------------------------------------------------


def test_an_accepted_weak_decision_is_carried_out() -> None:
    place = world(fast("a"))
    life = place.start(planned(hand("a", confidence=0.3), DONE))
    place.answer(life, "dis", {"action": "accept"})
    settle(place)
    assert life.run.status is Status.COMPLETED and "child.completed a" in phases(life)
    assert len(life.told("core.workflowChain.confidence-escalated")) == 1
    check_chains(life)


def test_an_accepted_weak_end_is_the_end() -> None:
    place = world()
    life = place.start(planned({**DONE, "confidence": 0.1}))
    place.answer(life, "dis", {"action": "accept"})
    assert life.run.status is Status.COMPLETED and life.run.orchestrator.decisions == 1


@pytest.mark.parametrize("weak", [hand("a", confidence=0.3), {**DONE, "confidence": 0.3}])
def test_a_rejected_weak_decision_gives_the_turn_back(weak: dict[str, Any]) -> None:
    place = world(fast("a"), fast("b"))
    life = place.start(planned(weak, hand("b"), DONE))
    place.answer(life, "dis", {"action": "reject"})
    settle(place)
    assert [p.split()[1] for p in phases(life)] == ["b"] * 3
    assert life.run.status is Status.COMPLETED
    assert [payload_json(e)["iteration"] for e in life.told("runOrchestrator.decided")] == [1, 1, 2]


@pytest.mark.parametrize("edited", [hand("b"), hand("b", confidence=0.2), ask(), DONE])
def test_an_edited_weak_decision_is_a_new_one_of_the_same_supervisor(
    edited: dict[str, Any],
) -> None:
    place = world(fast("a"), fast("b"))
    life = place.start(planned(hand("a", confidence=0.3), DONE))
    value = {"action": "edit-accept", "editedArtifactData": edited}
    place.answer(life, "dis", value)
    first, second = life.told("runOrchestrator.decided")[:2]
    assert (
        second.node_id == "sup"
        and payload_json(second)["agentId"] == payload_json(first)["agentId"]
    )
    assert payload_json(second)["decision"]["kind"] == edited["kind"]
    settle(place)
    if edited["kind"] == "ask-user":
        assert life.run.status is Status.WAITING_INPUT or life.run.interrupts
        place.answer(life, "dis", {"content": "blue"}, ADA)
    else:
        assert not life.run.interrupts
    assert life.run.status is Status.COMPLETED
    assert all(p.split()[1] == "b" for p in phases(life))
    check_chains(life)


def test_a_weak_decision_for_nobody_is_escalated_first_and_refused_later() -> None:
    place = world()
    life = place.start(planned(hand("nobody", confidence=0.3)))
    assert phases(life) == [] and life.run.status is Status.WAITING_APPROVAL
    place.answer(life, "dis", {"action": "accept"})
    assert phases(life) == ["dispatch.began nobody", "dispatch.failed nobody"]


# -- held decisions (CP-1) -----------------------------------------------------------------------


def held(
    confidence: Any = 0.5, decision: dict[str, Any] = DONE, **given: Any
) -> tuple[World, Life]:
    supervisor = {"mockPendingDecision": decision, "mockConfidence": confidence}
    place = world(fast("a"), fast("b"))
    return place, place.start(planned(supervisor=supervisor), **given)


def test_an_unsure_supervisor_is_held_and_its_decision_is_none_yet() -> None:
    place, life = held()
    [waits] = life.told("node.suspended")
    said = payload_json(waits)
    assert {key: said[key] for key in ("reason", "threshold", "observed", "agentId")} == {
        "reason": "low-confidence", "threshold": 0.7, "observed": 0.5, "agentId": "supervisor-sup"
    }  # fmt: skip
    assert life.run.status is Status.WAITING_APPROVAL and life.run.orchestrator is None
    place.answer(life, "sup", {"action": "accept"})
    [said] = life.told("runOrchestrator.decided")
    assert payload_json(said) == {"agentId": "supervisor-sup", "decision": DONE, "iteration": 1}
    assert life.run.status is Status.COMPLETED


def test_a_held_decision_may_be_edited() -> None:
    place, life = held(decision=hand("a"))
    place.answer(life, "sup", {"action": "edit-accept", "editedArtifactData": DONE})
    assert payload_json(life.told("runOrchestrator.decided")[0])["decision"] == DONE
    assert phases(life) == [] and life.run.status is Status.COMPLETED


def test_a_held_decision_may_be_rejected() -> None:
    place, life = held()
    assert isinstance(place.refused(life, place.answering("sup", {"action": "maybe"})), BadRequest)
    assert isinstance(place.refused(life, place.answering("sup", "yes")), BadRequest)
    place.answer(life, "sup", {"action": "reject"})
    assert errors(life) == "decision_rejected" and not life.told("runOrchestrator.decided")


@pytest.mark.parametrize("confidence", [0.7, 0.9, None, float("nan"), True])
def test_who_is_sure_enough_or_says_nothing_is_not_held(confidence: Any) -> None:
    assert held(confidence)[1].run.status is Status.COMPLETED


def test_the_threshold_is_the_run_s_own() -> None:
    assert held(0.5, configurable={"escalationThreshold": 0.5})[1].run.status is Status.COMPLETED
    assert held(0.9, configurable={"escalationThreshold": 1})[1].run.interrupts


# -- invariants ----------------------------------------------------------------------------------


def test_decided_comes_before_everything_it_causes() -> None:
    place = world(fast("a"))
    life = place.start(planned(hand("a"), ask(), DONE))
    settle(place)
    place.answer(life, "dis", {"content": "blue"}, ADA)
    decided = [e.sequence for e in life.told("runOrchestrator.decided")]
    firsts = [
        life.told(type_)[0].sequence
        for type_ in ("node.dispatched", "conversation.opened", "run.completed")
    ]
    assert all(before < after for before, after in zip(decided, firsts, strict=True))


def test_another_agent_does_not_decide_in_its_place() -> None:
    other = node("other", SUPERVISOR, config={"plan": [DONE], "agentId": "host:other"})
    place = world(fast("a"))
    life = place.start(planned(hand("a"), more=(other,), edges=(edge("sup", "other"),)))
    assert life.run.nodes["other"].error.code == "validation_error"
    assert {payload_json(e)["agentId"] for e in life.told("runOrchestrator.decided")} == {
        "supervisor-sup"
    }


def test_nobody_decides_after_the_end() -> None:
    other = node("later", SUPERVISOR, config={"plan": [DONE], "agentId": "host:one"})
    flow = planned(
        DONE, supervisor={"agentId": "host:one"}, more=(other,), edges=(edge("dis", "later"),)
    )
    life = world().start(flow)
    assert life.run.nodes["later"].status == "failed"
    assert len(life.told("runOrchestrator.decided")) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "dance"},
        {"kind": "next-worker", "nextWorkerIds": []},
        [],
        {"kind": "ask-user"},
        {"kind": "terminate", "x": 1},
        hand("a", confidence=2),
    ],
)
def test_what_is_no_decision_fails_the_node(bad: Any) -> None:
    place = world(fast("a"))
    life = place.start(planned(supervisor={"mockPendingDecision": bad}))
    assert errors(life) == "validation_error" and not life.told("runOrchestrator.decided")
    with pytest.raises(BadRequest):
        planned(bad)


def test_a_plan_or_rules_decide() -> None:
    rules = [
        {"when": "turn == 1", "decision": hand("a")},
        {"when": "variables.result == 'done'", "decision": DONE},
    ]
    place = world(fast("a", variable("out", "done")))
    flow = planned(supervisor={"rules": rules}, dispatch={"outputMapping": OUT}, variables=[RESULT])
    life = place.start(flow)
    settle(place)
    kinds = [payload_json(e)["decision"]["kind"] for e in life.told("runOrchestrator.decided")]
    assert kinds == ["next-worker", "terminate"] and life.run.status is Status.COMPLETED


def test_a_supervisor_without_a_plan_is_on_trial() -> None:
    place = world(fast("conformance-noop"))
    life = place.start(planned(supervisor={}))
    settle(place)
    kinds = [payload_json(e)["decision"]["kind"] for e in life.told("runOrchestrator.decided")]
    assert kinds == ["next-worker", "terminate"]


def test_a_dispatch_node_without_supervisor_is_refused() -> None:
    with pytest.raises(BadRequest):
        compiled(definition([node("d", DISPATCH)]))


def test_a_dispatch_node_before_any_decision_fails() -> None:
    early = node("early", DISPATCH)
    life = world().start(planned(DONE, more=(early,), edges=(edge("early", "sup"),)))
    assert life.run.nodes["early"].error.code == "no_pending_decision"
    assert not life.told("cap.breached")
