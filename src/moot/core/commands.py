"""The commands of a run, and decide: from a command to new events.

decide returns events or raises a refusal. It never touches the world.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from moot.core import time_passed
from moot.core.agents.decide import attribute_agents, emit_agent_events
from moot.core.children import attestation
from moot.core.children.decide import ChildWaits, dispatch_child, end_child, mirror_child_status
from moot.core.councils.decide import (
    AdvanceCouncil,
    InvitationReport,
    advance_council,
    finish_invitation,
    record_report,
)
from moot.core.councils.invitations import InvitationEnded
from moot.core.errors import Conflict, RunTerminal
from moot.core.events import NewEvent, iso
from moot.core.interrupts.decide import answer_interrupt, begin_gate
from moot.core.payloads.runs import PauseBegan, PauseRequested, RunCancelled, RunResumed
from moot.core.runs import advance, finish, nodes, start
from moot.core.runs.answers import GateAnswer
from moot.core.runs.child_outputs import ChildEnded, ChildReport
from moot.core.runs.nodes import Emit
from moot.core.runs.start import StartRun
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.supervisors import peer_answers, workers
from moot.core.supervisors.decide import (
    WorkerRefused,
    dispatch_decision,
    finish_supervisor,
    refuse_worker,
)
from moot.core.supervisors.peer_answers import PeerFound, PeerRefused, PeerStopped
from moot.core.threads import seats, side_threads
from moot.core.threads.decide import Control, decide_control
from moot.core.threads.seats import LeaveSeat, TakeSeat
from moot.core.threads.side_threads import SideThreadEnded, ThreadLinkedFrom
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import Decided, NodeKind, Outcome

DrainPolicy = Literal["immediate", "drain-current-node"]


class Advance(Struct, frozen=True):
    """Start nodes that are ready, pause a run that has drained, end a run that is done.

    ``after`` names the nodes that have just ended; None checks the whole graph.
    """

    at: int
    after: tuple[str, ...] | None = None


class Compute(Struct, frozen=True):
    """Run a node that is a pure function."""

    node_id: str
    at: int
    sealed: Mapping[str, object] = {}


class FinishNode(Struct, frozen=True):
    """The outcome of one attempt of a node that touched the world."""

    node_id: str
    attempt: int
    outcome: Outcome
    at: int


class TimePassed(Struct, frozen=True):
    """Check timers, retries, the time limits of nodes and the limit of the run."""

    at: int
    #: living child -> its last known state
    seen: dict[str, ChildReport] = {}
    #: invitation of a member at work -> its silence in ms
    heard: dict[str, int] = {}


class Dispatch(Struct, frozen=True):
    """Hand work to the next child of a node, or end the node when no child is left."""

    node_id: str
    at: int
    sealed: Mapping[str, object] = {}


class CancelRun(Struct, frozen=True):
    """Cancel the run; ``parent_run`` is set when its parent ended."""

    at: int
    reason: str | None = None
    by: str | None = None
    parent_run: str | None = None


class PauseRun(Struct, frozen=True):
    """Pause the run at once, or after its running nodes finish."""

    at: int
    policy: DrainPolicy = "drain-current-node"
    reason: str | None = None
    by: str | None = None


class ResumeRun(Struct, frozen=True):
    """Resume a paused run."""

    at: int
    reason: str | None = None
    by: str | None = None


#: commands that may give children up
CHILD_ENDING_COMMANDS = (ChildEnded, TimePassed, WorkerRefused, PeerRefused)


class SetVariables(Struct, frozen=True):
    """An operator or a test writes the run's variables."""

    variables: Mapping[str, object]
    at: int


Command = (
    StartRun | Advance | Compute | Dispatch | FinishNode | TimePassed | Emit | ChildEnded
    | CancelRun
    | PauseRun | ResumeRun | SetVariables | GateAnswer | ChildWaits | Control | WorkerRefused
    | AdvanceCouncil | InvitationEnded | InvitationReport
    | PeerFound | PeerRefused | PeerStopped | SideThreadEnded | ThreadLinkedFrom
    | TakeSeat | LeaveSeat
)  # fmt: skip


def decide(run: Run, flow: Flow, command: Command) -> list[NewEvent]:
    """Return the command's events; an empty list means a repeat, or that it comes too late."""
    events = DECIDERS[type(command)](run, flow, command)
    agents = flow.agents or run.members or run.member is not None
    return attribute_agents(run, flow, events) if agents and events else events


def _advance(run: Run, flow: Flow, command: Advance) -> list[NewEvent]:
    return advance.advance_run(run, flow, command.at, command.after)


