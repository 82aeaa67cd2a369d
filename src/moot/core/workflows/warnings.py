"""What is odd about a workflow, though it may be meant: said when it is registered, not refused."""

from collections.abc import Iterator
from typing import Any

from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Kind


def remarks(flow: Flow) -> list[str]:
    """Mappings from and to variables that the workflow does not declare."""
    known = {variable.name for variable in flow.definition.variables} | set(flow.channels)
    return [
        f"node '{node.id}': {place} names the variable '{name}', which is not declared"
        for node in flow.nodes.values()
        if node.type.kind is Kind.CHILD
        for place, name in _named(node)
        if name not in known
    ]


def _named(node: FlowNode) -> Iterator[tuple[str, str]]:
    """Where a config names variables of its own workflow."""
    config = node.definition.config
    for name in _own(config.get("inputMapping", {}), True):
        yield "inputMapping", name
    for name in _own(config.get("outputMapping", {}), False):
        yield "outputMapping", name
    for place, inwards in (("perWorkerInputMappings", True), ("perWorkerOutputMappings", False)):
        for worker, mapping in config.get(place, {}).items():
            for name in _own(mapping, inwards):
                yield f"{place}.{worker}", name


def _own(mapping: dict[str, Any], inwards: bool) -> list[str]:
    return list(mapping.values() if inwards else mapping)
