"""The node type ``moot.forEach``: one child run for each item, in order."""

from typing import Any

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import ChildSpec, NodeCall, NodeKind, NodeType
from moot.engine.nodes.inputs import first_problem
from moot.engine.nodes.loop import (
    items_problem,
    iteration_limit,
    limit_error,
    limit_problem,
    loop_items,
)
from moot.engine.nodes.sub_workflow import check_child, child_spec

NAMES = {"itemVariable": "item", "indexVariable": "index"}


class _TooManyItems(PortProblem):
    """Raised before the first child starts, not after the last one that fits."""

    def __init__(self, limit: int) -> None:
        error = limit_error(limit)
        super().__init__(error.message)
        self.error = error


def _child(call: NodeCall, number: int) -> ChildSpec | None:
    items = loop_items(call)
    if items is None:
        raise PortProblem("There is nothing to go through: set config.items or the input items.")
    if len(items) > iteration_limit(call.config):
        raise _TooManyItems(iteration_limit(call.config))
    if number >= len(items):
        return None
    item, index = (call.config.get(key, name) for key, name in NAMES.items())
    return child_spec(call, {item: items[number], index: number})


def _check(config: dict[str, Any]) -> str | None:
    return first_problem(
        check_child(config),
        limit_problem(config),
        items_problem(config),
        *(
            f"config.{key} must name a variable"
            for key in NAMES
            if key in config and not (isinstance(config[key], str) and config[key])
        ),
    )


TYPE = NodeType(type_id="moot.forEach", kind=NodeKind.CHILD, child=_child, check=_check)
