"""The step after every step: start what is ready, pause what has drained, end what is done."""

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from moot.core.events import NewEvent, iso
from moot.core.runs import finish
from moot.core.runs.readiness import PortProblem, Ready, asked, call_of, readiness
from moot.core.state.node import NodeState, Pause
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Kind, NodeError


def advance(run: Run, flow: Flow, at: int, after: tuple[str, ...] | None) -> list[NewEvent]:
    if not run.going:
        return []
    if run.pause is not None:
        return [] if executing(run) else [_drained(run.pause)]
    for node_id in run.active:
        if run.nodes[node_id].status is NodeStatus.INTERRUPTED:
            return begin(run, flow.nodes[node_id], at, run.nodes[node_id].attempt + 1, ())
    for dispatch, (supervisor, body) in flow.loops.items():
        if _comes_round(run, dispatch, supervisor):
            return _again(run, flow.nodes[supervisor], body, at)
    return _Step(run, flow, at).take(after)


def _comes_round(run: Run, dispatch: str, supervisor: str) -> bool:
    """Whether a loop has come to its end and its supervisor has not had the last word yet."""
    ended, began = run.nodes.get(dispatch), run.nodes.get(supervisor)
    return (
        ended is not None
        and began is not None
        and ended.status is NodeStatus.COMPLETED
        and began.status is NodeStatus.COMPLETED
        and run.orchestrator is not None
        and not run.orchestrator.over
    )


def _again(run: Run, supervisor: FlowNode, body: tuple[str, ...], at: int) -> list[NewEvent]:
    """The supervisor's next turn; the rest of the loop starts afresh after it."""
    last = max(run.nodes[name].ended_seq for name in body if name in run.nodes)
    attempt = run.nodes[supervisor.id].attempt + 1
    events = begin(run, supervisor, at, attempt, (), last)
    if events[0].type == "node.started":
        events[0].hints = {"again": list(body)}
    return events


def executing(run: Run) -> bool:
    """Whether a node is at work. Waiting for a child or a retry is not work."""
    return any(
        run.nodes[node_id].status is NodeStatus.RUNNING
        and run.nodes[node_id].child is None
        and not run.nodes[node_id].living
        for node_id in run.active
    )


def _drained(pause: Pause) -> NewEvent:
    payload: dict[str, Any] = {"drainPolicy": pause.policy}
    if pause.reason is not None:
        payload["reason"] = pause.reason
    return NewEvent("run.paused", payload)


class _Step:
    """One decision over the graph: skips spread at once, starts wait for the fold."""

    def __init__(self, run: Run, flow: Flow, at: int) -> None:
        self.run, self.flow, self.at = run, flow, at
        self.events: list[NewEvent] = []
        self.overlay: dict[str, NodeState] = {}
        self.started = 0
        self.parallel = run.limits.get("parallel", 0) or 1_000_000

    def take(self, after: tuple[str, ...] | None) -> list[NewEvent]:
        """By (index, id), however a node came to be looked at: all its sources come before it."""
        nodes = self.flow.nodes
        known = self.run.nodes
        waiting = [(nodes[key].index, key) for key in self._candidates(after) if key not in known]
        waiting.sort()  # a sorted list is a heap
        while waiting and len(self.run.active) + self.started < self.parallel:
            node_id = heappop(waiting)[1]
            if node_id in self.overlay or node_id in known:
                continue
            skipped = self._consider(nodes[node_id])
            if self._ended():
                return self.events
            if skipped:
                for target in nodes[node_id].targets:
                    heappush(waiting, (nodes[target].index, target))
        self._finish()
        return self.events

    def _candidates(self, after: tuple[str, ...] | None) -> Iterable[str]:
        if after is None or len(self.run.active) + len(after) >= self.parallel:
            # The whole graph: a slot may have become free for a node that was ready long ago.
            return self.flow.nodes
        if not after and not self.run.nodes:
            return self.flow.sources
        return {target for node_id in after for target in self.flow.nodes[node_id].targets}

    def _consider(self, node: FlowNode) -> bool:
        """Whether the node was skipped, so that others may be next."""
        match readiness(self.run, self.flow, node, self.overlay):
            case Ready.SKIP:
                self._skip(node, "trigger-rule")
                return True
            case Ready.RUN if node.definition.disabled:
                self._skip(node, "disabled")
                return True
            case Ready.RUN if len(self.run.active) + self.started < self.parallel:
                self._start(node)
                return False
            case _:
                return False

    def _skip(self, node: FlowNode, reason: str) -> None:
        payload = {"nodeId": node.id, "reason": reason}
        self.events.append(NewEvent("node.skipped", payload, node.id, cause=self._cause(node)))
        self.overlay[node.id] = NodeState(status=NodeStatus.SKIPPED, reason=reason)

    def _start(self, node: FlowNode) -> None:
        self.events += begin(
            self.run, node, self.at, self._attempt(node), self.events, self._cause(node)
        )
        self.overlay[node.id] = NodeState(status=NodeStatus.RUNNING)
        self.started += 1

    def _attempt(self, node: FlowNode) -> int:
        """Attempts of a node are counted on from round to round: ids are made of them."""
        return self.run.attempts.get(node.id, 0) + 1

    def _cause(self, node: FlowNode) -> int | None:
        """The newest end among the sources; within this decision, the event just before."""
        newest = 0
        for edge in node.incoming:
            if edge.source_node_id in self.overlay:
                return None
            source = self.run.nodes.get(edge.source_node_id)
            if source is not None:
                newest = max(newest, source.ended_seq)
        return newest

    def _finish(self) -> None:
        known = len(self.run.nodes) + len(self.overlay)
        if not self.run.active and not self.started and known == len(self.flow.nodes):
            self.events += finish.finish(self.run, self.flow, self.overlay, self.at)

    def _ended(self) -> bool:
        return bool(self.events) and self.events[-1].type == "run.failed"


