"""The node type ``core.loop``: repeat expressions within a bound.

It repeats over items, a count or a condition.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import repeat
from typing import Any

import msgspec
from msgspec import Struct, field

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
    misfit,
)

COUNTS = ("times", "count", "iterations")
DEFAULT_LIMIT = 1000
HIGHEST_LIMIT = 1000


class LoopConfig(Struct, frozen=True):
    """The bound and the expressions of a loop."""

    times: int | None = None
    count: int | None = None
    iterations: int | None = None
    condition: str | None = field(default=None, name="while")
    collect: str | None = None
    #: variable -> expression
    set: dict[str, str] = {}


def iteration_limit(config: Mapping[str, object]) -> int:
    limit = config.get("maxIterations")
    return limit if isinstance(limit, int) else DEFAULT_LIMIT


def bound_problem(config: Mapping[str, object]) -> str | None:
    """Return the problem with the limit or the items of a loop, or None."""
    if not is_whole(config.get("maxIterations", DEFAULT_LIMIT), 1, HIGHEST_LIMIT):
        return f"config.maxIterations must be a whole number from 1 to {HIGHEST_LIMIT}"
    return misfit(config, "items", lambda value: isinstance(value, list), "be a list")


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
    limit, config = iteration_limit(call.config), msgspec.convert(call.config, LoopConfig)
    state = _LoopState(call, config)
    for item in _iterations(call, config):
        if not state.should_continue(item):
            break
        if state.index == limit:
            reached = LoopbackLimit(node_id=call.node_id, iterations=limit, limit=limit)
            return Failed(limit_error(limit), because=(reached,))
        state.take(item)
    outputs = {"iterations": state.index, "results": state.results}
    return Completed(outputs, variables=state.changed)


def _iterations(call: NodeCall, config: LoopConfig) -> Iterable[object]:
    """Return the items, or one None for each round of a counted or open loop."""
    items = loop_items(call)
    if items is not None:
        return items
    for count in (config.times, config.count, config.iterations):
        if count is not None:
            return repeat(None, count)
    if config.condition is not None:
        return repeat(None)
    raise PortProblem("The loop has no bound: set config.items, config.times or config.while.")


class _LoopState:
    """The loop's working copy of the variables, changed by each iteration."""

    def __init__(self, call: NodeCall, config: LoopConfig) -> None:
        self.config = config
        self.variables = dict(call.variables)
        self.changed: dict[str, object] = {}
        self.results: list[object] = []
        self.index = 0

    def should_continue(self, item: object) -> bool:
        source = self.config.condition
        return source is None or bool(self._evaluate(source, item, "config.while"))

    def take(self, item: object) -> None:
        if self.config.collect is not None:
            self.results.append(self._evaluate(self.config.collect, item, "config.collect"))
        for name, source in self.config.set.items():
            value = self._evaluate(source, item, f"config.set.{name}")
            self.variables[name] = self.changed[name] = value
        self.index += 1

    def _evaluate(self, source: str, item: object, place: str) -> object:
        names: dict[str, object] = {"variables": self.variables, "index": self.index, "item": item}
        if "results" in source:  # passing a growing list each time would be quadratic
            names["results"] = self.results
        return evaluate_expression(source, names, f"{place}, iteration {self.index}")


def _check(config: Mapping[str, object]) -> str | None:
    if "workflowId" in config:
        return "one child run per item is the node type moot.forEach"
    is_count = partial(is_whole, low=0)
    return first_problem(
        bound_problem(config),
        *(misfit(config, key, is_count, "be a whole number from 0") for key in COUNTS),
        expression_problem(config, "while"),
        expression_problem(config, "collect"),
        _set_problem(config.get("set", {})),
    )


def _set_problem(sets: object) -> str | None:
    if not isinstance(sets, dict):
        return "config.set must map variables to expressions"
    sources = {f"set.{name}": source for name, source in sets.items()}
    return first_problem(*(expression_problem(sources, key) for key in sources))


TYPE = NodeType(type_id="core.loop", kind=NodeKind.INSTANT, instant=_loop, check=_check)
