"""Tell when a node may start, and build its inputs.

Edges, trigger rules and conditions decide about the start.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from msgspec import UNSET

from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NODE_TERMINAL, NodeStatus
from moot.core.workflows import expressions
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeCall, NodeError, error_from_exception
from moot.core.workflows.schema import (
    ConnectionValue,
    EdgeCondition,
    EdgeDef,
    ExpressionValue,
    StaticValue,
)
from moot.core.workflows.turn_inputs import supervisor_turn

ResultT = TypeVar("ResultT")

#: an index in a list; isdigit() would accept digits that int() cannot read
LIST_INDEX = re.compile("[0-9]{1,9}")


class Readiness(Enum):
    """The verdict on a node that has not started."""

    WAIT = "wait"
    RUN = "run"
    SKIP = "skip"


class EdgeState(Enum):
    """One incoming edge's contribution to the readiness of its target."""

    OPEN = "open"  # the source has not ended
    SUCCESS = "success"
    FAILURE = "failure"
    SKIPPED = "skipped"
    DROPPED = "dropped"  # the source ended well, but the edge's condition is false


def node_readiness(
    run: Run, flow: Flow, node: FlowNode, overlay: dict[str, NodeState]
) -> Readiness:
    """Return whether a node that has not started may start.

    ``overlay`` holds the node states that the same decision adds.
    """
    if not node.incoming:
        return Readiness.RUN
    sides = [_edge_state(run, flow, edge, overlay) for edge in node.incoming]
    return RULES[node.rule](sides)


def _all_success(sides: list[EdgeState]) -> Readiness:
    if EdgeState.OPEN in sides:
        return Readiness.WAIT
    return (
        Readiness.RUN
        if EdgeState.SUCCESS in sides and EdgeState.FAILURE not in sides
        else Readiness.SKIP
    )


def _any_success(sides: list[EdgeState]) -> Readiness:
    if EdgeState.SUCCESS in sides:
        return Readiness.RUN
    return Readiness.WAIT if EdgeState.OPEN in sides else Readiness.SKIP


def _all_complete(sides: list[EdgeState]) -> Readiness:
    if EdgeState.OPEN in sides:
        return Readiness.WAIT
    return Readiness.SKIP if all(side is EdgeState.DROPPED for side in sides) else Readiness.RUN


def _none_failed(sides: list[EdgeState]) -> Readiness:
    if EdgeState.FAILURE in sides:
        return Readiness.SKIP
    return _all_complete(sides)


def _any_failed(sides: list[EdgeState]) -> Readiness:
    if EdgeState.FAILURE in sides:
        return Readiness.RUN
    return Readiness.WAIT if EdgeState.OPEN in sides else Readiness.SKIP


#: trigger rule -> the verdict over all incoming edges
RULES = {
    "all_success": _all_success,
    "any_success": _any_success,
    "all_complete": _all_complete,
    "none_failed": _none_failed,
    "any_failed": _any_failed,
}


def _edge_state(run: Run, flow: Flow, edge: EdgeDef, overlay: dict[str, NodeState]) -> EdgeState:
    source = overlay.get(edge.source_node_id) or run.nodes.get(edge.source_node_id)
    if source is None or source.status not in NODE_TERMINAL:
        return EdgeState.OPEN
    if source.status is NodeStatus.COMPLETED:
        if edge.source_node_id in flow.loops and not _is_loop_over(run):
            return EdgeState.OPEN
        return EdgeState.SUCCESS if _is_edge_taken(run, flow, edge, source) else EdgeState.DROPPED
    if source.status is NodeStatus.SKIPPED:
        # Successors of a disabled node may run.
        return EdgeState.SUCCESS if source.reason == "disabled" else EdgeState.SKIPPED
    return EdgeState.FAILURE


def _is_loop_over(run: Run) -> bool:
    """Return whether the loop ended; nodes after it wait for that."""
    return run.orchestrator is not None and run.orchestrator.over


def _is_turned_down(run: Run, node_id: str) -> bool:
    """Return whether a person rejected or refined an approval; only those edges apply then."""
    last = run.answered.get(node_id)
    return last is not None and last.kind == "approval" and last.action in ("reject", "refine")


def _is_edge_taken(run: Run, flow: Flow, edge: EdgeDef, source: NodeState) -> bool:
    outputs = source.outputs or {}
    routes = flow.nodes[edge.source_node_id].type.routes
    if edge.source_output is UNSET or edge.source_output == "output":
        if routes and _is_turned_down(run, edge.source_node_id):
            return False  # such an answer has its own edge
    elif routes and edge.source_output not in outputs:
        return False
    return edge.condition is UNSET or _is_edge_condition_met(run, edge, outputs)


def _is_edge_condition_met(run: Run, edge: EdgeDef, outputs: Mapping[str, object]) -> bool:
    """Return False also for a condition that cannot be evaluated."""
    assert edge.condition is not UNSET
    port = "output" if edge.source_output is UNSET else edge.source_output
    names = {
        "output": outputs.get(port, outputs),
        "outputs": outputs,
        "variables": run.variables,
        "inputs": run.inputs,
        "channels": run.channels,
        "trigger": run.trigger or {},
    }
    return is_condition_met(edge.condition, names)


def is_condition_met(condition: EdgeCondition, names: dict[str, Any]) -> bool:
    try:
        if condition.type == "expression":
            return expressions.evaluate_expression(str(condition.expression), names) is True
        left = _follow_path(names, str(condition.left))
        match condition.type:
            case "equals":
                return is_same_json(left, condition.right)
            case "notEquals":
                return not is_same_json(left, condition.right)
            case "contains":
                return _contains(left, condition.right)
            case _:
                return isinstance(left, str) and expressions.is_pattern_match(left, condition.right)
    except (expressions.ExpressionError, TypeError):
        return False


