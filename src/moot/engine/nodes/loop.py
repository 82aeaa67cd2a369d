"""The node type ``core.loop``: repeat expressions within a bound.

It repeats over items, a count or a condition.
"""

from collections.abc import Iterable
from itertools import repeat
from typing import Any

from moot.core.payloads.nodes import LoopbackLimit
from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import (
    Completed,
    Failed,
    NodeCall,
    NodeError,
    NodeKind,
    NodeType,
    Outcome,
)
from moot.engine.nodes.inputs import (
    evaluate_expression,
    expression_problem,
    first_problem,
    is_whole,
)

COUNTS = ("times", "count", "iterations")
DEFAULT_LIMIT = 1000
HIGHEST_LIMIT = 1000


def iteration_limit(config: dict[str, Any]) -> int:
    return int(config.get("maxIterations", DEFAULT_LIMIT))


def limit_problem(config: dict[str, Any]) -> str | None:
    limit = config.get("maxIterations", DEFAULT_LIMIT)
    if is_whole(limit) and 1 <= limit <= HIGHEST_LIMIT:
        return None
    return f"config.maxIterations must be a whole number from 1 to {HIGHEST_LIMIT}"


def loop_items(call: NodeCall) -> list[Any] | None:
    """Return the items to loop over, if any. Raise PortProblem when they are not a list."""
    items = call.config.get("items", call.inputs.get("items"))
    if items is not None and not isinstance(items, list):
        raise PortProblem(f"The items of loop '{call.node_id}' must be a list.")
    return items


def limit_error(limit: int) -> NodeError:
    return NodeError(
        code="loop_limit_exceeded",
        message=f"The loop did not end within {limit} iterations; raise config.maxIterations.",
        details={"limit": limit},
        retryable=False,
    )


def _loop(call: NodeCall) -> Outcome:
    limit = iteration_limit(call.config)
    state = _LoopState(call)
    for item in _iterations(call):
        if not state.should_continue(item):
            break
        if state.index == limit:
            reached = LoopbackLimit(node_id=call.node_id, iterations=limit, limit=limit)
            return Failed(limit_error(limit), because=(reached,))
        state.take(item)
    outputs = {"iterations": state.index, "results": state.results}
    return Completed(outputs, variables=state.changed)


def _iterations(call: NodeCall) -> Iterable[Any]:
    """Return the items, or one None for each round of a counted or open loop."""
    items = loop_items(call)
    if items is not None:
        return items
    for key in COUNTS:
        if key in call.config:
            return repeat(None, call.config[key])
    if "while" in call.config:
        return repeat(None)
    raise PortProblem("The loop has no bound: set config.items, config.times or config.while.")


class _LoopState:
    """The loop's working copy of the variables, changed by each iteration."""

    def __init__(self, call: NodeCall) -> None:
        self.config = call.config
        self.variables = dict(call.variables)
        self.changed: dict[str, Any] = {}
        self.results: list[Any] = []
        self.index = 0

    def should_continue(self, item: Any) -> bool:
        source = self.config.get("while")
        return source is None or bool(self._evaluate(source, item, "config.while"))

    def take(self, item: Any) -> None:
        if "collect" in self.config:
            collected = self._evaluate(self.config["collect"], item, "config.collect")
            self.results.append(collected)
        for name, source in self.config.get("set", {}).items():
            value = self._evaluate(source, item, f"config.set.{name}")
            self.variables[name] = self.changed[name] = value
        self.index += 1

    def _evaluate(self, source: str, item: Any, place: str) -> Any:
        names = {"variables": self.variables, "index": self.index, "item": item}
        if "results" in source:  # passing a growing list each time would be quadratic
            names["results"] = self.results
        return evaluate_expression(source, names, f"{place}, iteration {self.index}")


def _check(config: dict[str, Any]) -> str | None:
    if "workflowId" in config:
        return "one child run per item is the node type moot.forEach"
    return first_problem(
        limit_problem(config),
        *(_count_problem(config, key) for key in COUNTS),
        items_problem(config),
        expression_problem(config, "while"),
        expression_problem(config, "collect"),
        _set_problem(config.get("set", {})),
    )


def items_problem(config: dict[str, Any]) -> str | None:
    return None if isinstance(config.get("items", []), list) else "config.items must be a list"


def _count_problem(config: dict[str, Any], key: str) -> str | None:
    count = config.get(key, 0)
    return None if is_whole(count) and count >= 0 else f"config.{key} must be a whole number from 0"


def _set_problem(sets: Any) -> str | None:
    if not isinstance(sets, dict):
        return "config.set must map variables to expressions"
    sources = {f"set.{name}": source for name, source in sets.items()}
    return first_problem(*(expression_problem(sources, key) for key in sources))


TYPE = NodeType(type_id="core.loop", kind=NodeKind.INSTANT, instant=_loop, check=_check)
