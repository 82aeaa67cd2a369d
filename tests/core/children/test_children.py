"""Child runs through the pure core: mapping (protocol 2.4), failure, cancellation, depth."""

from typing import Any

import pytest

from moot.core.commands import CancelRun, PauseRun, ResumeRun, TimePassed
from moot.core.runs.start import RunLimits
from moot.core.state.status import Status
from moot.core.workflows.node_types import Completed
from tests.support.core.simulator import Life, World, chain, compiled, definition, edge, node
from tests.support.event_payloads import payload_json

KID = definition(
    [node("work", "acme.work")],
    id="kid",
    variables=[
        {"name": "given", "type": "object", "defaultValue": "the default"},
        {"name": "other", "type": "object"},
    ],
)


def sub(**config: Any) -> dict[str, Any]:
    return node("sub", "core.subWorkflow", config={"workflowId": "kid", **config})


def parent(*nodes: dict[str, Any], **variables: Any) -> tuple[World, Life, Life]:
    """A parent whose first node has just handed work to its child."""
    declared = [
        {"name": name, "type": "object", "defaultValue": value} for name, value in variables.items()
    ]
    world = World({"kid": compiled(KID)})
    life = world.start(compiled(chain(*nodes, variables=declared)))
    return world, life, world.child_of(life)


def test_a_child_begins_with_the_event_that_names_it() -> None:
    _, life, child = parent(sub())
    assert life.order()[-1] == "node.dispatched sub"
    assert payload_json(life.log[-1]) == {
        "childRunId": child.run.run_id, "childWorkflowId": "kid", "childStatus": "running"
    }  # fmt: skip
    assert child.log[0].causation_id == life.log[-1].event_id
    assert (child.run.parent_run, child.run.parent_node) == (life.run.run_id, "sub")
    assert (child.run.tenant, child.run.principal) == (life.run.tenant, life.run.principal)
    assert child.run.depth == 1


def test_a_mapped_variable_overrides_the_childs_default() -> None:
    _, _, child = parent(sub(inputMapping={"given": "mine"}), mine=[1])
    assert child.run.variables == {"given": [1]}


def test_an_unset_parent_variable_leaves_the_childs_unset_and_never_null() -> None:
    _, _, child = parent(sub(inputMapping={"given": "nobody"}))
    assert child.run.variables == {}


def test_a_null_is_a_value_and_is_handed_over() -> None:
    _, _, child = parent(sub(inputMapping={"given": "mine"}), mine=None)
    assert child.run.variables == {"given": None}


def test_without_a_mapping_the_default_stands() -> None:
    _, _, child = parent(sub())
    assert child.run.variables == {"given": "the default"}


def test_what_a_completed_child_has_set_flows_back_and_the_rest_is_left_alone() -> None:
    mapping = {"a": "given", "b": "other", "c": "never"}
    world, life, child = parent(sub(outputMapping=mapping), a=0, b=0, c=0)
    world.finish(child, "work", Completed({"answer": 42}, {"given": 1}))
    world.tell_parent(child)
    assert life.run.variables == {"a": 1, "b": 0, "c": 0}
    assert life.run.status is Status.COMPLETED
    outputs = life.run.nodes["sub"].outputs
    assert outputs == {
        "childRunId": child.run.run_id, "childStatus": "completed", "childOutputs": {"answer": 42}
    }  # fmt: skip


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_child_that_did_not_complete_fails_its_parent(how: str) -> None:
    world, life, child = parent(sub(outputMapping={"a": "given"}), a=0)
    _end(world, child, how)
    world.tell_parent(child)
    assert life.run.status is Status.FAILED and life.run.error is not None
    assert life.run.error.code == "child_failed"
    assert life.run.error.details["childRunId"] == child.run.run_id
    assert life.run.error.details["childStatus"] == how
    assert life.run.variables == {"a": 0}, "nothing flows back from a child that failed"
    assert life.run.children == {child.run.run_id: how}


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_an_absorbed_failure_completes_the_node_and_maps_nothing(how: str) -> None:
    mapping = {"a": "given"}
    world, life, child = parent(sub(onChildFailure="absorb", outputMapping=mapping), a=0)
    _end(world, child, how)
    world.tell_parent(child)
    assert life.run.status is Status.COMPLETED
    assert life.run.variables == {"a": 0}
    outputs = payload_json(life.told("node.completed")[0])["outputs"]
    assert (outputs["childStatus"], outputs["childRunId"]) == (how, child.run.run_id)


