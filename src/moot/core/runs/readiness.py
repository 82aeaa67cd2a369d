"""Readiness of nodes: edges, trigger rules, conditions; and the values on a node's ports."""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from msgspec import UNSET

from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NODE_TERMINAL, NodeStatus
from moot.core.workflows import expressions
from moot.core.workflows.definition import (
    SUPERVISOR,
    Connection,
    EdgeCondition,
    EdgeDef,
    Expression,
    Static,
)
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Call, NodeError, raised
from moot.core.workflows.turn_inputs import turn_of

Answer = TypeVar("Answer")

#: a place in a list; isdigit() would let through what int() cannot read
PLACE = re.compile("[0-9]{1,9}")


class Ready(Enum):
    WAIT = "wait"
    RUN = "run"
    SKIP = "skip"


class Side(Enum):
    """What one incoming edge says about its target."""

    OPEN = "open"  # the source has not ended
    SUCCESS = "success"
    FAILURE = "failure"
    SKIPPED = "skipped"
    DROPPED = "dropped"  # the source ended well, but the edge's condition is false


def readiness(run: Run, flow: Flow, node: FlowNode, overlay: dict[str, NodeState]) -> Ready:
    """Whether a node that has not run may run now. ``overlay`` is what this decision adds."""
    if not node.incoming:
        return Ready.RUN
    sides = [_side(run, flow, edge, overlay) for edge in node.incoming]
    return RULES[node.rule](sides)


def _all_success(sides: list[Side]) -> Ready:
    if Side.OPEN in sides:
        return Ready.WAIT
    return Ready.RUN if Side.SUCCESS in sides and Side.FAILURE not in sides else Ready.SKIP


def _any_success(sides: list[Side]) -> Ready:
    if Side.SUCCESS in sides:
        return Ready.RUN
    return Ready.WAIT if Side.OPEN in sides else Ready.SKIP


def _all_complete(sides: list[Side]) -> Ready:
    if Side.OPEN in sides:
        return Ready.WAIT
    return Ready.SKIP if all(side is Side.DROPPED for side in sides) else Ready.RUN


def _none_failed(sides: list[Side]) -> Ready:
    if Side.FAILURE in sides:
        return Ready.SKIP
    return _all_complete(sides)


def _any_failed(sides: list[Side]) -> Ready:
    if Side.FAILURE in sides:
        return Ready.RUN
    return Ready.WAIT if Side.OPEN in sides else Ready.SKIP


#: trigger rule -> what the incoming edges together mean
RULES = {
    "all_success": _all_success,
    "any_success": _any_success,
    "all_complete": _all_complete,
    "none_failed": _none_failed,
    "any_failed": _any_failed,
}


def _side(run: Run, flow: Flow, edge: EdgeDef, overlay: dict[str, NodeState]) -> Side:
    source = overlay.get(edge.source_node_id) or run.nodes.get(edge.source_node_id)
    if source is None or source.status not in NODE_TERMINAL:
        return Side.OPEN
    if source.status is NodeStatus.COMPLETED:
        if edge.source_node_id in flow.loops and not _loop_over(run):
            return Side.OPEN
        return Side.SUCCESS if _edge_taken(run, flow, edge, source) else Side.DROPPED
    if source.status is NodeStatus.SKIPPED:
        # A disabled node lets its successors through.
        return Side.SUCCESS if source.reason == "disabled" else Side.SKIPPED
    return Side.FAILURE


def _loop_over(run: Run) -> bool:
    """What comes after a loop waits for its last round."""
    return run.orchestrator is not None and run.orchestrator.over


def _aside(run: Run, node_id: str) -> bool:
    """Whether a gate was answered with what leads nowhere but along its own edges."""
    last = run.answered.get(node_id)
    return last is not None and last.kind == "approval" and last.action in ("reject", "refine")


def _edge_taken(run: Run, flow: Flow, edge: EdgeDef, source: NodeState) -> bool:
    outputs = source.outputs or {}
    routes = flow.nodes[edge.source_node_id].type.routes
    if edge.source_output is UNSET or edge.source_output == "output":
        if routes and _aside(run, edge.source_node_id):
            return False  # it has an edge of its own
    elif routes and edge.source_output not in outputs:
        return False
    return edge.condition is UNSET or _holds(run, edge, outputs)


def _holds(run: Run, edge: EdgeDef, outputs: dict[str, Any]) -> bool:
    """A condition that has no value is false."""
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
    return holds(edge.condition, names)


