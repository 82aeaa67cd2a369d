"""Build the protocol's snapshot of a run from its folded state."""

import hashlib

import msgspec

from moot.api.http.request import encode
from moot.core.events import LOG_SCHEMA_VERSION, iso
from moot.core.runs import standing_agents
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.engine.head import Head
from moot.wire.json import JsonObject
from moot.wire.runs import (
    ChildRun,
    ModelCost,
    NodeView,
    RunFailure,
    RunMetrics,
    RunOwner,
    Snapshot,
    TokenCount,
)


def run_snapshot(head: Head) -> Snapshot:
    run = head.run
    channels = {**run.channels, **head.messages}
    declared = {name: channels[name] for name in run.declared if name in channels}
    return Snapshot(
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        status=run.status,
        owner=RunOwner(tenant=run.tenant, principal=run.principal),
        started_at=iso(run.started_at * 1000),
        inputs=run.inputs,
        variables={**run.variables, **channels},
        node_states={key: _node_view(run, state) for key, state in run.nodes.items()},
        engine_version=run.engine_version,
        event_log_schema_version=LOG_SCHEMA_VERSION,
        metrics=run_metrics(run),
        completed_at=_iso_or_none(run.ended_at),
        outputs=run.outputs,
        error=_error_view(run),
        channels=declared if run.declared else None,
        tags=run.tags,
        metadata=run.metadata,
        configurable=run.configurable,
        scope_id=run.scope_id,
        parent_run_id=run.parent_run,
        parent_node_id=run.parent_node,
        paused_at=_iso_or_none(run.paused_at),
        draining=run.pause is not None,
        run_orchestrator=_orchestrator_view(head),
        definition_version=head.flow.definition.version,
        agent=_current_agent(head),
        tree_runs=1 + run.spent if run.origin is not None and run.terminal else None,
    )


def _iso_or_none(millis: int | None) -> str | None:
    return iso(millis * 1000) if millis else None


def run_metrics(run: Run) -> RunMetrics:
    used = run.used
    if used is None:
        return RunMetrics(event_count=run.next_sequence, node_executions=run.executions)
    cost = round(used.cost, 6) if used.currency else None
    is_dollars = bool(used.currency) and used.currency.upper() == "USD"
    tokens = TokenCount(input=used.input_tokens, output=used.output_tokens)
    return RunMetrics(
        event_count=run.next_sequence,
        node_executions=run.executions,
        openwop_cost=ModelCost(tokens=tokens, usd=cost if is_dollars else None),
        model_calls=used.calls,
        cost=cost,
        currency=used.currency or None,
    )


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


def etag_with_children(tag: str, children: list[ChildRun]) -> str:
    """Add the children's statuses to the tag, because they change without the parent's log."""
    digest = hashlib.sha256(encode(children)).hexdigest()[:16]
    return f'{tag[:-1]}.{digest}"'


def _node_view(run: Run, state: NodeState) -> NodeView:
    return NodeView(
        status=state.status,
        attempt=state.attempt,
        started_at=_iso_or_none(state.started_at),
        due_at=iso(state.due * 1000) if state.due is not None else None,
        outputs=state.outputs,
        error=None if state.error is None else msgspec.to_builtins(state.error),
        reason=state.reason,
        # a run on a peer has no id yet
        child_run_id=None if state.child in run.abroad else state.child,
    )


def _error_view(run: Run) -> RunFailure | None:
    """Return the error with the only three fields that the protocol allows."""
    error = run.error
    if error is None:
        return None
    return RunFailure(code=error.code, message=error.message, details=error.details or None)


def _orchestrator_view(head: Head) -> JsonObject | None:
    orchestrator = head.run.orchestrator
    if orchestrator is None:
        return None
    member = head.run.members.get(orchestrator.agent_id)
    return (
        {"agentId": orchestrator.agent_id}
        if member is None
        else standing_agents.agent_from_member(member)
    )


def _current_agent(head: Head) -> JsonObject | None:
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
