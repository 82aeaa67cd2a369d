"""core.loop: repeats expressions over items, a count or a condition, within a bound."""

from collections.abc import Iterable
from itertools import repeat
from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import (
    Call,
    Completed,
    Failed,
    Kind,
    NodeError,
    NodeType,
    Outcome,
)
from moot.engine.nodes.inputs import evaluated, expression_problem, first_problem, is_whole

COUNTS = ("times", "count", "iterations")
DEFAULT_LIMIT = 1000
HIGHEST_LIMIT = 1000


def limit_of(config: dict[str, Any]) -> int:
    return int(config.get("maxIterations", DEFAULT_LIMIT))


def limit_problem(config: dict[str, Any]) -> str | None:
    limit = config.get("maxIterations", DEFAULT_LIMIT)
    if is_whole(limit) and 1 <= limit <= HIGHEST_LIMIT:
        return None
    return f"config.maxIterations must be a whole number from 1 to {HIGHEST_LIMIT}"


def items_of(call: Call) -> list[Any] | None:
    """The items to go through, if any were given. Raises PortProblem when they are no list."""
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


def _loop(call: Call) -> Outcome:
    limit = limit_of(call.config)
    passes = _Passes(call)
    for item in _rounds(call):
        if not passes.goes_on(item):
            break
        if passes.index == limit:
            reached = {"nodeId": call.node_id, "iterations": limit, "limit": limit}
            return Failed(limit_error(limit), because=(("workflow.loopback-limit", reached),))
        passes.take(item)
    outputs = {"iterations": passes.index, "results": passes.results}
    return Completed(outputs, variables=passes.changed)


def _rounds(call: Call) -> Iterable[Any]:
    """The items, or one None for each round of a counted or open loop."""
    items = items_of(call)
    if items is not None:
        return items
    for key in COUNTS:
        if key in call.config:
            return repeat(None, call.config[key])
    if "while" in call.config:
        return repeat(None)
    raise PortProblem("The loop has no bound: set config.items, config.times or config.while.")


class _Passes:
    """The loop's working copy of the variables, changed pass by pass."""

    def __init__(self, call: Call) -> None:
        self.config = call.config
        self.variables = dict(call.variables)
        self.changed: dict[str, Any] = {}
        self.results: list[Any] = []
        self.index = 0

    def goes_on(self, item: Any) -> bool:
        source = self.config.get("while")
        return source is None or bool(self._evaluated(source, item, "config.while"))

    def take(self, item: Any) -> None:
        if "collect" in self.config:
            found = self._evaluated(self.config["collect"], item, "config.collect")
            self.results.append(found)
        for name, source in self.config.get("set", {}).items():
            value = self._evaluated(source, item, f"config.set.{name}")
            self.variables[name] = self.changed[name] = value
        self.index += 1

    def _evaluated(self, source: str, item: Any, place: str) -> Any:
        names = {"variables": self.variables, "index": self.index, "item": item}
        if "results" in source:  # handing over a growing list each time would be quadratic
            names["results"] = self.results
        return evaluated(source, names, f"{place}, iteration {self.index}")


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


TYPE = NodeType(type_id="core.loop", kind=Kind.INSTANT, instant=_loop, check=_check)
