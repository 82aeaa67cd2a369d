"""The commands, and what each may cause. decide returns facts or refuses; it never does."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from moot.core import wake
from moot.core.agents.decide import attributed, emit
from moot.core.children import attestation
from moot.core.children.decide import ChildWaits, child_ended, child_waits, dispatch
from moot.core.councils.decide import (
    Participate,
    WakeEnded,
    WakeReport,
    participate,
    report,
    wake_ended,
)
from moot.core.errors import Conflict, RunTerminal
from moot.core.events import NewEvent, iso
from moot.core.interrupts.decide import answer, begin
from moot.core.runs import advance, finish, nodes, start
from moot.core.runs.answers import Answer
from moot.core.runs.child_outputs import ChildEnded, Seen
from moot.core.runs.nodes import Emit
from moot.core.runs.start import StartRun
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.supervisors import decide as orchestration
from moot.core.supervisors import peer_answers, workers
from moot.core.supervisors.decide import WorkerRefused
from moot.core.supervisors.peer_answers import PeerFound, PeerRefused, PeerStopped
from moot.core.threads import seats, side_threads
from moot.core.threads.decide import Control, control
from moot.core.threads.seats import LeaveSeat, TakeSeat
from moot.core.threads.side_threads import LinkedFrom, SideEnded
from moot.core.workflows.graph import Flow
from moot.core.workflows.node_types import Decided, Kind, Outcome

DrainPolicy = Literal["immediate", "drain-current-node"]


class Advance(Struct, frozen=True):
    """Start what is ready, pause what has drained, end what is done.

    ``after`` names the nodes that have just ended; None looks at the whole graph.
    """

    at: int
    after: tuple[str, ...] | None = None


class Compute(Struct, frozen=True):
    """Carry out a node that is a pure function."""

    node_id: str
    at: int
    sealed: dict[str, Any] = {}


class FinishNode(Struct, frozen=True):
    """The outcome of one attempt of a node that touched the world."""

    node_id: str
    attempt: int
    outcome: Outcome
    at: int


class Wake(Struct, frozen=True):
    """Time has passed: timers, retries, node time limits, the run's own limit."""

    at: int
    #: the children that live on as far as the run knows
    seen: dict[str, Seen] = {}
    #: wake of a member at work -> for how long nothing was heard of it, in ms
    heard: dict[str, int] = {}


class Dispatch(Struct, frozen=True):
    """Hand work to the next child of a node, or end the node when there is none."""

    node_id: str
    at: int
    sealed: dict[str, Any] = {}


class CancelRun(Struct, frozen=True):
    at: int
    reason: str | None = None
    by: str | None = None
    parent_run: str | None = None


class PauseRun(Struct, frozen=True):
    at: int
    policy: DrainPolicy = "drain-current-node"
    reason: str | None = None
    by: str | None = None


class ResumeRun(Struct, frozen=True):
    at: int
    reason: str | None = None
    by: str | None = None


#: commands that may give children up
ENDING = (ChildEnded, Wake, WorkerRefused, PeerRefused)


class SetVariables(Struct, frozen=True):
    """An operator or a test writes the run's variables."""

    variables: dict[str, Any]
    at: int


Command = (
    StartRun | Advance | Compute | Dispatch | FinishNode | Wake | Emit | ChildEnded | CancelRun
    | PauseRun | ResumeRun | SetVariables | Answer | ChildWaits | Control | WorkerRefused
    | Participate | WakeEnded | WakeReport
    | PeerFound | PeerRefused | PeerStopped | SideEnded | LinkedFrom
    | TakeSeat | LeaveSeat
)  # fmt: skip


def decide(run: Run, flow: Flow, command: Command) -> list[NewEvent]:
    """What the command causes now. No event: nothing to do (a repeat, or too late)."""
    events = DECIDED_BY[type(command)](run, flow, command)
    agents = flow.agents or run.members or run.member is not None
    return attributed(run, flow, events) if agents and events else events


def _advance(run: Run, flow: Flow, command: Advance) -> list[NewEvent]:
    return advance.advance(run, flow, command.at, command.after)


def _wake(run: Run, flow: Flow, command: Wake) -> list[NewEvent]:
    return wake.wake(run, flow, command.at, command.seen, command.heard)


def _dispatch(run: Run, flow: Flow, command: Dispatch) -> list[NewEvent]:
    if flow.nodes[command.node_id].type.dispatches:
        return orchestration.dispatch(run, flow, command.node_id, command.at, command.sealed)
    if run.nodes[command.node_id].held is not None:
        return attestation.settle(run, flow, command.node_id, command.at, command.sealed)
    return dispatch(run, flow, command.node_id, command.at, command.sealed)


