"""Loops that cannot end well: each has its code, and nobody is left at work."""

from typing import Any

import pytest

from moot.core.commands import TimePassed
from moot.core.runs.start import RunLimits
from moot.core.state.status import Status
from moot.core.workflows.warnings import definition_warnings
from tests.support.core.simulator import Life, chain, compiled, node
from tests.support.core.supervisors import (
    DONE,
    fast,
    hand,
    kids,
    planned,
    settle,
    variable,
    worker,
    world,
)
from tests.support.event_payloads import payload_json


def code(life: Life) -> str:
    assert life.run.error is not None
    return str(life.run.error.code)


def test_supervisors_that_hand_work_to_each_other_end_at_the_depth_allowed() -> None:
    place = world(limits=RunLimits(depth=3))
    place.flows["top"] = planned(hand("top"), DONE)
    first = place.start(place.flows["top"])
    settle(place)
    lives = list(place.lives.values())
    assert [life.run.depth for life in lives] == [0, 1, 2, 3]
    assert code(lives[-1]) == "depth_exceeded" and not lives[-1].run.children
    assert [payload_json(e)["phase"] for e in lives[-1].told("core.workflowChain.event")] == []
    assert all(life.run.terminal for life in lives)
    assert first.run.status is Status.COMPLETED, "a worker that failed is its supervisor's to see"


def test_a_tree_of_supervisors_ends_at_the_runs_allowed() -> None:
    place = world(limits=RunLimits(tree=20, depth=30))
    place.flows["top"] = planned(hand("top", "top"), hand("top"), DONE)
    place.start(place.flows["top"])
    settle(place)
    assert len(place.lives) <= 20
    assert "tree_exceeded" in {code(life) for life in place.lives.values() if life.run.error}
    assert all(life.run.terminal for life in place.lives.values())


def test_what_a_worker_did_not_use_of_its_share_is_there_for_the_next() -> None:
    place = world(fast("a"), worker("b"), limits=RunLimits(tree=30))
    join = {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"}}
    life = place.start(planned(*[hand("a", "b")] * 14, DONE, dispatch=join))
    settle(place)
    assert life.run.status is Status.COMPLETED, life.run.error
    assert len(place.lives) == 29 == 1 + life.run.spent


def test_one_more_than_a_run_may_start_is_refused() -> None:
    place = world(fast("a"), limits=RunLimits(tree=5))
    life = place.start(planned(*[hand("a")] * 5, DONE))
    settle(place)
    assert len(place.lives) == 5 and code(life) == "tree_exceeded"


@pytest.mark.parametrize("policy", ["sequential", "parallel"])
def test_a_worker_that_never_ends_is_ended_by_the_time_limit_of_the_run(policy: str) -> None:
    place = world(worker("a"), worker("b"))
    flow = planned(hand("a", "b"), DONE, dispatch={"fanOutPolicy": policy})
    life = place.start(flow, configurable={"runTimeoutMs": 1000})
    place.pass_time(1001)
    place.take(life, TimePassed(place.at))
    [cap] = life.told("cap.breached")
    assert payload_json(cap)["kind"] == "run-duration" and code(life) == "run_timeout"
    assert {each.run.status for each in kids(place, life)} == {Status.CANCELLED}


def test_a_loop_that_goes_round_for_ever_ends_at_the_nodes_allowed() -> None:
    rules = [{"when": "true", "decision": hand("a")}]
    place = world(fast("a"))
    life = place.start(planned(supervisor={"rules": rules}), configurable={"recursionLimit": 12})
    settle(place)
    [cap] = life.told("cap.breached")
    assert (payload_json(cap)["kind"], payload_json(cap)["limit"]) == ("node-executions", 12)
    assert code(life) == "recursion_limit_exceeded"


def test_a_loop_without_a_bound_of_its_own_ends_at_the_bound_of_the_host() -> None:
    rules = [{"when": "true", "decision": {"kind": "ask-user", "prompt": "?"}}]
    place = world()
    life = place.start(planned(supervisor={"rules": rules}))
    for _ in range(1000):
        place.answer(life, "dis", {"content": "again"})
    [cap] = life.told("cap.breached")
    assert (payload_json(cap)["limit"], payload_json(cap)["observed"]) == (1000, 1001)
    assert code(life) == "loop_limit_exceeded"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"inputMapping": {"x": "lost"}}, ["inputMapping"]),
        ({"outputMapping": {"lost": "x", "result": "y"}}, ["outputMapping"]),
        ({"perWorkerInputMappings": {"a": {"x": "lost"}}}, ["perWorkerInputMappings.a"]),
        ({"perWorkerOutputMappings": {"a": {"lost": "x"}}}, ["perWorkerOutputMappings.a"]),
        ({"inputMapping": {"lost": "result"}, "outputMapping": {"result": "lost"}}, []),
    ],
)
def test_a_mapping_of_what_is_not_declared_is_remarked_and_taken(
    config: Any, named: list[str]
) -> None:
    place = world(fast("a", variable("x", "1")))
    flow = planned(hand("a"), DONE, dispatch=config, variables=[variable("result", "before")])
    found = [remark.split(": ")[1] for remark in definition_warnings(flow)]
    assert found == [f"{where} names the variable 'lost', which is not declared" for where in named]
    life = place.start(flow)
    settle(place)
    assert life.run.status is Status.COMPLETED


def test_sub_workflows_are_remarked_on_too() -> None:
    config = {"workflowId": "a", "outputMapping": {"lost": "x"}}
    assert (
        len(definition_warnings(compiled(chain(node("sub", "core.subWorkflow", config=config)))))
        == 1
    )
