"""The state of one node of a run, and the fold of its events."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event, millis
from moot.core.payloads.base import Payload, RecordedError
from moot.core.payloads.hints import HeldOutputs
from moot.core.payloads.nodes import (
    NodeCancelled,
    NodeCompleted,
    NodeDispatched,
    NodeFailed,
    NodeRetried,
    NodeSkipped,
    NodeStarted,
)
from moot.core.payloads.supervisors import ChildForked
from moot.core.state import agents, memory, remote_children, supervisor
from moot.core.state.status import GOING, NodeStatus

if TYPE_CHECKING:
    from moot.core.state.run import Run

NodeEnd = NodeCompleted | NodeFailed | NodeSkipped | NodeCancelled


NODE_ENDS = {
    NodeCompleted.event_type: NodeStatus.COMPLETED,
    NodeFailed.event_type: NodeStatus.FAILED,
    NodeSkipped.event_type: NodeStatus.SKIPPED,
    NodeCancelled.event_type: NodeStatus.CANCELLED,
}


class NodeState(Struct, omit_defaults=True):
    """The current attempt of a node, and its result."""

    status: NodeStatus
    attempt: int = 0
    started_at: int = 0
    started_seq: int = 0
    ended_seq: int = -1
    due: int | None = None
    outputs: dict[str, Any] | None = None
    error: RecordedError | None = None
    reason: str | None = None
    #: the child run this attempt waits for, and how many it has started
    child: str | None = None
    children: int = 0
    results: list[Any] | None = None
    #: of an attested child: the newest event of its handoff, and its outputs until a person has
    #: reviewed them
    link: int = 0
    held: HeldOutputs | None = None
    #: child -> how many runs it may lead to
    lent: dict[str, int] = {}
    #: the answer to the last question of this attempt
    answer: list[Any] = []
    #: of a dispatch node: living child -> number of its worker; child -> sequence of its end
    living: dict[str, int] = {}
    ends: dict[str, int] = {}
    #: living child that waits -> its status
    waits: dict[str, str] = {}
    #: failed attempts that were retried; an attempt that a pause cut short does not count
    failures: int = 0
    #: time of this attempt in which the run was paused or the node waited for an answer
    paused_ms: int = 0
    #: event type -> how many of them the agent of this attempt has caused (deltas: in this block)
    said: dict[str, int] = {}
    #: tool call that has not returned -> its sequence
    calls: dict[str, int] = {}
    #: decision of this attempt -> a person's answer to it
    rulings: dict[str, Any] = {}


def node_id_of(event: Event) -> str:
    if event.node_id is not UNSET:
        return event.node_id
    return str(getattr(event.payload, "node_id", None) or "")


def due_time(event: Event) -> str | None:
    """Return the due time of the wait that the event begins."""
    return event.known_hints.due_at or getattr(event.payload, "due_at", None)


def _apply_node_started(run: "Run", payload: NodeStarted, event: Event, at: int) -> None:
    node_id = node_id_of(event)
    due = due_time(event)
    hints = event.known_hints
    before = run.nodes.get(node_id) if hints.again is None else None
    run.nodes[node_id] = NodeState(
        status=NodeStatus.RUNNING,
        attempt=payload.attempt,
        started_at=at,
        started_seq=event.sequence,
        due=millis(due) if due else None,
        failures=before.failures if before is not None else 0,
    )
    run.active[node_id] = None
    run.executions += 1
    agents.apply_pinned_agent(run, payload.agent)
    for name in hints.again or ():  # the nodes of a loop that begins its next round
        node = run.nodes.pop(name, None)
        if node is not None:
            run.attempts[name] = node.attempt
    if hints.again is not None:
        run.attempts[node_id] = payload.attempt - 1
    memory.apply_supervisor_turn(run, hints.memory_revision)


def _apply_node_ended(run: "Run", payload: NodeEnd, event: Event, at: int) -> None:
    node_id = node_id_of(event)
    node = run.nodes.get(node_id)
    if node is None:
        node = run.nodes[node_id] = NodeState(status=NodeStatus.RUNNING)
    node.status = NODE_ENDS[event.type]
    node.ended_seq = event.sequence
    node.due = None
    node.outputs = payload.outputs if isinstance(payload, NodeCompleted) else node.outputs
    node.error = payload.error if isinstance(payload, NodeFailed) else None
    node.reason = payload.reason if isinstance(payload, NodeSkipped | NodeCancelled) else None
    node.results = node.held = None
    hints = event.known_hints
    run.spent += remote_children.count_kept_runs(run, node, hints)
    node.living, node.ends, node.waits, node.answer = {}, {}, {}, []
    node.said, node.calls, node.rulings = {}, {}, {}
    if run.orchestrator is not None:
        supervisor.apply_decision_answer(run.orchestrator, hints)
    run.interrupts.pop(node_id, None)
    run.mirrored.pop(node_id, None)
    if node.child is not None and run.children.get(node.child) is None:
        status = hints.child_status or (node.outputs or {}).get("childStatus")
        remote_children.release_child(run, event, node.child, status, at)
    run.active.pop(node_id, None)


def _apply_node_retried(run: "Run", payload: NodeRetried, event: Event, at: int) -> None:
    node = run.nodes.get(node_id_of(event))
    if node is not None:
        hints = event.known_hints
        node.status = NodeStatus.RETRYING
        node.failures += 1
        node.due = at + payload.delay_ms
        node.error = payload.last_error
        run.spent += remote_children.count_kept_runs(run, node, hints)
        if node.child is not None and event.hints is not UNSET:
            remote_children.release_child(run, event, node.child, hints.child_status, at)
        node.child = None
        run.mirrored.pop(node_id_of(event), None)


def _apply_node_dispatched(run: "Run", payload: NodeDispatched, event: Event, at: int) -> None:
    """Apply the begin, a wait or the end of a child.

    The child begins where the event has a loan or a peer request in its hints, or no status.
    """
    child = payload.child_run_id
    hints = event.known_hints
    began = hints.tree is not None or hints.ask_id is not None
    status = None if began else payload.child_status
    node = run.nodes.get(node_id_of(event))
    if status in GOING:
        supervisor.apply_child_status(run, node_id_of(event), child, str(status))
        return
    run.mirrored.pop(node_id_of(event), None)
    if hints.ask_id is not None:
        remote_children.identify_remote_child(run, node, payload, event, hints.ask_id)
        return
    remote_children.release_child(run, event, child, status, at)
    run.children[child] = status
    if node is None:
        return
    if status is None:
        if hints.worker is not None:
            node.living[child] = hints.worker
        else:
            node.child, node.lent = child, {}
        if hints.tree is not None:
            node.lent[child] = hints.tree
        node.children += 1
    else:
        node.child = None
        node.results = [*(node.results or []), None if hints.result is UNSET else hints.result]


def _apply_child_forked(run: "Run", payload: ChildForked, event: Event, at: int) -> None:
    """Replace the source's child by the branch's own child."""
    old, new = payload.child_run_id, payload.fork_run_id
    run.children = remote_children.rename_key(run.children, old, new)
    memory.add_forked_child(run, old, new, event.known_hints.given)
    if run.orchestrator is not None:
        run.orchestrator.links = remote_children.rename_key(run.orchestrator.links, old, new)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None:
        remote_children.rename_node_child(node, old, new)


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    NodeStarted: _apply_node_started,
    NodeRetried: _apply_node_retried,
    NodeDispatched: _apply_node_dispatched,
    NodeCompleted: _apply_node_ended,
    NodeFailed: _apply_node_ended,
    NodeSkipped: _apply_node_ended,
    NodeCancelled: _apply_node_ended,
    ChildForked: _apply_child_forked,
}
