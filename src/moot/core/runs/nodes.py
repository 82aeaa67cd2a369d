"""Turn the outcomes and reports of nodes into events."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct

from moot.core.errors import BadRequest, ChannelAccessDenied, Conflict, RunPaused
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.json.schema import schema_problems
from moot.core.payloads.nodes import (
    ArtifactCreated,
    ChannelWritten,
    NodeCompleted,
    NodeRetried,
    VariableChanged,
)
from moot.core.runs.advance import node_failed_event
from moot.core.runs.readiness import PortProblem, build_node_call
from moot.core.secrets import mask_value
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows import channels
from moot.core.workflows.channels import ChannelRule
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import (
    ChannelWrite,
    Completed,
    Failed,
    NodeError,
    Outcome,
    error_from_exception,
)


class Emit(Struct, frozen=True):
    """Facts that a running node reports before it is done.

    When the attempt is over, the host drops them, or refuses them if ``required`` is set.
    """

    node_id: str
    attempt: int
    events: tuple[NewEvent, ...]
    at: int
    variables: Mapping[str, object] = {}
    writes: tuple[ChannelWrite, ...] = ()
    required: bool = False


REDUCERS = frozenset({"replace", "append", "merge", "counter", "votes", "feedback", "message"})


def compute_outcome(
    run: Run, flow: Flow, node_id: str, at: int, sealed: Mapping[str, object]
) -> Outcome | None:
    """Return the outcome of a pure node, or None when it is not running."""
    state = running_attempt(run, node_id, run.nodes[node_id].attempt)
    if state is None:
        return None
    node = flow.nodes[node_id]
    assert node.type.instant is not None
    try:
        return node.type.instant(build_node_call(run, node, at, sealed, state.attempt))
    except PortProblem as problem:
        return Failed(problem.error)
    except (Exception, SystemExit) as error:
        return Failed(error_from_exception(error))


def finish_attempt(
    run: Run, flow: Flow, node_id: str, attempt: int, outcome: Completed | Failed, at: int
) -> list[NewEvent]:
    """Return the events of an attempt's outcome; none when the attempt is outdated."""
    state = running_attempt(run, node_id, attempt)
    if state is None:
        return []
    node = flow.nodes[node_id]
    if isinstance(outcome, Completed):
        try:
            return _completion_events(run, flow, node, state, outcome, at)
        except BadRequest as refusal:
            error = NodeError(
                code=refusal.code, message=refusal.message, details=refusal.details, retryable=False
            )
            outcome = Failed(error)
    return failure_events(run, node, state, outcome, at)


def running_attempt(run: Run, node_id: str, attempt: int) -> NodeState | None:
    state = run.nodes.get(node_id)
    if not run.going or state is None or state.attempt != attempt:
        return None
    return state if state.status is NodeStatus.RUNNING else None


def _completion_events(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, outcome: Completed, at: int
) -> list[NewEvent]:
    cause = state.started_seq
    events = []
    if outcome.variables:
        events += variable_events(run, flow, outcome.variables, node.id, cause)
    if outcome.writes:
        events += write_events(run, flow, node, outcome.writes, at)
    for number, artifact in enumerate(outcome.artifacts):
        events.append(_artifact_event(run, node, state, number, artifact, at))
    events += [NewEvent(payload, node.id, cause=cause) for payload in outcome.told]
    visible, sealed = _mask_outputs(flow, node, outcome.outputs)
    result = NodeCompleted(
        node_id=node.id, outputs=visible, duration_ms=max(0, at - state.started_at)
    )
    done = NewEvent(result, node.id, cause=cause, sealed=sealed or None)
    return [*events, done]


def _mask_outputs(
    flow: Flow, node: FlowNode, outputs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, object]]:
    """Mask the sensitive ports for the log and return their values to be sealed."""
    if not node.definition.output_sensitivity:
        return outputs, {}
    hidden = {port for port, yes in node.definition.output_sensitivity.items() if yes}
    if not hidden.intersection(outputs):
        return outputs, {}
    sealed = {f"out:{node.id}:{port}": outputs[port] for port in hidden if port in outputs}
    visible = {
        port: mask_value(flow.masking, value) if port in hidden else value
        for port, value in outputs.items()
    }
    return {port: value for port, value in visible.items() if value is not UNSET}, sealed