def _end(world: World, child: Life, how: str) -> None:
    if how == "failed":
        world.fail(child, "work", retryable=False)
    else:
        world.take(child, CancelRun(world.at, "by hand"))


def test_a_retried_child_is_a_new_run() -> None:
    body = sub() | {"settings": {"maxRetries": 1, "retryDelayMs": 10}}
    world, life, first = parent(body)
    world.fail(first, "work", retryable=False)
    world.tell_parent(first)
    assert life.types[-1] == "node.retried"
    assert life.run.children == {first.run.run_id: "failed"}
    world.pass_time(10)
    world.take(life, TimePassed(world.at))
    second = world.child_of(life)
    assert second.run.run_id != first.run.run_id
    assert not world.tell_parent(first), "the end of the first child counts once"
    world.finish(second, "work")
    world.tell_parent(second)
    assert life.run.status is Status.COMPLETED


def test_the_end_of_a_child_counts_once() -> None:
    world, life, child = parent(sub(), node("after", "acme.work"))
    world.finish(child, "work")
    assert world.tell_parent(child)
    assert not world.tell_parent(child)
    assert life.run.nodes["sub"].outputs is not None


def test_a_cancelled_parent_takes_its_children_and_grandchildren_with_it() -> None:
    middle = chain(sub(), id="middle")
    world = World({"kid": compiled(KID), "middle": compiled(middle)})
    top = world.start(
        compiled(chain(node("down", "core.subWorkflow", config={"workflowId": "middle"})))
    )
    world.take(top, CancelRun(world.at, "enough"))
    child = world.child_of(top)
    grandchild = world.child_of(child)
    for life, above in ((child, top), (grandchild, child)):
        assert life.run.status is Status.CANCELLED
        assert payload_json(life.log[-1])["parentRunId"] == above.run.run_id
    assert "parentRunId" not in payload_json(top.log[-1])


def test_a_child_that_may_live_on_does() -> None:
    world, life, child = parent(sub(propagateCancellation=False))
    world.take(life, CancelRun(world.at))
    assert child.run.status is Status.RUNNING
    world.finish(child, "work")
    assert not world.tell_parent(child)


def test_a_parent_out_of_time_takes_its_children_with_it() -> None:
    world = World({"kid": compiled(KID)})
    life = world.start(compiled(chain(sub(), settings={"timeout": 100})))
    child = world.child_of(life)
    world.pass_time(100)
    world.take(life, TimePassed(world.at))
    assert life.run.error is not None and life.run.error.code == "run_timeout"
    assert child.run.status is Status.CANCELLED


def test_the_child_of_an_attempt_that_took_too_long_is_cancelled() -> None:
    body = sub() | {"settings": {"timeoutMs": 100, "maxRetries": 1, "retryDelayMs": 0}}
    world, life, first = parent(body)
    world.pass_time(100)
    world.take(life, TimePassed(world.at))
    assert life.types[-1] == "node.retried"
    assert first.run.status is Status.CANCELLED
    assert life.run.children == {first.run.run_id: "cancelled"}
    world.take(life, TimePassed(world.at))
    second = world.child_of(life)
    assert second.run.status is Status.RUNNING and second is not first


def test_a_pause_does_not_count_towards_the_time_a_child_may_take() -> None:
    world, life, child = parent(sub() | {"settings": {"timeoutMs": 100}})
    world.pass_time(90)
    world.take(life, PauseRun(world.at))
    assert life.run.status is Status.PAUSED, "waiting for a child is no work to drain"
    world.pass_time(10_000)
    world.take(life, ResumeRun(world.at))
    world.take(life, TimePassed(world.at))
    assert life.run.status is Status.RUNNING
    world.pass_time(11)
    world.take(life, TimePassed(world.at))
    assert life.run.error is not None and life.run.error.code == "node_timeout"
    assert child.run.status is Status.CANCELLED


