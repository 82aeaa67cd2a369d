"""Pauses, retries, time limits and caps, through the pure core under a virtual clock."""

from typing import Any

import pytest

from moot.core.commands import Advance, PauseRun, ResumeRun, TimePassed
from moot.core.runs.start import RunLimits
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows.node_types import Completed, NodeCall, NodeKind, NodeType
from tests.support.core.simulator import Life, World, chain, compiled, definition, edge, node
from tests.support.event_payloads import payload_json

WORK = node("work", "acme.work")


def begun(body: dict[str, Any], **limits: Any) -> tuple[World, Life]:
    world = World(limits=RunLimits(**limits))
    return world, world.start(compiled(body))


def ring(world: World, life: Life, ms: int) -> None:
    world.pass_time(ms)
    world.take(life, TimePassed(world.at))


# -- pauses --------------------------------------------------------------------------------------


def test_a_draining_pause_waits_for_the_node_and_starts_nothing_more() -> None:
    world, life = begun(chain(WORK, node("after")))
    world.take(life, PauseRun(world.at, reason="lunch", by="me"))
    assert life.run.status is Status.RUNNING
    world.finish(life, "work")
    assert life.order()[-3:] == ["moot.pause.requested", "node.completed work", "run.paused"]
    assert payload_json(life.log[-1]) == {"drainPolicy": "drain-current-node", "reason": "lunch"}
    world.take(life, ResumeRun(world.at))
    assert life.order()[-4:-2] == ["run.resumed", "node.started after"]
    assert life.run.status is Status.COMPLETED


def test_a_draining_pause_of_a_run_that_only_waits_is_at_once() -> None:
    body = chain(node("work", "acme.work", settings={"maxRetries": 1, "retryDelayMs": 50}))
    world, life = begun(body)
    world.fail(life, "work")
    world.take(life, PauseRun(world.at))
    assert life.types[-1] == "run.paused"


def test_a_failure_that_would_be_retried_ends_the_drain() -> None:
    world, life = begun(chain(node("work", "acme.work", settings={"maxRetries": 1})))
    world.take(life, PauseRun(world.at))
    world.fail(life, "work")
    assert life.order()[-2:] == ["node.retried work", "run.paused"]


def test_an_immediate_pause_cuts_the_node_short_and_resuming_is_a_fresh_attempt() -> None:
    world, life = begun(chain(WORK))
    world.take(life, PauseRun(world.at, "immediate"))
    assert life.order()[-1] == "run.paused"
    assert life.run.nodes["work"].status is NodeStatus.INTERRUPTED
    world.take(life, ResumeRun(world.at))
    assert life.order()[-2:] == ["run.resumed", "node.started work"]
    assert [payload_json(event)["attempt"] for event in life.told("node.started")] == [1, 2]
    assert not world.take(life, _finish(world, 1)), "the outcome of the first attempt is outdated"
    world.take(life, _finish(world, 2))
    assert life.run.status is Status.COMPLETED


def _finish(world: World, attempt: int) -> Any:
    from moot.core.commands import FinishNode

    return FinishNode("work", attempt, Completed(), world.at)


def test_every_branch_an_immediate_pause_cut_short_begins_again() -> None:
    body = definition([node(name, "acme.work") for name in "abc"])
    world, life = begun(body)
    world.take(life, PauseRun(world.at, "immediate"))
    world.take(life, ResumeRun(world.at))
    starts = ["node.started a", "node.started b", "node.started c"]
    assert life.order()[-4:] == ["run.resumed", *starts]


def test_a_delay_cut_short_by_a_pause_waits_its_full_time_again() -> None:
    world, life = begun(chain(node("wait", "core.delay", config={"ms": 100})))
    world.pass_time(90)
    world.take(life, PauseRun(world.at, "immediate"))
    world.take(life, ResumeRun(world.at))
    ring(world, life, 50)
    assert life.run.status is Status.RUNNING
    ring(world, life, 51)
    assert life.run.status is Status.COMPLETED


def test_a_retry_that_falls_due_during_a_pause_is_made_after_it() -> None:
    world, life = begun(
        chain(node("work", "acme.work", settings={"maxRetries": 1, "retryDelayMs": 50}))
    )
    world.fail(life, "work")
    world.take(life, PauseRun(world.at))
    ring(world, life, 1000)
    assert life.types[-1] == "run.paused"
    world.take(life, ResumeRun(world.at))
    due = world.owed(life).due
    assert due is not None and due <= world.at
    world.take(life, TimePassed(world.at))
    assert life.order()[-1] == "node.started work"


