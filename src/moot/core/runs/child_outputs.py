"""What flows back from an attested child: which values, under which names, as edited."""

from typing import Any

from moot.core.children.decide import ChildEnded
from moot.core.errors import BadRequest
from moot.core.workflows.compiled import Flow, FlowNode
from moot.core.workflows.definition import fits
from moot.core.workflows.node_types import ChildSpec


def harvest_of(spec: ChildSpec, ended: ChildEnded) -> dict[str, Any]:
    """By the child's own names: the variables that are mapped and set, or, where nothing is mapped,
    the outputs of the run."""
    if not spec.collect:
        return ended.outputs
    known = ended.variables
    return {theirs: known[theirs] for theirs in spec.collect.values() if theirs in known}


def mapped(collect: dict[str, str], harvest: dict[str, Any]) -> dict[str, Any]:
    """The same by the parent's names."""
    return {mine: harvest[theirs] for mine, theirs in collect.items() if theirs in harvest}


def hidden_in(flow: Flow, collect: dict[str, str]) -> set[str]:
    """The child's names for what the parent keeps out of its log."""
    return {theirs for mine, theirs in collect.items() if mine in flow.sensitive}


def check_edit(flow: Flow, node: FlowNode, edited: Any) -> None:
    """Raises BadRequest when a person's version of the outputs could not be merged."""
    if not isinstance(edited, dict):
        raise BadRequest("The outputs of a run are an object.", field="editedArtifactData")
    collect: dict[str, str] = node.definition.config.get("outputMapping", {})
    unknown = sorted(set(edited) - set(collect.values())) if collect else []
    if unknown:
        raise BadRequest(
            f"Nothing is mapped from '{unknown[0]}'; keep to {', '.join(collect.values())}.",
            field="editedArtifactData",
            unknown=unknown,
        )
    types = {variable.name: variable.type for variable in flow.definition.variables}
    for mine, value in mapped(collect, edited).items():
        if mine in types and not fits(types[mine], value):
            raise BadRequest(
                f"'{collect[mine]}' must be a {types[mine]}.", field="editedArtifactData"
            )
