"""How a run begins: limits resolved once, variables seeded, inputs checked."""

from typing import Any

import msgspec
import pytest

from moot.core.errors import BadRequest
from moot.core.payloads.runs import RecordedLimits
from moot.core.runs.start import RunLimits, StartRun, check_inputs, start_run
from moot.core.state.run import Run
from tests.support.core.simulator import World, chain, compiled, definition, node
from tests.support.event_payloads import payload_json

CEILINGS = RunLimits(node_executions=100, duration_ms=60_000, parallel=4, depth=2)


def limits(configurable: dict[str, Any], timeout: int = 0) -> RecordedLimits:
    flow = compiled(definition([node("work", "acme.work")], settings={"timeout": timeout}))
    life = World(limits=CEILINGS).start(flow, configurable=configurable)
    return life.run.limits


@pytest.mark.parametrize(
    ("asked", "resolved"),
    [({}, 100), ({"recursionLimit": 3}, 3), ({"recursionLimit": 100}, 100),
     ({"recursionLimit": 101}, 100), ({"recursionLimit": 10**12}, 100)],
)  # fmt: skip
def test_a_run_may_start_as_many_nodes_as_it_asked_for_within_the_hosts_ceiling(
    asked: dict[str, Any], resolved: int
) -> None:
    assert limits(asked).node_executions == resolved


@pytest.mark.parametrize(
    ("asked", "timeout", "resolved"),
    [
        ({}, 0, 60_000),
        ({"runTimeoutMs": 5}, 0, 5),
        ({"runTimeoutMs": 10**9}, 0, 60_000),
        ({}, 700, 700),
        ({}, 10**9, 60_000),
        ({"runTimeoutMs": 5}, 700, 5),
        ({"runTimeoutMs": 900}, 700, 700),
    ],
)
def test_a_run_takes_the_shortest_of_what_was_asked_the_workflow_and_the_host(
    asked: dict[str, Any], timeout: int, resolved: int
) -> None:
    assert limits(asked, timeout).duration_ms == resolved


def test_the_limits_are_recorded_with_the_run() -> None:
    found = limits({"recursionLimit": 7})
    assert msgspec.to_builtins(found) == {
        "nodeExecutions": 7, "durationMs": 60_000, "parallel": 4, "depth": 2, "tree": 1000
    }  # fmt: skip


def test_a_child_has_its_own_caps_and_shares_everything_else_it_was_told() -> None:
    kid = compiled(definition([node("work", "acme.work")], id="kid"))
    world = World({"kid": kid}, limits=CEILINGS)
    asked = {"recursionLimit": 1, "runTimeoutMs": 5, "model": "m"}
    sub = node("sub", "core.subWorkflow", config={"workflowId": "kid"})
    life = world.start(compiled(chain(sub)), configurable=asked, tags=["t"])
    child = world.child_of(life).run
    assert child.configurable == {"model": "m"} and child.tags == ["t"]
    assert child.limits.node_executions == 100 and child.limits.duration_ms == 60_000


VARIABLES = [
    {"name": "a", "type": "number", "defaultValue": 1},
    {"name": "b", "type": "string"},
    {"name": "c", "type": "array", "required": True},
]


def begun(**given: Any) -> Run:
    flow = compiled(definition([node("work", "acme.work")], variables=VARIABLES))
    return World().start(flow, **given).run


def test_variables_are_the_defaults_then_the_inputs_then_what_the_parent_hands_over() -> None:
    assert begun().variables == {"a": 1}
    assert begun(inputs={"a": 2, "extra": 3}).variables == {"a": 2, "extra": 3}
    assert begun(inputs={"a": 2}, seed={"a": 3}).variables == {"a": 3}
    assert begun(inputs={"a": 2}, unset=("a",)).variables == {}
    assert begun(inputs={"a": 2}).inputs == {"a": 2}


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"c": []}, None),
        ({"c": [], "a": 1.5, "b": "x", "unknown": {}}, None),
        ({}, "input 'c' is required"),
        ({"c": {}}, "input 'c' must be a array"),
        ({"c": [], "a": True}, "input 'a' must be a number"),
        ({"c": [], "a": "1"}, "input 'a' must be a number"),
        ({"c": [], "b": None}, "input 'b' must be a string"),
        ({"c": [], "log": 1}, "'log' is a channel, not an input"),
    ],
)
def test_inputs_are_checked_before_anything_exists(
    inputs: dict[str, Any], problem: str | None
) -> None:
    channels = {"log": {"reducer": "append"}}
    flow = compiled(definition([node("n")], variables=VARIABLES, channels=channels))
    if problem is None:
        check_inputs(flow, inputs)
        return
    with pytest.raises(BadRequest) as refusal:
        check_inputs(flow, inputs)
    assert problem in refusal.value.details["fields"]


def test_a_run_starts_once() -> None:
    world = World()
    life = world.start(compiled(definition([node("work", "acme.work")])))
    again = StartRun(tenant="acme", principal="p", at=world.at, limits=RunLimits())
    assert start_run(life.run, life.flow, again) == []


def test_what_was_not_given_is_not_in_the_log() -> None:
    world = World()
    bare = payload_json(world.start(compiled(definition([node("n")]))).log[0])
    assert not {"tags", "metadata", "configurable", "scopeId", "parentRunId", "depth"} & set(bare)
    full = world.start(
        compiled(definition([node("n")])), tags=["t"], metadata={"m": 1}, scope_id="s",
        configurable={"temperature": 1}, callback_url="https://x",
    )  # fmt: skip
    assert full.run.tags == ["t"] and full.run.metadata == {"m": 1} and full.run.scope_id == "s"
    assert payload_json(full.log[0])["callbackUrl"] == "https://x"
