"""The run as the protocol shows it, from its folded state."""

import hashlib
from typing import Any

from moot.api.http.request import encode
from moot.core.events import LOG_SCHEMA_VERSION, iso
from moot.core.runs import handles
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.engine.head import Head


def snapshot(head: Head) -> dict[str, Any]:
    run = head.run
    held = {**run.channels, **head.messages}
    shown: dict[str, Any] = {
        "runId": run.run_id,
        "workflowId": run.workflow_id,
        "status": run.status,
        "owner": {"tenant": run.tenant, "principal": run.principal},
        "startedAt": iso(run.started_at * 1000),
        "inputs": run.inputs,
        "variables": {**run.variables, **held},
        "nodeStates": {key: _node(run, state) for key, state in run.nodes.items()},
        "engineVersion": run.engine_version,
        "eventLogSchemaVersion": LOG_SCHEMA_VERSION,
        "metrics": metrics(run),
    }
    optional = {
        "completedAt": iso(run.ended_at * 1000) if run.ended_at else None,
        "outputs": run.outputs,
        "error": _error(run),
        "channels": {name: held[name] for name in run.declared if name in held}
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
        "runOrchestrator": _orchestrator(head),
        "definitionVersion": head.flow.definition.version,
        "agent": _agent(head),
        "treeRuns": 1 + run.spent if run.origin is not None and run.terminal else None,
    }
    shown.update({name: value for name, value in optional.items() if value is not None})
    return shown


def metrics(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {"eventCount": run.next_sequence, "nodeExecutions": run.executions}
    used = run.used
    if used is None:
        return found
    tokens = {"input": used.input_tokens, "output": used.output_tokens}
    found["openwopCost"] = {"tokens": tokens}
    found["modelCalls"] = used.calls
    if used.currency:
        found["cost"], found["currency"] = round(used.cost, 6), used.currency
        if used.currency.upper() == "USD":
            found["openwopCost"]["usd"] = round(used.cost, 6)
    return found


def encoded(head: Head) -> bytes:
    """The snapshot's bytes, kept until the run moves on."""
    sequence = head.run.next_sequence
    if head.cached is None or head.cached[0] != sequence:
        head.cached = (sequence, encode(snapshot(head)))
    return head.cached[1]


def etag(run: Run, intent: str = "") -> str:
    """Strong: the log decides everything a snapshot says, but for the link to an open question,
    which depends on its reader."""
    link = f".{intent}" if intent else ""
    return f'"{run.run_id}.{run.next_sequence}{link}"'


def mixed_etag(tag: str, children: list[dict[str, Any]]) -> str:
    """The children's statuses move without the parent's log."""
    digest = hashlib.sha256(encode(children)).hexdigest()[:16]
    return f'{tag[:-1]}.{digest}"'


def _node(run: Run, state: NodeState) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": state.status, "attempt": state.attempt}
    optional = {
        "startedAt": iso(state.started_at * 1000) if state.started_at else None,
        "dueAt": iso(state.due * 1000) if state.due is not None else None,
        "outputs": state.outputs,
        "error": state.error,
        "reason": state.reason,
        "childRunId": None if state.child in run.abroad else state.child,  # it has no id yet
    }
    shown.update({name: value for name, value in optional.items() if value is not None})
    return shown


def _error(run: Run) -> dict[str, Any] | None:
    """Closed in the protocol: code, message, details and nothing else."""
    if run.error is None:
        return None
    return {key: run.error[key] for key in ("code", "message", "details") if key in run.error}


def _orchestrator(head: Head) -> dict[str, Any] | None:
    found = head.run.orchestrator
    if found is None:
        return None
    member = head.run.members.get(found.agent_id)
    return {"agentId": found.agent_id} if member is None else handles.projected(member)


def _agent(head: Head) -> dict[str, Any] | None:
    """Who has the work in hand. Older logs do not say; there it is who the node at work is pinned
    to, else the first that any node is."""
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
