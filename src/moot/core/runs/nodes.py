"""What nodes cause: outcomes, reports on the way, timers, retries, ends of children."""

from typing import Any

from msgspec import UNSET, Struct

from moot.core.errors import BadRequest, ChannelAccessDenied, Conflict, RunPaused
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.json.schema import problems
from moot.core.runs.advance import failed
from moot.core.runs.readiness import PortProblem, call_of
from moot.core.secrets import masked
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows import channels
from moot.core.workflows.channels import Rule
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import (
    ChannelWrite,
    Completed,
    Failed,
    NodeError,
    Outcome,
    raised,
)


class Emit(Struct, frozen=True):
    """Facts a running node reports before it is done.

    Without ``required`` those of an attempt that is over are dropped, else they are refused.
    """

    node_id: str
    attempt: int
    events: tuple[NewEvent, ...]
    at: int
    variables: dict[str, Any] = {}
    writes: tuple[ChannelWrite, ...] = ()
    required: bool = False


REDUCERS = frozenset({"replace", "append", "merge", "counter", "votes", "feedback", "message"})


def computed(run: Run, flow: Flow, node_id: str, at: int, sealed: dict[str, Any]) -> Outcome | None:
    """The outcome of a pure node: it follows from the state."""
    state = at_work(run, node_id, run.nodes[node_id].attempt)
    if state is None:
        return None
    node = flow.nodes[node_id]
    assert node.type.instant is not None
    try:
        return node.type.instant(call_of(run, node, at, sealed, state.attempt))
    except PortProblem as problem:
        return Failed(problem.error)
    except (Exception, SystemExit) as error:
        return Failed(raised(error))


def finish(
    run: Run, flow: Flow, node_id: str, attempt: int, outcome: Completed | Failed, at: int
) -> list[NewEvent]:
    """The outcome of an attempt; an outdated attempt causes nothing."""
    state = at_work(run, node_id, attempt)
    if state is None:
        return []
    node = flow.nodes[node_id]
    if isinstance(outcome, Completed):
        try:
            return _completed(run, flow, node, state, outcome, at)
        except BadRequest as refusal:
            error = NodeError(
                code=refusal.code, message=refusal.message, details=refusal.details, retryable=False
            )
            outcome = Failed(error)
    return failure(run, node, state, outcome, at)


def at_work(run: Run, node_id: str, attempt: int) -> NodeState | None:
    state = run.nodes.get(node_id)
    if not run.going or state is None or state.attempt != attempt:
        return None
    return state if state.status is NodeStatus.RUNNING else None


def _completed(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, outcome: Completed, at: int
) -> list[NewEvent]:
    cause = state.started_seq
    events = []
    if outcome.variables:
        events += variable_events(run, flow, outcome.variables, node.id, cause)
    if outcome.writes:
        events += write_events(run, flow, node, outcome.writes, at)
    for number, artifact in enumerate(outcome.artifacts):
        events.append(_artifact(run, node, state, number, artifact, at))
    events += [NewEvent(type_, said, node.id, cause=cause) for type_, said in outcome.told]
    shown, sealed = _outputs(flow, node, outcome.outputs)
    payload = {
        "nodeId": node.id,
        "outputs": shown,
        "durationMs": max(0, at - state.started_at),
    }
    done = NewEvent("node.completed", payload, node.id, cause=cause, sealed=sealed or None)
    return [*events, done]