def failure_events(
    run: Run, node: FlowNode, state: NodeState, outcome: Failed, at: int
) -> list[NewEvent]:
    events = [
        NewEvent(payload, node.id, cause=None if number else state.started_seq)
        for number, payload in enumerate(outcome.because)
    ]
    if outcome.error.retryable and state.failures < node.retries:
        retried = NodeRetried(
            node_id=node.id,
            attempt=state.attempt + 1,
            delay_ms=node.delay_before(state.failures + 2),
            last_error=outcome.error.as_payload(),
        )
        events.append(NewEvent(retried, node.id, cause=state.started_seq))
    else:
        cause = None if events else state.started_seq
        events.append(node_failed_event(node, outcome.error, state.attempt, cause))
    return events


def emit_events(run: Run, flow: Flow, command: Emit) -> list[NewEvent]:
    """Return the facts that a node reports while it works.

    After the end of the attempt there are none; raise Conflict when they are required.
    """
    state = running_attempt(run, command.node_id, command.attempt)
    if state is None and command.required:
        raise Conflict(
            "The attempt is over; nothing more is recorded for it.",
            runId=run.run_id,
            nodeId=command.node_id,
        )
    if state is None:
        return []
    node = flow.nodes[command.node_id]
    events = [
        *command.events,
        *variable_events(run, flow, command.variables, node.id, state.started_seq),
        *write_events(run, flow, node, command.writes, command.at),
    ]
    for event in events:
        event.cause = state.started_seq if event.cause is None else event.cause
    return events


def set_variables(run: Run, flow: Flow, variables: Mapping[str, object]) -> list[NewEvent]:
    if run.terminal:
        return []
    if run.status is Status.PAUSED:
        raise RunPaused(run.run_id)
    return variable_events(run, flow, variables, None, None)


def variable_events(
    run: Run, flow: Flow, variables: Mapping[str, object], node_id: str | None, cause: int | None
) -> list[NewEvent]:
    events = []
    for name, value in variables.items():
        if name in flow.channels:
            raise BadRequest(
                f"'{name}' is a channel of this workflow; write to it with core.channelWrite.",
                channel=name,
            )
        hidden = name in flow.sensitive
        changed = VariableChanged(
            name=name,
            previous=run.variables.get(name, UNSET),
            next=mask_value(flow.masking, value) if hidden else value,
            node_id=node_id,
        )
        sealed = {f"var:{name}": value} if hidden else None
        events.append(NewEvent(changed, node_id, cause=cause, sealed=sealed))
    return events


def write_events(
    run: Run, flow: Flow, node: FlowNode, writes: tuple[ChannelWrite, ...], at: int
) -> list[NewEvent]:
    """Check each write against its channel; leave out a message that is already there."""
    events = []
    pending: dict[str, Any] = {}
    for write in writes:
        rule = _channel_rule(flow, node, write)
        if rule.reducer == "message":
            event = _message_event(run, flow, node, write, rule, at, pending)
        else:
            event = _write_event(run, flow, node, write, rule, at, pending)
        if event is not None:
            events.append(event)
    return events


def _channel_rule(flow: Flow, node: FlowNode, write: ChannelWrite) -> ChannelRule:
    declared = flow.definition.channels.get(write.channel)
    if declared and not channels.has_access(declared.access, "writers", node.id, node.type.type_id):
        raise _access_denied(write.channel, node, "writers")
    return flow.channels.get(write.channel) or _rule_from_write(write)


def _write_event(
    run: Run,
    flow: Flow,
    node: FlowNode,
    write: ChannelWrite,
    rule: ChannelRule,
    at: int,
    pending: dict[str, Any],
) -> NewEvent:
    name = write.channel
    current = pending.get(name, run.channels.get(name))
    if problem := channels.check_write(rule, current, write.value):
        raise BadRequest(f"Channel '{name}': {problem}.", channel=name)
    declared = flow.definition.channels.get(name)
    if declared and declared.schema is not UNSET:
        _check_schema(name, declared.schema, rule, current, write.value)
    value = channels.stored_value(rule, write.value, at)
    copy = list(current) if isinstance(current, list) else current
    pending[name] = channels.reduce_channel(rule, copy, value, at)
    return _written_event(flow, node, name, rule, value, at)


