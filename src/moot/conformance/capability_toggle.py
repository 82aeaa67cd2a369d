"""On a host under trial: what a test has switched off is refused as if it were not here."""

from collections.abc import Iterable
from typing import Any

from moot.core.errors import BadRequest, CapabilityRequired
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.graph import Flow

#: type of a node -> the claims of which each must hold
NEEDS = {
    "core.conversationGate": ("conversationPrimitive",),
    SUPERVISOR: ("agents.orchestrator", "orchestrator.supported"),
    DISPATCH: ("agents.dispatch", "dispatch.supported"),
}

MAPPINGS = ("inputMapping", "outputMapping", "perWorkerInputMappings", "perWorkerOutputMappings")

#: id, type and config of a node
Node = tuple[str, str, dict[str, Any]]


def refuse(overlay: dict[str, bool], nodes: Iterable[Node]) -> None:
    """Raises CapabilityRequired for a node that needs what is off, BadRequest for one whose config
    does."""
    off = {name for name, value in overlay.items() if value is False}
    for name, type_id, config in nodes if off else ():
        for claim in NEEDS.get(type_id, ()):
            if claim in off:
                raise CapabilityRequired(
                    f"Node '{name}' needs {claim}, which is switched off.",
                    requiredCapability=claim,
                    offendingTypeId=type_id,
                    nodeId=name,
                )
        for claim, asked, required in _used(type_id, config):
            if claim in off:
                raise BadRequest(
                    f"Node '{name}' uses {asked}, which is switched off.",
                    requiredCapability=required,
                    nodeId=name,
                )


def refuse_flow(overlay: dict[str, bool], flow: Flow) -> None:
    nodes = flow.nodes.values()
    refuse(overlay, ((node.id, node.type.type_id, node.definition.config) for node in nodes))


def _used(type_id: str, config: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """(claim, what of the config rests on it, how a refusal calls it)"""
    if type_id == "core.subWorkflow" and config.get("inputMapping"):
        yield "subWorkflow.inputMapping", "inputMapping", "subWorkflow.inputMapping"
    if type_id != DISPATCH:
        return
    for name in MAPPINGS:
        if config.get(name):
            yield "agents.dispatchMapping", name, "agents.dispatchMapping"
    if config.get("askUserRouting") == "conversation":
        yield "conversationPrimitive", "askUserRouting conversation", "conversationPrimitive"
    if config.get("fanOutPolicy") == "parallel":
        yield "dispatch.fanOutSupported", "fanOutPolicy parallel", "dispatch.fanOut"
