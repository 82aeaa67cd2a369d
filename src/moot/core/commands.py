"""The commands, and what each may cause. decide returns facts or refuses; it never does."""

from typing import Any, Literal

from msgspec import Struct

from moot.core import (
    advance,
    children,
    ending,
    interrupts,
    nodework,
    orchestration,
    peering,
    starting,
    threads,
    waves,
)
from moot.core import wake as waking
from moot.core.children import ChildEnded, ChildWaits
from moot.core.errors import Conflict, RunTerminal
from moot.core.events import NewEvent, iso
from moot.core.flow import Flow
from moot.core.nodework import Emit
from moot.core.outcomes import Decided, Kind, NodeError, Outcome
from moot.core.peering import PeerFound, PeerRefused, PeerStopped
from moot.core.resolving import Answer
from moot.core.run import Run
from moot.core.starting import StartRun
from moot.core.status import Status
from moot.core.threads import Control

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


class WorkerRefused(Struct, frozen=True):
    """A worker that a dispatch node wants cannot be started."""

    node_id: str
    worker: str
    error: NodeError
    at: int


class SetVariables(Struct, frozen=True):
    """An operator or a test writes the run's variables."""

    variables: dict[str, Any]
    at: int


Command = (
    StartRun | Advance | Compute | Dispatch | FinishNode | Wake | Emit | ChildEnded | CancelRun
    | PauseRun | ResumeRun | SetVariables | Answer | ChildWaits | Control | WorkerRefused
    | PeerFound | PeerRefused | PeerStopped
)  # fmt: skip


def decide(run: Run, flow: Flow, command: Command) -> list[NewEvent]:  # noqa: C901, PLR0912 - one line each
    """What the command causes now. No event: nothing to do (a repeat, or too late)."""
    match command:  # the frequent ones first
        case Answer():
            return interrupts.answer(run, flow, command)
        case Emit():
            return nodework.emit(run, flow, command)
        case StartRun():
            return starting.start(run, flow, command)
        case Advance(at=at, after=after):
            return advance.advance(run, flow, at, after)
        case Compute(node_id=node_id, at=at, sealed=sealed):
            if flow.nodes[node_id].type.kind is Kind.GATE:
                return interrupts.begin(run, flow, node_id, at, sealed)
            return _compute(run, flow, command)
        case Dispatch():
            return _dispatch(run, flow, command)
        case FinishNode():
            return _finish(run, flow, command)
        case Wake(at=at):
            return waking.wake(run, flow, at)
        case ChildEnded():
            return _child_ended(run, flow, command)
        case WorkerRefused(node_id=node_id, worker=worker, error=error, at=at):
            return orchestration.refused(run, flow, node_id, worker, error, at)
        case CancelRun():
            return _cancel(run, command)
        case PauseRun():
            return _pause(run, flow, command)
        case ResumeRun():
            return _resume(run, command)
        case SetVariables(variables=variables, at=at):
            return nodework.set_variables(run, flow, variables)
        case ChildWaits():
            return children.child_waits(run, command)
        case Control():
            return threads.control(run, flow, command)
        case PeerFound() | PeerRefused() | PeerStopped():
            return peering.answered(run, flow, command)


def _dispatch(run: Run, flow: Flow, command: Dispatch) -> list[NewEvent]:
    node_id, at, sealed = command.node_id, command.at, command.sealed
    if flow.nodes[node_id].type.dispatches:
        return orchestration.dispatch(run, flow, node_id, at, sealed)
    return children.dispatch(run, flow, node_id, at, sealed)


def _child_ended(run: Run, flow: Flow, command: ChildEnded) -> list[NewEvent]:
    if flow.nodes[command.node_id].type.dispatches:
        return waves.child_ended(run, flow, command)
    return children.child_ended(run, flow, command)


def _compute(run: Run, flow: Flow, command: Compute) -> list[NewEvent]:
    node_id, at = command.node_id, command.at
    outcome = nodework.computed(run, flow, node_id, at, command.sealed)
    if outcome is None:
        return []
    return _finish(run, flow, FinishNode(node_id, run.nodes[node_id].attempt, outcome, at))


def _finish(run: Run, flow: Flow, done: FinishNode) -> list[NewEvent]:
    if isinstance(done.outcome, Decided):
        return orchestration.finish(run, flow, done.node_id, done.attempt, done.outcome, done.at)
    return nodework.finish(run, flow, done.node_id, done.attempt, done.outcome, done.at)


def _cancel(run: Run, command: CancelRun) -> list[NewEvent]:
    if run.terminal:
        return []
    payload: dict[str, Any] = {"durationMs": max(0, command.at - run.started_at)}
    if command.reason is not None:
        payload["reason"] = command.reason
    if command.by is not None:
        payload["cancelledBy"] = command.by
    if command.parent_run is not None:
        payload["parentRunId"] = command.parent_run
    return [*ending.stop_active(run, "run-cancelled"), NewEvent("run.cancelled", payload)]


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


def _resume(run: Run, command: ResumeRun) -> list[NewEvent]:
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
