"""Start ready nodes, pause a drained run and finish a run whose nodes ended."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from msgspec.structs import replace

from moot.core.events import NewEvent, iso
from moot.core.payloads.base import RecordedError
from moot.core.payloads.nodes import (
    CapabilityInsufficient,
    NodeCompleted,
    NodeFailed,
    NodeSkipped,
    NodeStarted,
)
from moot.core.payloads.runs import CapBreached, PauseBegan, RunFailed
from moot.core.runs import finish
from moot.core.runs.readiness import (
    PortProblem,
    Readiness,
    build_node_call,
    call_node_type,
    node_readiness,
)
from moot.core.state.node import NodeState
from moot.core.state.run import Run, RunPause
from moot.core.state.status import NodeStatus
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeError, NodeKind


def advance_run(run: Run, flow: Flow, at: int, after: tuple[str, ...] | None) -> list[NewEvent]:
    if not run.going:
        return []
    if run.pause is not None:
        return [] if is_executing(run) else [_paused_event(run.pause)]
    for node_id in run.active:
        if run.nodes[node_id].status is NodeStatus.INTERRUPTED:
            return start_attempt(run, flow.nodes[node_id], at, run.nodes[node_id].attempt + 1, ())
    for dispatch, (supervisor, body) in flow.loops.items():
        if _is_round_complete(run, dispatch, supervisor):
            return _next_round(run, flow.nodes[supervisor], body, at)
    return _Step(run, flow, at).take(after)


def _is_round_complete(run: Run, dispatch: str, supervisor: str) -> bool:
    """Return whether a loop's round is complete and its supervisor may take another turn."""
    dispatch_state, supervisor_state = run.nodes.get(dispatch), run.nodes.get(supervisor)
    return (
        dispatch_state is not None
        and supervisor_state is not None
        and dispatch_state.status is NodeStatus.COMPLETED
        and supervisor_state.status is NodeStatus.COMPLETED
        and run.orchestrator is not None
        and not run.orchestrator.over
    )


def _next_round(run: Run, supervisor: FlowNode, body: tuple[str, ...], at: int) -> list[NewEvent]:
    """Start the supervisor's next turn; the other nodes of the loop start over after it."""
    last = max(run.nodes[name].ended_seq for name in body if name in run.nodes)
    attempt = run.nodes[supervisor.id].attempt + 1
    events = start_attempt(run, supervisor, at, attempt, (), last)
    if isinstance(events[0].payload, NodeStarted):
        events[0].hints = {"again": list(body)}
    return events


def is_executing(run: Run) -> bool:
    """Return whether a node is working. Waiting for a child or a retry does not count."""
    return any(
        run.nodes[node_id].status is NodeStatus.RUNNING
        and run.nodes[node_id].child is None
        and not run.nodes[node_id].living
        for node_id in run.active
    )


def _paused_event(pause: RunPause) -> NewEvent:
    return NewEvent(PauseBegan(drain_policy=pause.policy, reason=pause.reason))


class _Step:
    """One pass over the graph. Skips spread at once; starts take effect with the fold."""

    def __init__(self, run: Run, flow: Flow, at: int) -> None:
        self.run, self.flow, self.at = run, flow, at
        self.events: list[NewEvent] = []
        self.overlay: dict[str, NodeState] = {}
        self.started = 0
        self.parallel = run.limits.parallel or 1_000_000

    def take(self, after: tuple[str, ...] | None) -> list[NewEvent]:
        """Visit nodes by (index, id), so that every source comes before its targets."""
        nodes = self.flow.nodes
        states = self.run.nodes
        waiting = [(nodes[key].index, key) for key in self._candidates(after) if key not in states]
        waiting.sort()  # a sorted list is a heap
        while waiting and len(self.run.active) + self.started < self.parallel:
            node_id = heappop(waiting)[1]
            if node_id in self.overlay or node_id in states:
                continue
            skipped = self._consider(nodes[node_id])
            if self._has_failed():
                return self.events
            if skipped:
                for target in nodes[node_id].targets:
                    heappush(waiting, (nodes[target].index, target))
        self._finish()
        return self.events

    def _candidates(self, after: tuple[str, ...] | None) -> Iterable[str]:
        if after is None or len(self.run.active) + len(after) >= self.parallel:
            # Look at every node: one that was ready earlier may have waited for a free slot.
            return self.flow.nodes
        if not after and not self.run.nodes:
            return self.flow.sources
        return {target for node_id in after for target in self.flow.nodes[node_id].targets}

    def _consider(self, node: FlowNode) -> bool:
        """Skip or start the node. Return True if it was skipped, so that its targets are next."""
        match node_readiness(self.run, self.flow, node, self.overlay):
            case Readiness.SKIP:
                self._skip(node, "trigger-rule")
                return True
            case Readiness.RUN if node.definition.disabled:
                self._skip(node, "disabled")
                return True
            case Readiness.RUN if len(self.run.active) + self.started < self.parallel:
                self._start(node)
                return False
            case _:
                return False

    def _skip(self, node: FlowNode, reason: str) -> None:
        payload = NodeSkipped(node_id=node.id, reason=reason)
        self.events.append(NewEvent(payload, node.id, cause=self._cause(node)))
        self.overlay[node.id] = NodeState(status=NodeStatus.SKIPPED, reason=reason)

    def _start(self, node: FlowNode) -> None:
        self.events += start_attempt(
            self.run, node, self.at, self._attempt(node), self.events, self._cause(node)
        )
        self.overlay[node.id] = NodeState(status=NodeStatus.RUNNING)
        self.started += 1

    def _attempt(self, node: FlowNode) -> int:
        """Count attempts across the rounds of a loop, because ids are derived from them."""
        return self.run.attempts.get(node.id, 0) + 1

    def _cause(self, node: FlowNode) -> int | None:
        """Return the newest end among the sources, or None when this pass made it."""
        newest = 0
        for edge in node.incoming:
            if edge.source_node_id in self.overlay:
                return None
            source = self.run.nodes.get(edge.source_node_id)
            if source is not None:
                newest = max(newest, source.ended_seq)
        return newest

    def _finish(self) -> None:
        total = len(self.run.nodes) + len(self.overlay)
        if not self.run.active and not self.started and total == len(self.flow.nodes):
            self.events += finish.finish_run(self.run, self.flow, self.overlay, self.at)

    def _has_failed(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1].payload, RunFailed)


