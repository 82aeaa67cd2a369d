"""The run's own state machine: the table, against the protocol (3.2) and against decide."""

import pytest

from moot.core.commands import (
    Advance,
    CancelRun,
    Compute,
    Dispatch,
    FinishNode,
    PauseRun,
    ResumeRun,
    SetVariables,
    TimePassed,
)
from moot.core.errors import MootError, RunTerminal
from moot.core.events import iso, new_event
from moot.core.pending import NO_WORK, pending
from moot.core.runs.child_outputs import ChildEnded
from moot.core.runs.nodes import Emit
from moot.core.runs.start import RunLimits, StartRun
from moot.core.state.run import Run, apply
from moot.core.state.status import LIVE, TERMINAL, TRANSITIONS, Status
from moot.core.workflows.node_types import Completed
from tests.support.core.simulator import START_MS, Life, World, chain, compiled, definition, node
from tests.support.event_payloads import event_with, payload_json

WAITS = {Status.WAITING_APPROVAL, Status.WAITING_INPUT, Status.WAITING_EXTERNAL}

#: what the protocol's table of transitions allows, written down again
ALLOWED = {
    ("run.started", Status.PENDING): Status.RUNNING,
    # asked for while running; what drains last may leave a run that only waits
    **dict.fromkeys([("run.paused", each) for each in (Status.RUNNING, *WAITS)], Status.PAUSED),
    ("run.resumed", Status.PAUSED): Status.RUNNING,
    ("run.completed", Status.RUNNING): Status.COMPLETED,
    **{
        (end, status): after
        for end, after in [("run.failed", Status.FAILED), ("run.cancelled", Status.CANCELLED)]
        for status in [
            Status.PENDING, Status.RUNNING, Status.PAUSED, Status.CANCELLING, *WAITS
        ]
    },
}  # fmt: skip


def test_the_table_is_the_protocols() -> None:
    table = {
        (type_, status): after
        for type_, (statuses, after) in TRANSITIONS.items()
        for status in statuses
    }
    assert table == ALLOWED


def test_every_status_is_live_or_terminal() -> None:
    assert set(Status) == TERMINAL | LIVE and not TERMINAL & LIVE
    assert {status.value for status in TERMINAL} == {"completed", "failed", "cancelled"}


@pytest.mark.parametrize("type_", TRANSITIONS)
def test_nothing_leads_out_of_an_end(type_: str) -> None:
    assert not TRANSITIONS[type_][0] & TERMINAL


@pytest.mark.parametrize("type_", TRANSITIONS)
def test_the_fold_goes_where_the_table_says(type_: str) -> None:
    run = Run("r")
    apply(run, event_with(event_id="r.0", run_id="r", sequence=0, type=type_,
                     timestamp=iso(START_MS * 1000), payload={}))  # fmt: skip
    assert run.status is TRANSITIONS[type_][1]


# -- what each command may do in each status -----------------------------------------------------


def running() -> tuple[World, Life]:
    world = World()
    return world, world.start(compiled(chain(node("work", "acme.work"), node("after"))))


def ended(status: Status) -> tuple[World, Life]:
    world, life = running()
    if status is Status.COMPLETED:
        world.finish(life, "work")
    elif status is Status.FAILED:
        world.fail(life, "work", retryable=False)
    else:
        world.take(life, CancelRun(world.at))
    assert life.run.status is status
    return world, life


def commands(world: World) -> list[object]:
    at = world.at
    log = new_event("log.appended", {"level": "info", "message": "m"}, "work")
    return [
        StartRun(tenant="acme", principal="p", at=at, limits=RunLimits()),
        Advance(at), Advance(at, ("work",)), TimePassed(at + 10**9), CancelRun(at),
        FinishNode("work", 1, Completed(), at), Emit("work", 1, (log,), at),
        ChildEnded(node_id="work", child_run="r", status="completed", at=at),
        SetVariables({"v": 1}, at), Compute("work", at), Dispatch("work", at),
    ]  # fmt: skip


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_nothing_comes_of_any_command_after_the_end(status: Status) -> None:
    world, life = ended(status)
    for command in commands(world):
        assert world.decided(life, command) == [], command  # type: ignore[arg-type]
    assert pending(life.run, life.flow) == NO_WORK


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_pausing_or_resuming_an_ended_run_is_refused(status: Status) -> None:
    world, life = ended(status)
    for command in (PauseRun(world.at), PauseRun(world.at, "immediate"), ResumeRun(world.at)):
        refusal = world.refused(life, command)
        assert isinstance(refusal, RunTerminal)
        assert refusal.details == {"runId": "run0", "runStatus": status.value}


def test_nothing_but_its_end_comes_of_any_command_while_paused() -> None:
    world, life = running()
    world.take(life, PauseRun(world.at, "immediate"))
    assert life.run.status is Status.PAUSED
    for command in commands(world):
        try:
            found = world.decided(life, command)  # type: ignore[arg-type]
        except MootError:
            continue
        ends_it = {"node.cancelled", "run.cancelled"} if isinstance(command, CancelRun) else set()
        assert {new.type for new in found} <= ends_it, command
    assert pending(life.run, life.flow) == NO_WORK


def test_a_second_pause_is_refused_and_says_since_when() -> None:
    world, life = running()
    world.take(life, PauseRun(world.at, "immediate"))
    refusal = world.refused(life, PauseRun(world.at))
    assert refusal is not None and refusal.status == 409
    assert refusal.details["runStatus"] == "paused"
    assert refusal.details["pausedAt"] == iso(life.run.paused_at * 1000)


def test_a_pause_while_another_waits_is_refused() -> None:
    world, life = running()
    world.take(life, PauseRun(world.at))
    assert life.types[-1] == "moot.pause.requested"
    refusal = world.refused(life, PauseRun(world.at, "immediate"))
    assert refusal is not None and refusal.details["runStatus"] == "running"


def test_resuming_a_running_run_is_refused() -> None:
    world, life = running()
    refusal = world.refused(life, ResumeRun(world.at))
    assert refusal is not None
    assert (refusal.status, refusal.details["runStatus"]) == (409, "running")


def test_writing_a_channel_as_a_variable_is_refused() -> None:
    world = World()
    body = definition([node("work", "acme.work")], channels={"log": {"reducer": "append"}})
    life = world.start(compiled(body))
    refusal = world.refused(life, SetVariables({"v": 1, "log": 2}, world.at))
    assert refusal is not None and refusal.code == "validation_error"
    assert life.run.variables == {}


def test_writing_variables_of_a_paused_run_is_refused() -> None:
    world, life = running()
    world.take(life, PauseRun(world.at, "immediate"))
    refusal = world.refused(life, SetVariables({"v": 1}, world.at))
    assert refusal is not None and refusal.details["runStatus"] == "paused"


def test_a_cancel_says_who_and_why_and_stops_what_is_at_work() -> None:
    world, life = running()
    world.take(life, CancelRun(world.at, "enough", "me"))
    assert life.order()[-2:] == ["node.cancelled work", "run.cancelled"]
    said = payload_json(life.log[-1])
    assert (said["reason"], said["cancelledBy"]) == ("enough", "me")
    assert "parentRunId" not in said
