"""Warn about oddities of a workflow when it is registered.

Warnings do not refuse the workflow.
"""

from collections.abc import Iterator, Mapping

from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeKind


def definition_warnings(flow: Flow) -> list[str]:
    """Report mappings from and to variables that the workflow does not declare."""
    declared = {variable.name for variable in flow.definition.variables} | set(flow.channels)
    return [
        f"node '{node.id}': {place} names the variable '{name}', which is not declared"
        for node in flow.nodes.values()
        if node.type.kind is NodeKind.CHILD
        for place, name in _mapped_variables(node)
        if name not in declared
    ]


def _mapped_variables(node: FlowNode) -> Iterator[tuple[str, str]]:
    """Yield each place of a config that names a variable of its own workflow."""
    config = node.definition.config
    for name in _own_names(config.get("inputMapping", {}), True):
        yield "inputMapping", name
    for name in _own_names(config.get("outputMapping", {}), False):
        yield "outputMapping", name
    for place, inwards in (("perWorkerInputMappings", True), ("perWorkerOutputMappings", False)):
        for worker, mapping in config.get(place, {}).items():
            for name in _own_names(mapping, inwards):
                yield f"{place}.{worker}", name


def _own_names(mapping: Mapping[str, str], inwards: bool) -> list[str]:
    return list(mapping.values() if inwards else mapping)
