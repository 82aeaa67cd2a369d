"""What flows back from an attested child: which values, under which names, as edited."""

from typing import Any

from msgspec import Struct

from moot.core.errors import BadRequest
from moot.core.workflows.definition import fits
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import ChildSpec


class Seen(Struct, frozen=True):
    """A child that its parent has not been told the end of: how it ended, if it has, and how many
    runs it has led to, itself among them."""

    status: str | None = None
    runs: int = 1


class ChildEnded(Struct, frozen=True, kw_only=True):
    """A child run reached its end."""

    node_id: str
    child_run: str
    status: str
    at: int
    variables: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    error: dict[str, Any] | None = None
    sealed: dict[str, Any] = {}
    #: how many runs it has led to, itself among them
    runs: int = 1
    #: the children that live on as far as the parent knows
    seen: dict[str, Seen] = {}
    #: of a child on another host: the event there that ended it, and that host
    cause: str | None = None
    cause_host: str = ""
    #: it is over for its parent, but may still be there
    stop: bool = False


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