def test_a_pause_does_not_use_up_a_retry() -> None:
    body = chain(node("work", "acme.work", settings={"maxRetries": 1, "retryDelayMs": 10}))
    world, life = begun(body)
    for _ in range(3):
        world.take(life, PauseRun(world.at, "immediate"))
        world.take(life, ResumeRun(world.at))
    world.fail(life, "work")
    assert life.types[-1] == "node.retried"
    assert payload_json(life.log[-1])["delayMs"] == 10
    ring(world, life, 10)
    world.fail(life, "work")
    assert life.run.status is Status.FAILED


# -- retries -------------------------------------------------------------------------------------


def test_retries_wait_twice_as_long_each_time_up_to_a_bound() -> None:
    settings = {"maxRetries": 9, "retryDelayMs": 1000}
    world, life = begun(chain(node("work", "acme.work", settings=settings)))
    for _ in range(9):
        world.fail(life, "work")
        ring(world, life, 30_000)
    delays = [payload_json(event)["delayMs"] for event in life.told("node.retried")]
    assert delays == [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000]
    world.fail(life, "work", code="last")
    assert life.run.error is not None and life.run.error.code == "last"
    assert payload_json(life.told("node.failed")[0])["attempts"] == 10


def test_what_trying_again_cannot_help_is_not_tried_again() -> None:
    world, life = begun(chain(node("work", "acme.work", settings={"maxRetries": 9})))
    world.fail(life, "work", retryable=False)
    assert life.run.status is Status.FAILED


def test_the_workflows_retries_are_the_nodes_unless_it_has_its_own() -> None:
    nodes = [node("a", "acme.work"), node("b", "acme.work", settings={"maxRetries": 0})]
    world, life = begun(definition(nodes, settings={"maxRetries": 2}))
    world.fail(life, "a")
    world.fail(life, "b")
    assert [event.node_id for event in life.told("node.retried")] == ["a"]
    assert [event.node_id for event in life.told("node.failed")] == ["b"]


def test_a_failing_pure_node_is_retried_as_well() -> None:
    settings = {"maxRetries": 2, "retryDelayMs": 10}
    body = chain(node("f", "core.fail", config={"retryable": True}, settings=settings))
    world, life = begun(body)
    ring(world, life, 10)
    ring(world, life, 20)
    assert life.run.status is Status.FAILED
    assert life.types.count("node.started") == 3


# -- time limits ---------------------------------------------------------------------------------


def test_a_node_that_takes_too_long_fails_and_may_be_tried_again() -> None:
    settings = {"timeoutMs": 100, "maxRetries": 1, "retryDelayMs": 0}
    world, life = begun(chain(node("work", "acme.work", settings=settings)))
    assert world.owed(life).due == life.run.nodes["work"].started_at + 100
    ring(world, life, 99)
    assert life.types[-1] == "node.started"
    ring(world, life, 1)
    ring(world, life, 0)
    assert life.order()[-2:] == ["node.retried work", "node.started work"]
    ring(world, life, 100)
    assert life.run.error is not None and life.run.error.code == "node_timeout"


def test_a_run_out_of_active_time_is_stopped() -> None:
    world, life = begun(chain(WORK), duration_ms=1000)
    ring(world, life, 999)
    assert life.run.status is Status.RUNNING
    ring(world, life, 1)
    assert life.order()[-3:] == ["cap.breached", "node.cancelled work", "run.failed"]
    cap = payload_json(life.told("cap.breached")[0])
    assert cap["kind"] == "run-duration" and cap["limit"] == 1000 and cap["observed"] > 1000
    assert life.run.error is not None and life.run.error.code == "run_timeout"


def test_a_pause_does_not_count_towards_the_runs_time() -> None:
    world, life = begun(chain(WORK), duration_ms=1000)
    world.pass_time(600)
    world.take(life, PauseRun(world.at, "immediate"))
    ring(world, life, 10_000_000)
    assert life.run.status is Status.PAUSED
    world.take(life, ResumeRun(world.at))
    ring(world, life, 300)
    assert life.run.status is Status.RUNNING
    ring(world, life, 101)
    assert life.run.status is Status.FAILED


# -- caps ----------------------------------------------------------------------------------------


def test_the_node_over_the_limit_never_starts() -> None:
    _world, life = begun(chain(*(node(f"n{n}") for n in range(6))), node_executions=3)
    starts = [event.node_id for event in life.told("node.started")]
    assert starts == ["n0", "n1", "n2"]
    cap = life.told("cap.breached")[0]
    assert payload_json(cap) == {
        "kind": "node-executions", "limit": 3, "observed": 4, "nodeId": "n3"
    }  # fmt: skip
    assert life.run.error is not None
    assert life.run.error.code == "recursion_limit_exceeded"