def is_same_json(left: Any, right: Any) -> bool:
    """Compare as JSON: true is not 1, and an absent value equals only an absent value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            is_same_json(left[key], right[key]) for key in left
        )
    return bool(left == right)


def _contains(whole: Any, part: Any) -> bool:
    """Return whether a text has the text, a list the item or an object the key."""
    if isinstance(whole, list):
        return any(is_same_json(item, part) for item in whole)
    return whole is not UNSET and part in whole


def _follow_path(names: Mapping[str, object], path: str) -> Any:
    """Follow a path such as ``output.approved``; the first word may be omitted."""
    words = path.split(".")
    value: Any = names if words[0] in names else names["outputs"]
    for word in words:
        if isinstance(value, dict) and word in value:
            value = value[word]
        elif isinstance(value, list) and LIST_INDEX.fullmatch(word) and int(word) < len(value):
            value = value[int(word)]
        else:
            return UNSET
    return value


class PortProblem(Exception):
    """An input of a node has no value."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.error = NodeError(code="input_unresolved", message=message, retryable=False)


def call_node_type(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Call a function of a node type. Raise PortProblem for whatever it raises."""
    try:
        return function(*arguments)
    except PortProblem:
        raise
    except Exception as error:
        problem = PortProblem(str(error))
        problem.error = error_from_exception(error)
        raise problem from error


def build_node_call(
    run: Run, node: FlowNode, at: int, sealed: Mapping[str, object], attempt: int
) -> NodeCall:
    """Return what a node sees when it runs. Raise PortProblem when an input has no value."""
    variables = _unseal(run.variables, "var:", sealed)
    return NodeCall(
        run_id=run.run_id,
        tenant=run.tenant,
        node_id=node.id,
        type_id=node.type.type_id,
        attempt=attempt,
        config=node.definition.config,
        inputs=_inputs(run, node, variables, sealed),
        variables=variables,
        upstream=_upstream(run, node),
        run_inputs=run.inputs,
        configurable=run.configurable,
        at=at,
        decision=run.orchestrator.decision if run.orchestrator is not None else {},
        turn=supervisor_turn(run, node.id) if node.type.type_id == SUPERVISOR else None,
        answer=run.nodes[node.id].answer if node.id in run.nodes else [],
        agent_id=_pinned_agent(node),
        earlier=run.attempts.get(node.id, 0),
        trigger=run.trigger,
    )


def _pinned_agent(node: FlowNode) -> str | None:
    agent = node.definition.agent
    agent_id = agent.get("agentId") if isinstance(agent, dict) else None
    return agent_id if isinstance(agent_id, str) else None


def _unseal(values: dict[str, Any], prefix: str, sealed: Mapping[str, object]) -> dict[str, Any]:
    if not sealed:
        return values
    plain = dict(values)
    plain.update(
        {key[len(prefix) :]: value for key, value in sealed.items() if key.startswith(prefix)}
    )
    return plain


def _upstream(run: Run, node: FlowNode) -> dict[str, dict[str, Any]]:
    sources = {edge.source_node_id: run.nodes.get(edge.source_node_id) for edge in node.incoming}
    return {
        node_id: source.outputs or {}
        for node_id, source in sources.items()
        if source is not None and source.status is NodeStatus.COMPLETED
    }


def _inputs(
    run: Run, node: FlowNode, variables: Mapping[str, object], sealed: Mapping[str, object]
) -> dict[str, object]:
    inputs: dict[str, object] = {}
    for port, value in node.definition.inputs.items():
        if isinstance(value, StaticValue):
            inputs[port] = value.value
        elif isinstance(value, ExpressionValue):
            inputs[port] = _evaluate_input(run, node, port, value, variables)
        elif isinstance(value, ConnectionValue):
            _connect_input(run, node, port, value, (inputs, sealed))
        elif value.variable_name in variables:
            inputs[port] = variables[value.variable_name]
    return inputs


def _evaluate_input(
    run: Run, node: FlowNode, port: str, value: ExpressionValue, variables: Mapping[str, object]
) -> Any:
    names = {
        "variables": variables,
        "inputs": run.inputs,
        "channels": _readable_channels(run, node),
        "nodes": {key: state.outputs or {} for key, state in run.nodes.items()},
        "configurable": run.configurable,
        "trigger": run.trigger or {},
    }
    try:
        return expressions.evaluate_expression(value.expression, names)
    except expressions.ExpressionError as error:
        raise PortProblem(f"Input '{port}' of node '{node.id}': {error}") from None


def _readable_channels(run: Run, node: FlowNode) -> Mapping[str, object]:
    if not node.unreadable:
        return run.channels
    return {name: value for name, value in run.channels.items() if name not in node.unreadable}


def _connect_input(
    run: Run,
    node: FlowNode,
    port: str,
    value: ConnectionValue,
    into: tuple[dict[str, object], Mapping[str, object]],
) -> None:
    inputs, sealed = into
    source = run.nodes.get(value.node_id)
    outputs = (source.outputs if source else None) or {}
    key = f"out:{value.node_id}:{value.output_key}"
    if key in sealed:
        inputs[port] = sealed[key]
    elif value.output_key in outputs:
        inputs[port] = outputs[value.output_key]
    elif not value.optional:
        raise PortProblem(
            f"Input '{port}' of node '{node.id}' needs output '{value.output_key}' of node"
            f" '{value.node_id}', which has none. Mark it optional if that is meant."
        )
