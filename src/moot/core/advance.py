"""The step after every step: start what is ready, pause what has drained, end what is done."""

from collections.abc import Iterable
from typing import Any

from moot.core import ending
from moot.core.events import NewEvent, iso
from moot.core.flow import Flow, FlowNode
from moot.core.graph import PortProblem, Ready, call_of, readiness
from moot.core.outcomes import Kind, NodeError
from moot.core.run import NodeState, NodeStatus, Pause, Run


def advance(run: Run, flow: Flow, at: int, after: tuple[str, ...] | None) -> list[NewEvent]:
    if not run.going:
        return []
    if run.pause is not None:
        return [] if executing(run) else [_drained(run.pause)]
    for node_id in run.active:
        if run.nodes[node_id].status is NodeStatus.INTERRUPTED:
            return begin(run, flow.nodes[node_id], at, run.nodes[node_id].attempt + 1)
    return _Step(run, flow, at).take(after)


def executing(run: Run) -> bool:
    """Whether a node is at work. Waiting for a child or a retry is not work."""
    return any(
        run.nodes[node_id].status is NodeStatus.RUNNING and run.nodes[node_id].child is None
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

    def take(self, after: tuple[str, ...] | None) -> list[NewEvent]:
        candidates = self._candidates(after)
        while candidates:
            before = len(self.overlay)
            for node_id in candidates:
                self._consider(self.flow.nodes[node_id])
                if self._ended():
                    return self.events
            fresh = list(self.overlay)[before:]
            candidates = self._successors(fresh)
        self._finish()
        return self.events

    def _candidates(self, after: tuple[str, ...] | None) -> list[str]:
        if after is None or len(self.run.active) + len(after) >= self._parallel():
            # The whole graph: a slot may have become free for a node that was ready long ago.
            open_nodes = [key for key in self.flow.nodes if key not in self.run.nodes]
            return self._sorted(open_nodes)
        if not after and not self.run.nodes:
            return list(self.flow.sources)
        return self._successors(after)

    def _successors(self, nodes: Iterable[str]) -> list[str]:
        found = {target: None for node_id in nodes for target in self.flow.nodes[node_id].targets}
        return self._sorted(
            [key for key in found if key not in self.run.nodes and key not in self.overlay]
        )

    def _sorted(self, nodes: list[str]) -> list[str]:
        if len(nodes) > 1:
            nodes.sort(key=lambda key: (self.flow.nodes[key].index, key))
        return nodes

    def _consider(self, node: FlowNode) -> None:
        if node.id in self.overlay or node.id in self.run.nodes:
            return
        match readiness(self.run, self.flow, node, self.overlay):
            case Ready.SKIP:
                self._skip(node, "trigger-rule")
            case Ready.RUN if node.definition.disabled:
                self._skip(node, "disabled")
            case Ready.RUN if len(self.run.active) + self.started < self._parallel():
                self._start(node)
            case _:
                pass

    def _skip(self, node: FlowNode, reason: str) -> None:
        payload = {"nodeId": node.id, "reason": reason}
        self.events.append(NewEvent("node.skipped", payload, node.id, cause=self._cause(node)))
        self.overlay[node.id] = NodeState(status=NodeStatus.SKIPPED, reason=reason)

    def _start(self, node: FlowNode) -> None:
        limit = self.run.limits.get("nodeExecutions", 0)
        if limit and self.run.executions + self.started + 1 > limit:
            self._breach(node, limit)
            return
        events = begin(self.run, node, self.at, 1, self._cause(node))
        self.events += events
        self.overlay[node.id] = NodeState(status=NodeStatus.RUNNING)
        self.started += 1

    def _breach(self, node: FlowNode, limit: int) -> None:
        cap = {
            "kind": "node-executions",
            "limit": limit,
            "observed": limit + 1,
            "nodeId": node.id,
        }
        error = {
            "code": "recursion_limit_exceeded",
            "message": f"The run may start {limit} nodes and wanted to start one more.",
        }
        self.events += ending.breach(self.run, cap, error, self.at)

    def _cause(self, node: FlowNode) -> int | None:
        """The newest end among the sources; within this decision, the event just before."""
        if any(edge.source_node_id in self.overlay for edge in node.incoming):
            return None
        ends = [
            self.run.nodes[edge.source_node_id].ended_seq
            for edge in node.incoming
            if edge.source_node_id in self.run.nodes
        ]
        return max(ends, default=0)

    def _finish(self) -> None:
        known = len(self.run.nodes) + len(self.overlay)
        if not self.run.active and not self.started and known == len(self.flow.nodes):
            self.events += ending.finish(self.run, self.flow, self.overlay, self.at)

    def _ended(self) -> bool:
        return bool(self.events) and self.events[-1].type == "run.failed"

    def _parallel(self) -> int:
        return self.run.limits.get("parallel", 0) or 1_000_000


def begin(
    run: Run, node: FlowNode, at: int, attempt: int, cause: int | None = None
) -> list[NewEvent]:
    """The start of an attempt, with the time a timer falls due: recorded before relied on."""
    payload: dict[str, Any] = {"nodeId": node.id, "typeId": node.type.type_id, "attempt": attempt}
    started = NewEvent("node.started", payload, node.id, cause=cause)
    if node.type.requires or node.type.requires_model:
        return _lacking(node, cause)
    if node.type.kind is not Kind.TIMER:
        return [started]
    assert node.type.duration is not None
    try:
        wait = node.type.duration(call_of(run, node, at, {}, attempt))
    except PortProblem as problem:
        return [started, failed(node, problem.error, attempt)]
    payload["dueAt"] = iso((at + wait) * 1000)
    return [started]


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
