"""Refuse workflows that need a capability which a test has switched off."""

from collections.abc import Iterable, Mapping

from moot.core.errors import BadRequest, CapabilityRequired
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.flow import Flow

#: Node type -> claims that must all hold.
REQUIRED_CLAIMS = {
    "core.conversationGate": ("conversationPrimitive",),
    SUPERVISOR: ("agents.orchestrator", "orchestrator.supported"),
    DISPATCH: ("agents.dispatch", "dispatch.supported"),
}

MAPPINGS = ("inputMapping", "outputMapping", "perWorkerInputMappings", "perWorkerOutputMappings")

#: Id, type and config of a node.
NodeRow = tuple[str, str, Mapping[str, object]]


def check_nodes(overlay: dict[str, bool], nodes: Iterable[NodeRow]) -> None:
    """Raise CapabilityRequired for a node type that needs a capability which is off, and BadRequest
    for such a config."""
    off = {name for name, value in overlay.items() if value is False}
    for name, type_id, config in nodes if off else ():
        for claim in REQUIRED_CLAIMS.get(type_id, ()):
            if claim in off:
                raise CapabilityRequired(
                    f"Node '{name}' needs {claim}, which is switched off.",
                    requiredCapability=claim,
                    offendingTypeId=type_id,
                    nodeId=name,
                )
        for claim, field, required in _used_claims(type_id, config):
            if claim in off:
                raise BadRequest(
                    f"Node '{name}' uses {field}, which is switched off.",
                    requiredCapability=required,
                    nodeId=name,
                )


def check_flow(overlay: dict[str, bool], flow: Flow) -> None:
    if not overlay:
        return
    nodes = flow.nodes.values()
    check_nodes(overlay, ((node.id, node.type.type_id, node.definition.config) for node in nodes))


def _used_claims(type_id: str, config: Mapping[str, object]) -> Iterable[tuple[str, str, str]]:
    """Yield (claim, config field that needs it, name in the refusal)."""
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