def holds(condition: EdgeCondition, names: dict[str, Any]) -> bool:
    try:
        if condition.type == "expression":
            return expressions.evaluate(str(condition.expression), names) is True
        left = _path(names, str(condition.left))
        match condition.type:
            case "equals":
                return same(left, condition.right)
            case "notEquals":
                return not same(left, condition.right)
            case "contains":
                return _contains(left, condition.right)
            case _:
                return isinstance(left, str) and expressions.matches(left, condition.right)
    except (expressions.ExpressionError, TypeError):
        return False


def same(left: Any, right: Any) -> bool:
    """JSON equality: true is not 1, and an absent left side equals nothing but an absent right."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def _contains(whole: Any, part: Any) -> bool:
    """A text holds a text, a list an equal item, an object a key."""
    if isinstance(whole, list):
        return any(same(item, part) for item in whole)
    return whole is not UNSET and part in whole


def _path(names: dict[str, Any], path: str) -> Any:
    """Follows ``output.approved``; the first word may be left out (``approved``)."""
    words = path.split(".")
    value: Any = names if words[0] in names else names["outputs"]
    for word in words:
        if isinstance(value, dict) and word in value:
            value = value[word]
        elif isinstance(value, list) and PLACE.fullmatch(word) and int(word) < len(value):
            value = value[int(word)]
        else:
            return UNSET
    return value


class PortProblem(Exception):
    """An input of a node has no value."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.error = NodeError(code="input_unresolved", message=message, retryable=False)


def asked(question: Callable[..., Answer], *about: Any) -> Answer:
    """What a node type says. Whatever it raises is the node's problem, never the run's."""
    try:
        return question(*about)
    except PortProblem:
        raise
    except Exception as error:
        problem = PortProblem(str(error))
        problem.error = raised(error)
        raise problem from error


def call_of(run: Run, node: FlowNode, at: int, sealed: dict[str, Any], attempt: int) -> Call:
    """What a node sees when it runs. Raises PortProblem when an input has no value."""
    variables = _unsealed(run.variables, "var:", sealed)
    return Call(
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
        turn=turn_of(run, node.id) if node.type.type_id == SUPERVISOR else None,
        answer=run.nodes[node.id].answer if node.id in run.nodes else [],
        agent_id=_pinned(node),
        earlier=run.attempts.get(node.id, 0),
        trigger=run.trigger,
    )


def _pinned(node: FlowNode) -> str | None:
    agent = node.definition.agent
    found = agent.get("agentId") if isinstance(agent, dict) else None
    return found if isinstance(found, str) else None


def _unsealed(values: dict[str, Any], prefix: str, sealed: dict[str, Any]) -> dict[str, Any]:
    if not sealed:
        return values
    plain = dict(values)
    plain.update(
        {key[len(prefix) :]: value for key, value in sealed.items() if key.startswith(prefix)}
    )
    return plain


def _upstream(run: Run, node: FlowNode) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for edge in node.incoming:
        source = run.nodes.get(edge.source_node_id)
        if source is not None and source.status is NodeStatus.COMPLETED:
            found[edge.source_node_id] = source.outputs or {}
    return found


def _inputs(
    run: Run, node: FlowNode, variables: dict[str, Any], sealed: dict[str, Any]
) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for port, value in node.definition.inputs.items():
        if isinstance(value, Static):
            inputs[port] = value.value
        elif isinstance(value, Expression):
            inputs[port] = _evaluated(run, node, port, value, variables)
        elif isinstance(value, Connection):
            _connect(run, node, port, value, (inputs, sealed))
        elif value.variable_name in variables:
            inputs[port] = variables[value.variable_name]
    return inputs


def _evaluated(
    run: Run, node: FlowNode, port: str, value: Expression, variables: dict[str, Any]
) -> Any:
    names = {
        "variables": variables,
        "inputs": run.inputs,
        "channels": _readable(run, node),
        "nodes": {key: state.outputs or {} for key, state in run.nodes.items()},
        "configurable": run.configurable,
        "trigger": run.trigger or {},
    }
    try:
        return expressions.evaluate(value.expression, names)
    except expressions.ExpressionError as error:
        raise PortProblem(f"Input '{port}' of node '{node.id}': {error}") from None


def _readable(run: Run, node: FlowNode) -> dict[str, Any]:
    if not node.unreadable:
        return run.channels
    return {name: value for name, value in run.channels.items() if name not in node.unreadable}


def _connect(
    run: Run,
    node: FlowNode,
    port: str,
    value: Connection,
    into: tuple[dict[str, Any], dict[str, Any]],
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