def _child_ended(run: Run, flow: Flow, command: ChildEnded) -> list[NewEvent]:
    if flow.nodes[command.node_id].type.dispatches:
        return workers.child_ended(run, flow, command)
    if attestation.attests(flow.nodes[command.node_id]):
        return attestation.child_ended(run, flow, command)
    return child_ended(run, flow, command)


def _child_waits(run: Run, flow: Flow, command: ChildWaits) -> list[NewEvent]:
    return child_waits(run, command)


def _set_variables(run: Run, flow: Flow, command: SetVariables) -> list[NewEvent]:
    return nodes.set_variables(run, flow, command.variables)


def _participate(run: Run, flow: Flow, command: Participate) -> list[NewEvent]:
    return participate(run, flow, command.node_id, command.at)


def _compute(run: Run, flow: Flow, command: Compute) -> list[NewEvent]:
    node_id, at = command.node_id, command.at
    if flow.nodes[node_id].type.kind is Kind.GATE:
        return begin(run, flow, node_id, at, command.sealed)
    outcome = nodes.computed(run, flow, node_id, at, command.sealed)
    if outcome is None:
        return []
    return _finish(run, flow, FinishNode(node_id, run.nodes[node_id].attempt, outcome, at))


def _finish(run: Run, flow: Flow, done: FinishNode) -> list[NewEvent]:
    if isinstance(done.outcome, Decided):
        return orchestration.finish(run, flow, done.node_id, done.attempt, done.outcome, done.at)
    return nodes.finish(run, flow, done.node_id, done.attempt, done.outcome, done.at)


def _cancel(run: Run, flow: Flow, command: CancelRun) -> list[NewEvent]:
    if run.terminal:
        return []
    payload: dict[str, Any] = {"durationMs": max(0, command.at - run.started_at)}
    if command.reason is not None:
        payload["reason"] = command.reason
    if command.by is not None:
        payload["cancelledBy"] = command.by
    if command.parent_run is not None:
        payload["parentRunId"] = command.parent_run
    return [*finish.stop_active(run, "run-cancelled"), NewEvent("run.cancelled", payload)]


def _pause(run: Run, flow: Flow, command: PauseRun) -> list[NewEvent]:
    if run.terminal:
        raise RunTerminal(run.run_id, run.status)
    if run.status is Status.PAUSED:
        raise Conflict(
            "The run is already paused; resume it first.",
            runId=run.run_id,
            runStatus=run.status,
            pausedAt=iso(run.paused_at * 1000),
        )
    if run.status is not Status.RUNNING or run.pause is not None:
        draining = run.pause is not None
        raise Conflict(
            "A pause is already waiting for the running node to finish."
            if draining
            else f"A run that is {run.status} cannot be paused.",
            runId=run.run_id,
            runStatus=run.status,
        )
    payload: dict[str, Any] = {"drainPolicy": command.policy}
    if command.reason is not None:
        payload["reason"] = command.reason
    if command.by is not None:
        payload["pausedBy"] = command.by
    if command.policy == "drain-current-node" and advance.executing(run):
        return [NewEvent("moot.pause.requested", payload)]
    return [NewEvent("run.paused", payload)]


def _resume(run: Run, flow: Flow, command: ResumeRun) -> list[NewEvent]:
    if run.terminal:
        raise RunTerminal(run.run_id, run.status)
    if run.status is not Status.PAUSED:
        raise Conflict(
            f"The run is {run.status}, not paused.", runId=run.run_id, runStatus=run.status
        )
    payload: dict[str, Any] = {}
    if command.reason is not None:
        payload["reason"] = command.reason
    if command.by is not None:
        payload["resumedBy"] = command.by
    return [NewEvent("run.resumed", payload)]


#: command -> what decides on it
DECIDED_BY: dict[type, Callable[[Run, Flow, Any], list[NewEvent]]] = {
    Answer: answer,
    Emit: emit,
    StartRun: start.start,
    Advance: _advance,
    Compute: _compute,
    Dispatch: _dispatch,
    FinishNode: _finish,
    Wake: _wake,
    ChildEnded: _child_ended,
    ChildWaits: _child_waits,
    WorkerRefused: orchestration.refused,
    CancelRun: _cancel,
    PauseRun: _pause,
    ResumeRun: _resume,
    SetVariables: _set_variables,
    Control: control,
    SideEnded: side_threads.ended,
    LinkedFrom: side_threads.linked_from,
    TakeSeat: seats.take,
    LeaveSeat: seats.leave,
    Participate: _participate,
    WakeEnded: wake_ended,
    WakeReport: report,
    PeerFound: peer_answers.answered,
    PeerRefused: peer_answers.answered,
    PeerStopped: peer_answers.answered,
}