def test_a_child_that_ends_while_its_parent_is_paused_is_still_owed_after() -> None:
    world, life, child = parent(sub())
    world.take(life, PauseRun(world.at))
    world.finish(child, "work")
    assert not world.tell_parent(child), "a paused run is told nothing"
    world.take(life, ResumeRun(world.at))
    assert life.run.nodes["sub"].attempt == 1, "the child goes on through the pause"
    assert world.owed(life).children == [child.run.run_id]
    world.tell_parent(child)
    assert life.run.status is Status.COMPLETED


def test_an_unknown_child_fails_the_node_for_good() -> None:
    world = World()
    settings = {"maxRetries": 3}
    life = world.start(compiled(chain(sub() | {"settings": settings})))
    assert life.run.error is not None
    assert life.run.error.code == "unknown_child_workflow"
    assert not life.run.children


def test_workflows_call_each_other_only_so_deep() -> None:
    body = chain(node("again", "core.subWorkflow", config={"workflowId": "sample"}))
    world = World({"sample": compiled(body)}, limits=RunLimits(depth=3))
    world.start(world.flows["sample"])
    lives = list(world.lives.values())
    assert [life.run.depth for life in lives] == [0, 1, 2, 3]
    assert lives[-1].run.error is not None
    assert lives[-1].run.error.code == "depth_exceeded"
    for child in reversed(lives[1:]):
        world.tell_parent(child)
    assert all(life.run.status is Status.FAILED for life in lives)


def test_a_mapping_back_onto_a_channel_fails_the_node_and_leaves_nothing_behind() -> None:
    world = World({"kid": compiled(KID)})
    body = chain(sub(outputMapping={"log": "given"}), channels={"log": {"reducer": "append"}})
    life = world.start(compiled(body))
    child = world.child_of(life)
    world.finish(child, "work")
    world.tell_parent(child)
    assert life.run.error is not None and life.run.error.code == "validation_error"
    assert life.run.children == {child.run.run_id: "completed"}


# -- one after another ---------------------------------------------------------------------------


def each(**config: Any) -> dict[str, Any]:
    return node("each", "moot.forEach", config={"workflowId": "kid", **config})


def test_children_come_one_after_another_with_item_and_index() -> None:
    world = World({"kid": compiled(KID)})
    life = world.start(compiled(chain(each(items=["a", "b"]))))
    for number, item in enumerate("ab"):
        child = world.child_of(life)
        assert len(life.run.children) == number + 1
        assert child.run.variables["item"] == item and child.run.variables["index"] == number
        world.finish(child, "work", Completed({"got": item}))
        world.tell_parent(child)
    assert life.run.status is Status.COMPLETED
    outputs = life.run.nodes["each"].outputs or {}
    assert outputs["results"] == [{"got": "a"}, {"got": "b"}] and outputs["iterations"] == 2


def test_no_items_are_no_children() -> None:
    world = World({"kid": compiled(KID)})
    life = world.start(compiled(chain(each(items=[]))))
    assert life.run.status is Status.COMPLETED and not life.run.children
    assert (life.run.nodes["each"].outputs or {})["results"] == []


def test_a_failing_child_ends_the_row_unless_it_is_absorbed() -> None:
    for how, children, status in (("fail-parent", 1, "failed"), ("absorb", 2, "completed")):
        world = World({"kid": compiled(KID)})
        life = world.start(compiled(chain(each(items=[1, 2], onChildFailure=how))))
        for _ in range(children):
            world.fail(world.child_of(life), "work", retryable=False)
            world.tell_parent(world.child_of(life))
        assert life.run.status == status and len(life.run.children) == children


def test_a_failed_child_leads_along_the_error_branch() -> None:
    world = World({"kid": compiled(KID)})
    nodes = [sub(), node("rescue")]
    life = world.start(compiled(definition(nodes, [edge("sub", "rescue", "any_failed")])))
    world.fail(world.child_of(life), "work", retryable=False)
    world.tell_parent(world.child_of(life))
    assert life.run.status is Status.COMPLETED