def start_attempt(
    run: Run,
    node: FlowNode,
    at: int,
    attempt: int,
    events: Sequence[NewEvent],
    cause: int | None = None,
) -> list[NewEvent]:
    """Start an attempt, or end the run when it may start no more nodes.

    A timer's due time is part of the start. ``events`` are those of the same decision so far.
    """
    if node.type.requires or node.type.requires_model:
        return _missing_capability(node, cause)
    limit = run.limits.node_executions
    if (
        limit
        and run.executions + sum(isinstance(new.payload, NodeStarted) for new in events) >= limit
    ):
        return _execution_limit_reached(run, node, limit, at, events)
    started = NodeStarted(node_id=node.id, type_id=node.type.type_id, attempt=attempt)
    if node.type.kind is not NodeKind.TIMER:
        return [NewEvent(started, node.id, cause=cause)]
    assert node.type.duration is not None
    try:
        wait = call_node_type(node.type.duration, build_node_call(run, node, at, {}, attempt))
    except PortProblem as problem:
        failed = node_failed_event(node, problem.error, attempt)
        return [NewEvent(started, node.id, cause=cause), failed]
    timed = replace(started, due_at=iso((at + wait) * 1000))
    return [NewEvent(timed, node.id, cause=cause)]


def _execution_limit_reached(
    run: Run, node: FlowNode, limit: int, at: int, events: Sequence[NewEvent]
) -> list[NewEvent]:
    cap = CapBreached(kind="node-executions", limit=limit, observed=limit + 1, node_id=node.id)
    message = f"The run may start {limit} nodes and wanted to start one more."
    error = RecordedError(code="recursion_limit_exceeded", message=message)
    return finish.fail_at_limit(run, cap, error, at, events)


def _missing_capability(node: FlowNode, cause: int | None) -> list[NewEvent]:
    """Fail a node that needs a capability this host does not provide."""
    events = []
    missing = [*node.type.requires, *node.type.requires_model]
    if node.type.requires_model:
        payload = CapabilityInsufficient(
            node_id=node.id,
            provider="none",
            model="none",
            missing_capabilities=list(node.type.requires_model),
        )
        events.append(NewEvent(payload, node.id, cause=cause))
    error = NodeError(
        code="capability_not_provided",
        message=f"Node '{node.id}' needs {', '.join(missing)}, which this host does not provide.",
        details={"capability": missing[0]},
        retryable=False,
    )
    return [*events, node_failed_event(node, error, 1)]


def node_failed_event(
    node: FlowNode, error: NodeError, attempt: int, cause: int | None = None
) -> NewEvent:
    payload = NodeFailed(node_id=node.id, error=error.as_payload(), attempts=max(1, attempt))
    return NewEvent(payload, node.id, cause=cause)


def node_completed_event(
    node: FlowNode, state: NodeState, outputs: dict[str, Any], at: int
) -> NewEvent:
    payload = NodeCompleted(
        node_id=node.id, outputs=outputs, duration_ms=max(0, at - state.started_at)
    )
    return NewEvent(payload, node.id, cause=state.started_seq)