def _outputs(
    flow: Flow, node: FlowNode, outputs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ports marked sensitive are masked in the log; later nodes still see them."""
    if not node.definition.output_sensitivity:
        return outputs, {}
    hidden = {port for port, yes in node.definition.output_sensitivity.items() if yes}
    if not hidden.intersection(outputs):
        return outputs, {}
    sealed = {f"out:{node.id}:{port}": outputs[port] for port in hidden if port in outputs}
    shown = {
        port: masked(flow.masking, value) if port in hidden else value
        for port, value in outputs.items()
    }
    return {port: value for port, value in shown.items() if value is not UNSET}, sealed


def failure(run: Run, node: FlowNode, state: NodeState, outcome: Failed, at: int) -> list[NewEvent]:
    events = [
        NewEvent(type_, payload, node.id, cause=None if number else state.started_seq)
        for number, (type_, payload) in enumerate(outcome.because)
    ]
    if outcome.error.retryable and state.failures < node.retries:
        payload = {
            "nodeId": node.id,
            "attempt": state.attempt + 1,
            "delayMs": node.delay_before(state.failures + 2),
            "lastError": outcome.error.as_payload(),
        }
        events.append(NewEvent("node.retried", payload, node.id, cause=state.started_seq))
    else:
        cause = None if events else state.started_seq
        events.append(failed(node, outcome.error, state.attempt, cause))
    return events


def emit(run: Run, flow: Flow, said: Emit) -> list[NewEvent]:
    """Facts a node reports while it works; after its end they are too late."""
    state = at_work(run, said.node_id, said.attempt)
    if state is None and said.required:
        raise Conflict(
            "The attempt is over; nothing more is recorded for it.",
            runId=run.run_id,
            nodeId=said.node_id,
        )
    if state is None:
        return []
    node = flow.nodes[said.node_id]
    found = [
        *said.events,
        *variable_events(run, flow, said.variables, node.id, state.started_seq),
        *write_events(run, flow, node, said.writes, said.at),
    ]
    for event in found:
        event.cause = state.started_seq if event.cause is None else event.cause
    return found


def set_variables(run: Run, flow: Flow, variables: dict[str, Any]) -> list[NewEvent]:
    if run.terminal:
        return []
    if run.status is Status.PAUSED:
        raise RunPaused(run.run_id)
    return variable_events(run, flow, variables, None, None)


def variable_events(
    run: Run, flow: Flow, variables: dict[str, Any], node_id: str | None, cause: int | None
) -> list[NewEvent]:
    events = []
    for name, value in variables.items():
        if name in flow.channels:
            raise BadRequest(
                f"'{name}' is a channel of this workflow; write to it with core.channelWrite.",
                channel=name,
            )
        hidden = name in flow.sensitive
        payload: dict[str, Any] = {"name": name}
        if name in run.variables:
            payload["previous"] = run.variables[name]
        seen = masked(flow.masking, value) if hidden else value
        if seen is not UNSET:
            payload["next"] = seen
        if node_id is not None:
            payload["nodeId"] = node_id
        sealed = {f"var:{name}": value} if hidden else None
        events.append(NewEvent("variable.changed", payload, node_id, cause=cause, sealed=sealed))
    return events


def write_events(
    run: Run, flow: Flow, node: FlowNode, writes: tuple[ChannelWrite, ...], at: int
) -> list[NewEvent]:
    """Each write as it came, checked against the channel; a repeated message is not recorded."""
    events = []
    seen: dict[str, Any] = {}
    for write in writes:
        rule = _rule(flow, node, write)
        if rule.reducer == "message":
            event = _message_event(run, flow, node, write, rule, at, seen)
        else:
            event = _write_event(run, flow, node, write, rule, at, seen)
        if event is not None:
            events.append(event)
    return events


def _rule(flow: Flow, node: FlowNode, write: ChannelWrite) -> Rule:
    declared = flow.definition.channels.get(write.channel)
    if declared and not channels.may(declared.access, "writers", node.id, node.type.type_id):
        raise _denied(write.channel, node, "writers")
    return flow.channels.get(write.channel) or _undeclared(write)


def _write_event(
    run: Run,
    flow: Flow,
    node: FlowNode,
    write: ChannelWrite,
    rule: Rule,
    at: int,
    seen: dict[str, Any],
) -> NewEvent:
    name = write.channel
    current = seen.get(name, run.channels.get(name))
    if problem := channels.check(rule, current, write.value):
        raise BadRequest(f"Channel '{name}': {problem}.", channel=name)
    declared = flow.definition.channels.get(name)
    if declared and declared.schema is not UNSET:
        _check_schema(name, declared.schema, rule, current, write.value)
    value = channels.stored(rule, write.value, at)
    copy = list(current) if isinstance(current, list) else current
    seen[name] = channels.reduce(rule, copy, value, at)
    return _written(flow, node, name, rule, value, at)


def _message_event(
    run: Run,
    flow: Flow,
    node: FlowNode,
    write: ChannelWrite,
    rule: Rule,
    at: int,
    seen: dict[str, Any],
) -> NewEvent | None:
    """Messages are not in the state; their ids are, as far as nodes chose them."""
    name = write.channel
    fresh: list[str] = seen.setdefault(name, [])
    if problem := channels.check(rule, run.messages.get(name, 0) + len(fresh), write.value):
        raise BadRequest(f"Channel '{name}': {problem}.", channel=name)
    message_id = write.value["messageId"]
    if not write.turn and (message_id in fresh or message_id in run.message_ids.get(name, ())):
        return None
    fresh.append(message_id)
    event = _written(flow, node, name, rule, write.value, at)
    if write.turn:
        event.hints = {**(event.hints or {}), "turn": True}
    return event


def _check_schema(name: str, schema: dict[str, Any], rule: Rule, current: Any, value: Any) -> None:
    """A schema may describe what is written or what becomes of it: one of the two must fit."""
    found = problems(schema, value)
    if not found:
        return
    copy = list(current) if isinstance(current, list) else current
    if problems(schema, channels.reduce(rule, copy, value, 0)):
        raise BadRequest(f"Channel '{name}': {found[0]}", channel=name, fields=found)


def _undeclared(write: ChannelWrite) -> Rule:
    reducer = write.reducer or "replace"
    if reducer not in REDUCERS and not reducer.startswith("vendor."):
        raise BadRequest(f"'{reducer}' is not a reducer.", reducer=reducer)
    return Rule(reducer, write.ttl_ms or 0, write.max_size or 0)


def _written(flow: Flow, node: FlowNode, name: str, rule: Rule, value: Any, at: int) -> NewEvent:
    declared = flow.definition.channels.get(name)
    sealed = None
    if declared is not None and declared.sensitive:
        sealed = {f"chan:{name}": value}
        seen = masked(flow.masking, value)
        value = None if seen is UNSET else seen
    payload: dict[str, Any] = {
        "channel": name,
        "value": value,
        "reducer": rule.recorded,
        "writtenAt": iso(at * 1000),
        "nodeId": node.id,
    }
    if declared is not None:
        payload["schemaVersion"] = declared.schema_version
    return NewEvent("channel.written", payload, node.id, hints=rule.hints(), sealed=sealed)


def check_reader(node: FlowNode, name: str) -> None:
    """Raises ChannelAccessDenied when the node is not among the readers."""
    if name in node.unreadable:
        raise _denied(name, node, "readers")


def _denied(name: str, node: FlowNode, side: str) -> ChannelAccessDenied:
    return ChannelAccessDenied(
        f"Node '{node.id}' is not among the {side} of channel '{name}'.",
        channel=name,
        requestedBy={"nodeId": node.id, "typeId": node.type.type_id},
        allowed=side,
    )


def _artifact(
    run: Run, node: FlowNode, state: NodeState, number: int, artifact: Any, at: int
) -> NewEvent:
    name = derived_id("art_", run.run_id, node.id, str(state.attempt), str(number))
    payload: dict[str, Any] = {
        "artifactId": name,
        "artifactType": artifact.artifact_type,
        "nodeId": node.id,
    }
    if artifact.summary:
        payload["summary"] = artifact.summary
    body = {
        "artifactId": name,
        "artifactType": artifact.artifact_type,
        "runId": run.run_id,
        "nodeId": node.id,
        "createdAt": iso(at * 1000),
        "data": artifact.data,
    }
    return NewEvent("artifact.created", payload, node.id, cause=state.started_seq, artifact=body)
