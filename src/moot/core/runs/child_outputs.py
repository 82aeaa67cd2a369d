"""Map the outputs of child runs to the parent's variables."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moot.core.errors import BadRequest
from moot.core.payloads.base import RecordedError
from moot.core.workflows.definition import is_of_type
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ChildSpec


class ChildReport(Struct, frozen=True):
    """A child's end, if it has ended, and the size of its run tree, itself included."""

    status: str | None = None
    runs: int = 1


class ChildEnded(Struct, frozen=True, kw_only=True):
    """A child run reached its end."""

    node_id: str
    child_run: str
    status: str
    at: int
    variables: dict[str, object] = {}
    outputs: dict[str, object] = {}
    error: RecordedError | None = None
    sealed: Mapping[str, object] = {}
    #: the size of its run tree, itself included
    runs: int = 1
    #: the children that the parent still counts as living
    seen: dict[str, ChildReport] = {}
    #: for a child on another host: the event that ended it, and that host
    cause: str | None = None
    cause_host: str = ""
    #: the parent is done with the child, but another host may still run it
    stop: bool = False


def collect_outputs(spec: ChildSpec, ended: ChildEnded) -> dict[str, object]:
    """Return the child's mapped variables under its own names, or its outputs without a mapping."""
    if not spec.collect:
        return ended.outputs
    variables = ended.variables
    return {theirs: variables[theirs] for theirs in spec.collect.values() if theirs in variables}


def map_outputs(collect: dict[str, str], values: Mapping[str, object]) -> dict[str, object]:
    """Return the values under the parent's names; names that the child has not set are left out."""
    return {mine: values[theirs] for mine, theirs in collect.items() if theirs in values}


def sensitive_outputs(flow: Flow, collect: dict[str, str]) -> set[str]:
    """Return the child's names of values that the parent keeps out of its log."""
    return {theirs for mine, theirs in collect.items() if mine in flow.sensitive}


def check_edited_outputs(flow: Flow, node: FlowNode, edited: Any) -> None:
    """Raise BadRequest when the outputs that a person edited cannot be merged."""
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
    for mine, value in map_outputs(collect, edited).items():
        if mine in types and not is_of_type(types[mine], value):
            raise BadRequest(
                f"'{collect[mine]}' must be a {types[mine]}.", field="editedArtifactData"
            )