def _pass_time(run: Run, flow: Flow, command: TimePassed) -> list[NewEvent]:
    return time_passed.decide_time_passed(run, flow, command.at, command.seen, command.heard)


def _dispatch(run: Run, flow: Flow, command: Dispatch) -> list[NewEvent]:
    if flow.nodes[command.node_id].type.dispatches:
        return dispatch_decision(run, flow, command.node_id, command.at, command.sealed)
    if run.nodes[command.node_id].held is not None:
        return attestation.settle_attestation(
            run, flow, command.node_id, command.at, command.sealed
        )
    return dispatch_child(run, flow, command.node_id, command.at, command.sealed)


def _child_ended(run: Run, flow: Flow, command: ChildEnded) -> list[NewEvent]:
    if flow.nodes[command.node_id].type.dispatches:
        return workers.end_worker(run, flow, command)
    if attestation.is_attested(flow.nodes[command.node_id]):
        return attestation.end_attested_child(run, flow, command)
    return end_child(run, flow, command)


def _child_waits(run: Run, flow: Flow, command: ChildWaits) -> list[NewEvent]:
    return mirror_child_status(run, command)


def _set_variables(run: Run, flow: Flow, command: SetVariables) -> list[NewEvent]:
    return nodes.set_variables(run, flow, command.variables)


def _participate(run: Run, flow: Flow, command: AdvanceCouncil) -> list[NewEvent]:
    return advance_council(run, flow, command.node_id, command.at)


def _compute(run: Run, flow: Flow, command: Compute) -> list[NewEvent]:
    node_id, at = command.node_id, command.at
    if flow.nodes[node_id].type.kind is NodeKind.GATE:
        return begin_gate(run, flow, node_id, at, command.sealed)
    outcome = nodes.compute_outcome(run, flow, node_id, at, command.sealed)
    if outcome is None:
        return []
    return _finish(run, flow, FinishNode(node_id, run.nodes[node_id].attempt, outcome, at))


def _finish(run: Run, flow: Flow, done: FinishNode) -> list[NewEvent]:
    if isinstance(done.outcome, Decided):
        return finish_supervisor(run, flow, done.node_id, done.attempt, done.outcome, done.at)
    return nodes.finish_attempt(run, flow, done.node_id, done.attempt, done.outcome, done.at)


def _cancel(run: Run, flow: Flow, command: CancelRun) -> list[NewEvent]:
    if run.terminal:
        return []
    cancelled = RunCancelled(
        duration_ms=max(0, command.at - run.started_at),
        reason=command.reason,
        cancelled_by=command.by,
        parent_run_id=command.parent_run,
    )
    return [*finish.cancel_active_nodes(run, "run-cancelled"), NewEvent(cancelled)]


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
    waits = command.policy == "drain-current-node" and advance.is_executing(run)
    payload = (PauseRequested if waits else PauseBegan)(
        drain_policy=command.policy, reason=command.reason, paused_by=command.by
    )
    return [NewEvent(payload)]


def _resume(run: Run, flow: Flow, command: ResumeRun) -> list[NewEvent]:
    if run.terminal:
        raise RunTerminal(run.run_id, run.status)
    if run.status is not Status.PAUSED:
        raise Conflict(
            f"The run is {run.status}, not paused.", runId=run.run_id, runStatus=run.status
        )
    return [NewEvent(RunResumed(reason=command.reason, resumed_by=command.by))]


#: command -> the function that decides it
DECIDERS: dict[type, Callable[[Run, Flow, Any], list[NewEvent]]] = {
    GateAnswer: answer_interrupt,
    Emit: emit_agent_events,
    StartRun: start.start_run,
    Advance: _advance,
    Compute: _compute,
    Dispatch: _dispatch,
    FinishNode: _finish,
    TimePassed: _pass_time,
    ChildEnded: _child_ended,
    ChildWaits: _child_waits,
    WorkerRefused: refuse_worker,
    CancelRun: _cancel,
    PauseRun: _pause,
    ResumeRun: _resume,
    SetVariables: _set_variables,
    Control: decide_control,
    SideThreadEnded: side_threads.record_side_thread_end,
    ThreadLinkedFrom: side_threads.record_backlink,
    TakeSeat: seats.take_seat,
    LeaveSeat: seats.leave_seat,
    AdvanceCouncil: _participate,
    InvitationEnded: finish_invitation,
    InvitationReport: record_report,
    PeerFound: peer_answers.decide_peer_answer,
    PeerRefused: peer_answers.decide_peer_answer,
    PeerStopped: peer_answers.decide_peer_answer,
}
