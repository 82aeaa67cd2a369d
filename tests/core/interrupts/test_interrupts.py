"""Waits of every kind: statuses, too late, timeouts, pauses, cancels, children (8.1, 8.6, 8.7)."""

from typing import Any

import pytest

from moot.core.commands import CancelRun, PauseRun, ResumeRun, TimePassed
from moot.core.errors import (
    BadRequest,
    Conflict,
    CorrelationMismatch,
    Forbidden,
    InterruptAlreadyResolved,
    InterruptCancelled,
    InterruptGone,
    InterruptNotFound,
)
from moot.core.runs.start import RunLimits
from moot.core.state.status import Status
from tests.support.core import naive_fold
from tests.support.core.gates import (
    approval,
    asking,
    beside_work,
    caused_by,
    clarification,
    council,
    external,
    short,
)
from tests.support.core.simulator import (
    ADA,
    BOT,
    CHAIR,
    Life,
    World,
    chain,
    compiled,
    definition,
    edge,
    node,
)
from tests.support.event_payloads import payload_json

GATE = node("ok", "core.approvalGate")
ACCEPT = {"action": "accept"}


# -- kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scene", "status"),
    [
        (approval(), Status.WAITING_APPROVAL),
        (clarification(), Status.WAITING_INPUT),
        (external({}), Status.WAITING_EXTERNAL),
        (asking(node("x", "core.interrupt")), Status.WAITING_INPUT),
        (council(), Status.WAITING_APPROVAL),
    ],
)
def test_each_kind_of_wait_has_its_status(scene: tuple[World, Life], status: Status) -> None:
    assert scene[1].run.status is status


def test_an_external_event_must_match_every_key_and_may_carry_more() -> None:
    world, life = external({"orderId": 7, "shop": {"id": "a"}})
    event = {"orderId": 7, "shop": {"id": "a"}, "amount": 42}
    found = world.answer(life, "event", event, BOT)
    assert short(found) == [
        "interrupt.resolved", "node.resumed", "node.completed", "run.completed"
    ]  # fmt: skip
    assert payload_json(found[0])["resumeValue"] == event
    assert life.run.outputs == {"event": event, **event}


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ({"id": 7}, {"id": 8}), ({"id": 7}, {"id": "7"}), ({"id": 7}, {}),
        ({"id": 1}, {"id": True}), ({"id": None}, {}), ({"id": {"a": 1}}, {"id": {"a": True}}),
        ({"id": [1]}, {"id": [1, 2]}), ({"id": 7, "shop": "a"}, {"id": 7, "shop": "b"}),
    ],
)  # fmt: skip
def test_an_event_that_does_not_match_leaves_the_run_waiting(
    wanted: dict[str, Any], given: dict[str, Any]
) -> None:
    world, life = external(wanted)
    refusal = world.refused(life, world.answering("event", given))
    assert isinstance(refusal, CorrelationMismatch)
    assert refusal.details["mismatched"] == [k for k in wanted if k != "id" or "shop" not in wanted]
    assert life.run.status is Status.WAITING_EXTERNAL
    assert isinstance(world.refused(life, world.answering("event", [given])), BadRequest)


def test_a_custom_question_takes_anything_that_fits_its_schema() -> None:
    schema = {"type": "object", "required": ["n"]}
    world, life = asking(node("x", "core.interrupt", config={"resumeSchema": schema}))
    for wrong in (1, {}, None):
        assert isinstance(world.refused(life, world.answering("x", wrong)), BadRequest)
    world.answer(life, "x", {"n": 1})
    assert life.run.outputs == {"n": 1}