def begin(
    run: Run,
    node: FlowNode,
    at: int,
    attempt: int,
    said: Sequence[NewEvent],
    cause: int | None = None,
) -> list[NewEvent]:
    """The start of an attempt, with the time a timer falls due: recorded before relied on.

    When the run may start no more, its end instead. ``said`` is what the same decision has caused
    so far.
    """
    if node.type.requires or node.type.requires_model:
        return _lacking(node, cause)
    limit = run.limits.get("nodeExecutions", 0)
    if limit and run.executions + sum(new.type == "node.started" for new in said) >= limit:
        return _one_too_many(run, node, limit, at, said)
    payload: dict[str, Any] = {"nodeId": node.id, "typeId": node.type.type_id, "attempt": attempt}
    started = NewEvent("node.started", payload, node.id, cause=cause)
    if node.type.kind is not Kind.TIMER:
        return [started]
    assert node.type.duration is not None
    try:
        wait = asked(node.type.duration, call_of(run, node, at, {}, attempt))
    except PortProblem as problem:
        return [started, failed(node, problem.error, attempt)]
    payload["dueAt"] = iso((at + wait) * 1000)
    return [started]


def _one_too_many(
    run: Run, node: FlowNode, limit: int, at: int, said: Sequence[NewEvent]
) -> list[NewEvent]:
    cap = {"kind": "node-executions", "limit": limit, "observed": limit + 1, "nodeId": node.id}
    error = {
        "code": "recursion_limit_exceeded",
        "message": f"The run may start {limit} nodes and wanted to start one more.",
    }
    return finish.breach(run, cap, error, at, said)


def _lacking(node: FlowNode, cause: int | None) -> list[NewEvent]:
    """A node that needs what nobody here provides is refused before it starts."""
    events = []
    missing = [*node.type.requires, *node.type.requires_model]
    if node.type.requires_model:
        payload: dict[str, Any] = {
            "nodeId": node.id,
            "provider": "none",
            "model": "none",
            "missingCapabilities": list(node.type.requires_model),
        }
        events.append(NewEvent("model.capability.insufficient", payload, node.id, cause=cause))
    error = NodeError(
        code="capability_not_provided",
        message=f"Node '{node.id}' needs {', '.join(missing)}, which this host does not provide.",
        details={"capability": missing[0]},
        retryable=False,
    )
    return [*events, failed(node, error, 1)]


def failed(node: FlowNode, error: NodeError, attempt: int, cause: int | None = None) -> NewEvent:
    payload = {"nodeId": node.id, "error": error.as_payload(), "attempts": max(1, attempt)}
    return NewEvent("node.failed", payload, node.id, cause=cause)