def _message_event(
    run: Run,
    flow: Flow,
    node: FlowNode,
    write: ChannelWrite,
    rule: ChannelRule,
    at: int,
    pending: dict[str, Any],
) -> NewEvent | None:
    """Return None for a repeated message.

    The state holds no messages, only the ids that nodes chose for them.
    """
    name = write.channel
    fresh: list[str] = pending.setdefault(name, [])
    if problem := channels.check_write(rule, run.messages.get(name, 0) + len(fresh), write.value):
        raise BadRequest(f"Channel '{name}': {problem}.", channel=name)
    message_id = write.value["messageId"]
    if not write.turn and (message_id in fresh or message_id in run.message_ids.get(name, ())):
        return None
    fresh.append(message_id)
    event = _written_event(flow, node, name, rule, write.value, at)
    if write.turn:
        event.hints = {**(event.hints or {}), "turn": True}
    return event


def _check_schema(
    name: str, schema: dict[str, Any], rule: ChannelRule, current: Any, value: Any
) -> None:
    """Raise BadRequest when neither the written nor the reduced value fits the schema."""
    errors = schema_problems(schema, value)
    if not errors:
        return
    copy = list(current) if isinstance(current, list) else current
    if schema_problems(schema, channels.reduce_channel(rule, copy, value, 0)):
        raise BadRequest(f"Channel '{name}': {errors[0]}", channel=name, fields=errors)


def _rule_from_write(write: ChannelWrite) -> ChannelRule:
    reducer = write.reducer or "replace"
    if reducer not in REDUCERS and not reducer.startswith("vendor."):
        raise BadRequest(f"'{reducer}' is not a reducer.", reducer=reducer)
    return ChannelRule(reducer, write.ttl_ms or 0, write.max_size or 0)


def _written_event(
    flow: Flow, node: FlowNode, name: str, rule: ChannelRule, value: Any, at: int
) -> NewEvent:
    declared = flow.definition.channels.get(name)
    sealed = None
    if declared is not None and declared.sensitive:
        sealed = {f"chan:{name}": value}
        visible = mask_value(flow.masking, value)
        value = None if visible is UNSET else visible
    payload = ChannelWritten(
        channel=name,
        value=value,
        reducer=rule.recorded,
        written_at=iso(at * 1000),
        node_id=node.id,
        schema_version=None if declared is None else declared.schema_version,
    )
    return NewEvent(payload, node.id, hints=rule.hints(), sealed=sealed)


def check_reader(node: FlowNode, name: str) -> None:
    """Raise ChannelAccessDenied when the node is not among the readers."""
    if name in node.unreadable:
        raise _access_denied(name, node, "readers")


def _access_denied(name: str, node: FlowNode, side: str) -> ChannelAccessDenied:
    return ChannelAccessDenied(
        f"Node '{node.id}' is not among the {side} of channel '{name}'.",
        channel=name,
        requestedBy={"nodeId": node.id, "typeId": node.type.type_id},
        allowed=side,
    )


def _artifact_event(
    run: Run, node: FlowNode, state: NodeState, number: int, artifact: Any, at: int
) -> NewEvent:
    name = derived_id("art_", run.run_id, node.id, str(state.attempt), str(number))
    created = ArtifactCreated(
        artifact_id=name,
        artifact_type=artifact.artifact_type,
        node_id=node.id,
        summary=artifact.summary or None,
    )
    body = {
        "artifactId": name,
        "artifactType": artifact.artifact_type,
        "runId": run.run_id,
        "nodeId": node.id,
        "createdAt": iso(at * 1000),
        "data": artifact.data,
    }
    return NewEvent(created, node.id, cause=state.started_seq, artifact=body)