def test_branches_begun_in_the_same_step_are_stopped_when_the_limit_bites() -> None:
    _world, life = begun(definition([node(name, "acme.work") for name in "abc"]), node_executions=2)
    assert life.order() == [
        "run.started", "node.started a", "node.started b", "cap.breached c",
        "node.cancelled a", "node.cancelled b", "run.failed",
    ]  # fmt: skip


def test_a_retry_counts_towards_the_limit() -> None:
    settings = {"maxRetries": 5, "retryDelayMs": 0}
    world, life = begun(chain(node("work", "acme.work", settings=settings)), node_executions=2)
    for _ in range(2):
        world.fail(life, "work")
        ring(world, life, 0)
    assert life.types.count("node.started") == 2
    assert life.order()[-3:] == ["cap.breached work", "node.cancelled work", "run.failed"]


def test_a_fresh_attempt_after_a_pause_counts_towards_the_limit() -> None:
    world, life = begun(chain(WORK), node_executions=1)
    world.take(life, PauseRun(world.at, "immediate"))
    world.take(life, ResumeRun(world.at))
    assert life.order()[-4:] == [
        "run.resumed", "cap.breached work", "node.cancelled work", "run.failed"
    ]  # fmt: skip


def test_a_breach_while_several_fall_due_ends_each_node_once() -> None:
    nodes = [
        node("a", "acme.work", settings={"maxRetries": 1, "retryDelayMs": 10}),
        node("b", "core.delay", config={"ms": 10}),
        node("c", "acme.work", settings={"maxRetries": 1, "retryDelayMs": 10}),
    ]
    world, life = begun(definition(nodes), node_executions=3)
    world.fail(life, "a")
    world.fail(life, "c")
    ring(world, life, 20)
    ends = [
        line for line in life.order() if line.split()[0] in ("node.completed", "node.cancelled")
    ]
    assert len(ends) == len({line.split()[1] for line in ends})
    assert life.types.count("cap.breached") == 1 and life.types[-1] == "run.failed"


def test_a_node_nobody_provides_for_fails_without_starting() -> None:
    _world, life = begun(chain(node("lack", "acme.lacking")), node_executions=1)
    assert life.types == ["run.started", "node.failed", "run.failed"]
    assert life.run.error is not None
    assert life.run.error.code == "capability_not_provided"
    assert "moon" in life.run.error.message
    assert life.run.error.details == {"capability": "moon"}


# -- parallel ------------------------------------------------------------------------------------


def test_no_more_nodes_than_allowed_are_at_work_and_all_get_their_turn() -> None:
    nodes = [node(f"n{number}", "acme.work") for number in range(5)]
    world, life = begun(definition(nodes), parallel=2)
    seen = []
    while not life.run.terminal:
        assert len(life.run.active) <= 2
        first = next(iter(life.run.active))
        seen.append(first)
        world.finish(life, first)
    assert seen == [f"n{number}" for number in range(5)]


def test_ready_nodes_start_by_depth_and_then_by_id() -> None:
    nodes = [node("z", "acme.work"), node("a", "acme.work"), node("m", "acme.work")]
    body = definition([*nodes, node("deep", "acme.work")], [edge("z", "deep")])
    _world, life = begun(body)
    assert [event.node_id for event in life.told("node.started")] == ["a", "m", "z"]


# -- node types that misbehave -------------------------------------------------------------------


def _boom(*_: Any) -> Any:
    raise ValueError("boom \ud800")


@pytest.mark.parametrize(
    "type_",
    [
        NodeType(type_id="acme.odd", kind=NodeKind.INSTANT, instant=_boom),
        NodeType(type_id="acme.odd", kind=NodeKind.TIMER, duration=_boom),
        NodeType(type_id="acme.odd", kind=NodeKind.CHILD, child=_boom),
    ],
    ids=["instant", "timer", "child"],
)
def test_whatever_a_node_type_raises_fails_its_node_only(type_: NodeType) -> None:
    world = World()
    nodes = [node("odd", "acme.odd"), node("rescue")]
    flow = compiled(
        definition(nodes, [edge("odd", "rescue", "any_failed")]),
        {"acme.odd": type_, "core.noop": _noop()},
    )
    life = world.start(flow)
    assert life.run.status is Status.COMPLETED
    failed = payload_json(life.told("node.failed")[0])["error"]
    assert failed["code"] == "node_raised" and "boom" in failed["message"]


def _noop() -> NodeType:
    def instant(call: NodeCall) -> Completed:
        return Completed()

    return NodeType(type_id="core.noop", kind=NodeKind.INSTANT, instant=instant)


def test_looking_again_at_a_run_that_waits_finds_nothing_to_do() -> None:
    world, life = begun(chain(WORK, node("after")))
    assert world.take(life, Advance(world.at)) == []
    assert world.take(life, TimePassed(world.at)) == []
