"""Warn about oddities of a workflow when it is registered.

Warnings do not refuse the workflow.
"""

from collections.abc import Iterator

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
    mappings = {place: config.get(place, {}) for place in ("inputMapping", "outputMapping")}
    for place in ("perWorkerInputMappings", "perWorkerOutputMappings"):
        for worker, mapping in config.get(place, {}).items():
            mappings[f"{place}.{worker}"] = mapping
    for place, mapping in mappings.items():
        inwards = place.startswith(("inputMapping", "perWorkerInput"))
        yield from ((place, name) for name in (mapping.values() if inwards else mapping))