def test_an_answer_that_is_no_object_is_the_nodes_value() -> None:
    world, life = asking(node("x", "core.interrupt"))
    world.answer(life, "x", [1, 2])
    assert life.run.outputs == {"value": [1, 2]}


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, "object", 1])
@pytest.mark.parametrize(
    ("type_id", "field"),
    [
        ("core.interrupt", "resumeSchema"), ("core.interrupt", "answerSchema"),
        ("core.approvalGate", "resumeSchema"), ("core.conversationGate", "schema"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused_with_the_definition(
    type_id: str, field: str, schema: Any
) -> None:
    with pytest.raises(BadRequest):
        compiled(definition([node("x", type_id, config={field: schema})]))


def test_a_gate_for_keys_only_takes_no_answer_by_link() -> None:
    config = {"profile": "openwop-interrupt-auth-required"}
    world, life = approval(**config)
    name = life.run.interrupts["ok"].interrupt_id
    by_link = world.answering("ok", ACCEPT, interrupt_id=name)
    assert isinstance(world.refused(life, by_link), Forbidden)
    world.answer(life, "ok", ACCEPT, ADA)
    assert life.run.status is Status.COMPLETED


def test_a_gate_that_cannot_ask_fails() -> None:
    gate = node("convo", "core.conversationGate", config={"participants": [{"agentId": "host:a"}]})
    _, life = asking(gate)
    assert life.types[-2:] == ["node.failed", "run.failed"]
    assert life.run.error is not None and life.run.error.code == "validation_error"


# -- too late ------------------------------------------------------------------------------------


def test_who_comes_second_learns_who_was_first() -> None:
    world, life = approval()
    world.answer(life, "ok", ACCEPT, ADA)
    refusal = world.refused(life, world.answering("ok", {"action": "reject"}))
    assert isinstance(refusal, InterruptAlreadyResolved)
    assert refusal.details["resolvedBy"] == "key_ada" and refusal.details["action"] == "accept"
    assert refusal.message == "Already answered by key_ada."


def test_nothing_waits_where_nothing_was_asked() -> None:
    world, life = approval()
    for place in ("nowhere", "work"):
        assert isinstance(world.refused(life, world.answering(place, ACCEPT)), InterruptNotFound)


def test_a_link_is_good_for_its_own_question_only() -> None:
    world, life = approval()
    stale = world.answering("ok", ACCEPT, interrupt_id="int_other")
    assert isinstance(world.refused(life, stale), InterruptNotFound)
    assert life.run.status is Status.WAITING_APPROVAL
    name = life.run.interrupts["ok"].interrupt_id
    world.answer(life, "ok", ACCEPT, interrupt_id=name)
    assert life.run.status is Status.COMPLETED


def test_after_a_cancel_an_answer_is_refused_as_cancelled() -> None:
    world, life = approval()
    found = world.take(life, CancelRun(world.at, "enough"))
    assert short(found) == ["node.cancelled", "run.cancelled"]
    assert isinstance(world.refused(life, world.answering("ok", ACCEPT)), InterruptCancelled)


def test_a_run_that_ended_otherwise_takes_no_answer() -> None:
    world = World(limits=RunLimits(duration_ms=1000))
    life = world.start(compiled(definition([GATE, node("work", "acme.work")])))
    world.pass_time(2000)
    world.take(life, TimePassed(world.at))
    assert life.run.status is Status.FAILED
    assert isinstance(world.refused(life, world.answering("ok", ACCEPT)), InterruptAlreadyResolved)


# -- timeouts ------------------------------------------------------------------------------------


def test_nothing_is_approved_by_waiting() -> None:
    world, life = approval(timeoutMs=1000)
    assert world.owed(life).due == life.run.interrupts["ok"].due
    world.pass_time(999)
    assert world.take(life, TimePassed(world.at)) == []
    world.pass_time(1)
    found = world.take(life, TimePassed(world.at))
    assert short(found) == ["interrupt.resolved", "approval.received", "node.failed", "run.failed"]
    resolved, received = found[:2]
    assert caused_by(life, resolved).type == "interrupt.requested"
    assert (
        payload_json(resolved)["outcome"] == "rejected"
        and payload_json(resolved)["reason"] == "timeout"
    )
    assert payload_json(received)["action"] == "timeout" and "decidedBy" not in payload_json(
        received
    )
    assert life.run.error is not None and life.run.error.code == "interrupt_timeout"


def test_a_timeout_may_complete_the_node_with_nothing() -> None:
    world, life = clarification(timeoutMs=10, onTimeout="complete")
    world.pass_time(10)
    found = world.take(life, TimePassed(world.at))
    assert short(found) == ["interrupt.resolved", "node.completed", "run.completed"]
    assert life.run.outputs == {"outcome": None, "timedOut": True}


def test_after_a_timeout_nobody_is_named_as_the_winner() -> None:
    world, life = approval(timeoutMs=10)
    world.pass_time(10)
    world.take(life, TimePassed(world.at))
    refusal = world.refused(life, world.answering("ok", ACCEPT))
    assert isinstance(refusal, InterruptAlreadyResolved)
    assert refusal.details["action"] == "rejected"
    assert "resolvedBy" not in refusal.details and "time" in refusal.message


def test_a_deadline_survives_a_restart() -> None:
    world, life = approval(timeoutMs=1000)
    again = world.folded(life, len(life.log))
    assert again.interrupts["ok"].due == life.run.interrupts["ok"].due == again.nodes["ok"].due


def test_votes_that_do_not_make_a_quorum_in_time_come_to_nothing() -> None:
    world, life = approval(timeoutMs=1000, requiredApprovals=2)
    world.answer(life, "ok", ACCEPT)
    world.pass_time(1000)
    world.take(life, TimePassed(world.at))
    assert life.run.status is Status.FAILED


# -- pauses --------------------------------------------------------------------------------------


def test_a_pause_does_not_replace_a_wait() -> None:
    world, life = approval()
    refusal = world.refused(life, PauseRun(world.at))
    assert isinstance(refusal, Conflict)
    assert refusal.details["runStatus"] == "waiting-approval"


def test_a_run_is_running_while_one_branch_waits_and_another_works() -> None:
    world, life = beside_work(GATE)
    assert life.run.status is Status.RUNNING
    world.finish(life, "work")
    assert life.run.status is Status.WAITING_APPROVAL


def test_a_paused_run_takes_no_answer_and_still_waits_afterwards() -> None:
    world, life = beside_work(GATE)
    world.take(life, PauseRun(world.at, "immediate"))
    refusal = world.refused(life, world.answering("ok", ACCEPT))
    assert isinstance(refusal, Conflict) and refusal.details["runStatus"] == "paused"
    world.take(life, ResumeRun(world.at))
    assert life.run.status is Status.RUNNING and "ok" in life.run.interrupts
    assert life.order()[-1] == "node.started work"
    world.finish(life, "work")
    world.answer(life, "ok", ACCEPT)
    assert life.run.status is Status.COMPLETED


def test_a_question_that_ran_out_of_time_in_a_pause_fails_when_the_run_goes_on() -> None:
    gate = node("ok", "core.approvalGate", config={"timeoutMs": 100})
    world, life = beside_work(gate)
    world.take(life, PauseRun(world.at, "immediate"))
    world.pass_time(500)
    assert world.take(life, TimePassed(world.at)) == []
    world.take(life, ResumeRun(world.at))
    world.take(life, TimePassed(world.at))
    assert life.run.nodes["ok"].status == "failed"


def test_a_pause_drains_while_another_node_waits_and_time_is_counted_once() -> None:
    world, life = beside_work(GATE)
    world.pass_time(1000)
    world.take(life, PauseRun(world.at))
    assert life.types[-1] == "moot.pause.requested"
    found = world.finish(life, "work")
    assert short(found) == ["node.completed", "run.paused"]
    assert life.run.active_ms == naive_fold.active_ms(life.log)
    world.pass_time(5000)
    world.take(life, ResumeRun(world.at))
    assert life.run.status is Status.WAITING_APPROVAL
    world.pass_time(5000)
    world.answer(life, "ok", ACCEPT)
    assert life.run.status is Status.COMPLETED
    assert 1000 <= life.run.active_ms <= 1001


# -- time ----------------------------------------------------------------------------------------


def test_waiting_does_not_count_as_active_time() -> None:
    world = World(limits=RunLimits(duration_ms=1000))
    life = world.start(compiled(chain(GATE, node("work", "acme.work"))))
    assert world.owed(life).due is None, "a run that waits has no deadline"
    world.pass_time(1_000_000)
    assert world.take(life, TimePassed(world.at)) == []
    world.answer(life, "ok", ACCEPT)
    assert life.run.status is Status.RUNNING
    world.pass_time(900)
    assert world.take(life, TimePassed(world.at)) == []
    world.pass_time(100)
    world.take(life, TimePassed(world.at))
    assert life.run.error is not None and life.run.error.code == "run_timeout"


# -- children ------------------------------------------------------------------------------------


def family(**settings: Any) -> tuple[World, Life, Life]:
    """A parent whose child asks."""
    world = World({"kid": compiled(definition([GATE], id="kid"))})
    sub = node("sub", "core.subWorkflow", config={"workflowId": "kid"}, settings=settings)
    life = world.start(compiled(definition([sub])))
    return world, life, world.child_of(life)


def test_a_parent_shows_how_its_child_waits_and_says_it_once() -> None:
    world, life, child = family()
    assert life.run.status is Status.RUNNING
    found = world.mirror(child)
    assert [payload_json(event)["childStatus"] for event in found] == ["waiting-approval"]
    assert life.run.status is Status.WAITING_APPROVAL
    assert world.mirror(child) == []
    world.answer(child, "ok", ACCEPT)
    world.tell_parent(child)
    assert life.run.status is Status.COMPLETED


def test_a_parent_runs_again_when_its_child_does() -> None:
    world = World({"kid": compiled(chain(GATE, node("work", "acme.work"), id="kid"))})
    sub = node("sub", "core.subWorkflow", config={"workflowId": "kid"})
    life = world.start(compiled(definition([sub])))
    child = world.child_of(life)
    world.mirror(child)
    world.pass_time(1000)
    world.answer(child, "ok", ACCEPT)
    world.mirror(child)
    assert life.run.status is Status.RUNNING
    assert life.run.active_ms == naive_fold.active_ms(life.log) <= 1


def test_the_inbox_row_is_the_childs_not_the_parents() -> None:
    world, life, child = family()
    world.mirror(child)
    assert naive_fold.inbox(life.log) == [] != naive_fold.inbox(child.log)


def test_a_retry_forgets_how_the_child_of_the_last_attempt_waited() -> None:
    world, life, child = family(timeoutMs=100, maxRetries=1, retryDelayMs=50)
    world.mirror(child)
    world.pass_time(100)
    world.take(life, TimePassed(world.at))
    assert life.types[-1] == "node.retried" and child.run.status is Status.CANCELLED
    assert life.run.status is Status.RUNNING
    world.pass_time(50)
    world.take(life, TimePassed(world.at))
    assert life.run.status is Status.RUNNING and not life.run.mirrored


def test_only_a_living_status_is_mirrored() -> None:
    """A paused child is neither waiting nor over."""
    world, life, child = family()
    from moot.core.children.decide import ChildWaits

    for status in ("paused", "completed", "pending", "nonsense"):
        told = ChildWaits(
            node_id="sub", child_run=child.run.run_id, workflow_id="kid", status=status
        )
        assert world.take(life, told) == []


def test_a_child_cancelled_with_its_parent_answers_that_it_is_gone() -> None:
    world, life, child = family()
    world.mirror(child)
    world.take(life, CancelRun(world.at))
    assert child.run.status is Status.CANCELLED
    assert isinstance(world.refused(child, world.answering("ok", ACCEPT)), InterruptGone)


def test_a_child_cancelled_by_itself_answers_that_it_was_cancelled() -> None:
    world, _, child = family()
    world.take(child, CancelRun(world.at, by=CHAIR.principal))
    assert isinstance(world.refused(child, world.answering("ok", ACCEPT)), InterruptCancelled)


def test_an_answer_after_the_deadline_is_too_late_even_before_the_clock_has_rung() -> None:
    world, life = approval(timeoutMs=10)
    world.pass_time(10)
    refusal = world.refused(life, world.answering("ok", {"action": "accept"}))
    assert isinstance(refusal, InterruptAlreadyResolved)


@pytest.mark.parametrize("value", [{"reject": False}, {"refine": 0, "action": "reject"}])
def test_what_an_answer_of_another_kind_says_takes_no_edge_away(value: dict[str, Any]) -> None:
    nodes = [node("q", "core.interrupt", config={"kind": "custom"}), node("next")]
    world = World()
    life = world.start(compiled(definition(nodes, [edge("q", "next")])))
    world.answer(life, "q", value)
    assert life.run.status is Status.COMPLETED
