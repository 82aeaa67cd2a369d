"""Fold the supervisor of a run: its newest decision and its workers.

The first decision sets the supervisor for the whole run.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event
from moot.core.payloads.base import Payload
from moot.core.payloads.hints import EventHints
from moot.core.payloads.supervisors import HandoffStepped, PeerAskedAnew, SupervisorDecided
from moot.core.state import remote_children
from moot.core.state.status import WAITING

if TYPE_CHECKING:
    from moot.core.state.node import NodeState
    from moot.core.state.run import Run

#: artifact type of an approval that is about a decision
DECISION = "orchestrator-decision"


class Orchestrator(Struct, omit_defaults=True):
    """The supervisor of a run, with its newest decision."""

    agent_id: str
    decisions: int = 0
    #: decisions of the supervisor itself; a person made the others
    own: int = 0
    #: the turn of the newest decision, counted from 1, and the sequence at which it began
    iteration: int = 0
    began: int = 0
    #: the newest decision; empty when a person rejected it
    decision: dict[str, Any] = {}
    decided_seq: int = 0
    #: the routing of its question to a person, if the decision set one
    routing: str | None = None
    #: children started by dispatch nodes
    dispatched: int = 0
    #: living child -> the newest event of its handoff
    links: dict[str, int] = {}
    #: results of the newest decision's workers, in the order of their ends
    workers: list[dict[str, Any]] = []
    #: a person's answer to the newest decision, if it asked a question
    answer: list[Any] = []
    #: a person has approved the newest decision, for all of its attempts
    ratified: bool = False

    @property
    def over(self) -> bool:
        """No decision follows one that terminates."""
        return self.decision.get("kind") == "terminate"


def is_supervisor_question(run: "Run", owner: Any) -> bool:
    """Return whether a conversation of this owner is the supervisor's question to a person."""
    orchestrator = run.orchestrator
    if orchestrator is None or owner != orchestrator.agent_id:
        return False
    return bool(orchestrator.decision.get("kind") == "ask-user")


def _apply_decided(run: "Run", payload: SupervisorDecided, event: Event, at: int) -> None:
    if run.orchestrator is None:
        run.orchestrator = Orchestrator(payload.agent_id)
    orchestrator = run.orchestrator
    hints = event.known_hints
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    orchestrator.decisions += 1
    orchestrator.own += hints.dispatch is None
    turn = payload.iteration
    if turn != orchestrator.iteration:
        orchestrator.began = node.started_seq if node is not None else event.sequence
    orchestrator.iteration = turn
    orchestrator.workers, orchestrator.answer, orchestrator.ratified = [], [], False
    orchestrator.decision = payload.decision
    orchestrator.decided_seq = event.sequence
    orchestrator.routing = hints.routing
    if hints.dispatch in run.nodes:
        run.nodes[hints.dispatch].answer = []  # it belongs to the previous decision


def _apply_handoff_step(run: "Run", payload: HandoffStepped, event: Event, at: int) -> None:
    """Apply one step of a handoff to a worker or an attested child."""
    orchestrator, child = run.orchestrator, payload.child_run_id
    phase = payload.phase
    if phase == "dispatch.failed":
        remote_children.apply_dispatch_failed(run, event, at)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None and child is not None and node.child == child:
        _apply_attested_step(run, event, node, phase)
        return
    if orchestrator is None or child is None:
        return
    if phase == "dispatch.succeeded":
        orchestrator.links[child] = event.sequence
        orchestrator.dispatched += 1
    elif phase.startswith("child."):
        orchestrator.links.pop(child, None)
        remote_children.release_remote_child(run, event, child, at)
        _apply_worker_ended(run, event, child, phase.removeprefix("child."))
        orchestrator.workers.append(_worker_result(payload, phase.removeprefix("child.")))


def _apply_attested_step(run: "Run", event: Event, node: "NodeState", phase: str) -> None:
    """Apply one step of a handoff to a child that no supervisor requested."""
    node.link = event.sequence
    if phase.startswith("child.") and node.child is not None:
        run.children[node.child] = phase.removeprefix("child.")
        run.mirrored.pop(str(event.node_id), None)
        node.child = None
        node.held = event.known_hints.held


def apply_ratification(run: "Run", action: str | None) -> None:
    if run.orchestrator is not None and action == "accept":
        run.orchestrator.ratified = True


def apply_decision_answer(orchestrator: Orchestrator, hints: EventHints) -> None:
    """Apply a person's answer to a decision's question, or the rejection of the decision."""
    if hints.answer is not UNSET:
        orchestrator.answer = [hints.answer]
    if hints.rejected:
        orchestrator.decision = {}


def _worker_result(step: HandoffStepped, status: str) -> dict[str, Any]:
    """Return a worker's result as the supervisor sees it."""
    result = {"workerId": step.worker_id, "childRunId": step.child_run_id, "status": status}
    return result if step.error is None else {**result, "error": step.error.code}


def _apply_worker_ended(run: "Run", event: Event, child: str, status: str) -> None:
    run.children[child] = status
    run.mirrored.pop(event.node_id if event.node_id is not UNSET else "", None)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is None:
        return
    node.living.pop(child, None)
    node.waits.pop(child, None)
    mirror_wave(run, str(event.node_id), node)
    node.ends[child] = event.sequence
    end = event.known_hints.result
    result = {"child": child, "status": status, **(end if isinstance(end, dict) else {})}
    node.results = [*(node.results or []), result]


def apply_child_status(run: "Run", node_id: str, child: str, status: str) -> None:
    """Record that a child waits for an answer, or runs again."""
    node = run.nodes.get(node_id)
    statuses = run.mirrored if node is None or child not in node.living else node.waits
    key = node_id if statuses is run.mirrored else child
    if status in WAITING:
        statuses[key] = status
        remote_children.count_wait(run, child)
    else:
        statuses.pop(key, None)
    if node is not None and node.living:
        mirror_wave(run, node_id, node)


def _apply_asked_anew(run: "Run", payload: PeerAskedAnew, event: Event, at: int) -> None:
    """Replace the source's remote child by the branch's own; only its waiting status is reset."""
    old, new = remote_children.replace_remote_child(run, payload, event, at)
    if run.orchestrator is not None:
        run.orchestrator.links = remote_children.rename_key(run.orchestrator.links, old, new)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None:
        remote_children.rename_node_child(node, old, new)
        apply_child_status(run, str(event.node_id), new, "running")


def mirror_wave(run: "Run", node_id: str, node: "NodeState") -> None:
    """Show the node as waiting when all of its living workers wait, with the first one's status."""
    if node.living and all(child in node.waits for child in node.living):
        run.mirrored[node_id] = node.waits[next(iter(node.living))]
    else:
        run.mirrored.pop(node_id, None)


def count_lent_runs(run: "Run") -> int:
    """Count the runs that the living children may lead to, the children included."""
    return sum(
        node.lent.get(child, 0)
        for name in run.active
        if (node := run.nodes[name]).lent
        for child in (node.child, *node.living)
        if child is not None
    )


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    SupervisorDecided: _apply_decided,
    HandoffStepped: _apply_handoff_step,
    PeerAskedAnew: _apply_asked_anew,
}
