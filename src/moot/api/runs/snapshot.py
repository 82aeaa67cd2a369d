"""Build the protocol's snapshot of a run from its folded state."""

import hashlib
from typing import Any

from moot.api.http.request import encode
from moot.core.events import LOG_SCHEMA_VERSION, iso
from moot.core.runs import standing_agents
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.engine.head import Head


def run_snapshot(head: Head) -> dict[str, Any]:
    run = head.run
    channels = {**run.channels, **head.messages}
    view: dict[str, Any] = {
        "runId": run.run_id,
        "workflowId": run.workflow_id,
        "status": run.status,
        "owner": {"tenant": run.tenant, "principal": run.principal},
        "startedAt": iso(run.started_at * 1000),
        "inputs": run.inputs,
        "variables": {**run.variables, **channels},
        "nodeStates": {key: _node_view(run, state) for key, state in run.nodes.items()},
        "engineVersion": run.engine_version,
        "eventLogSchemaVersion": LOG_SCHEMA_VERSION,
        "metrics": run_metrics(run),
    }
    optional = {
        "completedAt": iso(run.ended_at * 1000) if run.ended_at else None,
        "outputs": run.outputs,
        "error": _error_view(run),
        "channels": {name: channels[name] for name in run.declared if name in channels}
        if run.declared
        else None,
        "tags": run.tags or None,
        "metadata": run.metadata or None,
        "configurable": run.configurable or None,
        "scopeId": run.scope_id,
        "parentRunId": run.parent_run,
        "parentNodeId": run.parent_node,
        "pausedAt": iso(run.paused_at * 1000) if run.paused_at else None,
        "draining": True if run.pause else None,
        "runOrchestrator": _orchestrator_view(head),
        "definitionVersion": head.flow.definition.version,
        "agent": _current_agent(head),
        "treeRuns": 1 + run.spent if run.origin is not None and run.terminal else None,
    }
    view.update({name: value for name, value in optional.items() if value is not None})
    return view


def run_metrics(run: Run) -> dict[str, Any]:
    metrics: dict[str, Any] = {"eventCount": run.next_sequence, "nodeExecutions": run.executions}
    used = run.used
    if used is None:
        return metrics
    tokens = {"input": used.input_tokens, "output": used.output_tokens}
    metrics["openwopCost"] = {"tokens": tokens}
    metrics["modelCalls"] = used.calls
    if used.currency:
        metrics["cost"], metrics["currency"] = round(used.cost, 6), used.currency
        if used.currency.upper() == "USD":
            metrics["openwopCost"]["usd"] = round(used.cost, 6)
    return metrics


def encoded_snapshot(head: Head) -> bytes:
    """Return the snapshot's bytes, cached until the run moves on."""
    sequence = head.run.next_sequence
    if head.cached is None or head.cached[0] != sequence:
        head.cached = (sequence, encode(run_snapshot(head)))
    return head.cached[1]


def run_etag(run: Run, intent: str = "") -> str:
    """Return a strong ETag.

    The log decides the snapshot, except for the link to an open question, which depends on the
    reader.
    """
    link = f".{intent}" if intent else ""
    return f'"{run.run_id}.{run.next_sequence}{link}"'


def etag_with_children(tag: str, children: list[dict[str, Any]]) -> str:
    """Add the children's statuses to the tag, because they change without the parent's log."""
    digest = hashlib.sha256(encode(children)).hexdigest()[:16]
    return f'{tag[:-1]}.{digest}"'


def _node_view(run: Run, state: NodeState) -> dict[str, Any]:
    view: dict[str, Any] = {"status": state.status, "attempt": state.attempt}
    optional = {
        "startedAt": iso(state.started_at * 1000) if state.started_at else None,
        "dueAt": iso(state.due * 1000) if state.due is not None else None,
        "outputs": state.outputs,
        "error": state.error,
        "reason": state.reason,
        "childRunId": None
        if state.child in run.abroad
        else state.child,  # a run on a peer has no id yet
    }
    view.update({name: value for name, value in optional.items() if value is not None})
    return view


def _error_view(run: Run) -> dict[str, Any] | None:
    """Return the error with the only three fields that the protocol allows."""
    if run.error is None:
        return None
    return {key: run.error[key] for key in ("code", "message", "details") if key in run.error}


def _orchestrator_view(head: Head) -> dict[str, Any] | None:
    orchestrator = head.run.orchestrator
    if orchestrator is None:
        return None
    member = head.run.members.get(orchestrator.agent_id)
    return (
        {"agentId": orchestrator.agent_id}
        if member is None
        else standing_agents.agent_from_member(member)
    )


def _current_agent(head: Head) -> dict[str, Any] | None:
    """Return the agent that does the work.

    Older logs do not name it; then take the agent of the active node, or of the first node with
    one.
    """
    if head.run.agent is not None:
        return head.run.agent
    pins = head.flow.agents
    return next(
        (
            pins[node_id]
            for node_id in (*reversed(head.run.active), *head.run.nodes)
            if node_id in pins
        ),
        None,
    )
