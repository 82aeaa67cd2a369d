"""The node type ``core.approvalGate``: wait for enough approvals or a rejection."""

from typing import Any

from moot.core.ids import derived_id
from moot.core.workflows.node_types import GateSpec, NodeCall, NodeKind, NodeType
from moot.engine.nodes import gate_config

#: config keys that an approval carries besides its artifact, title and actions
CARRIED_KEYS = (
    "description", "requiredApprovals", "approversList", "rejectionPolicy",
    "overrideBypassesQuorum", "approverGroupRefs", "approverRoleRefs", "audience",
)  # fmt: skip


def _gate(call: NodeCall) -> GateSpec:
    config = call.config
    data: dict[str, Any] = {
        "artifactId": str(
            config.get("artifactId") or derived_id("art_", call.run_id, call.node_id)
        ),
        "artifactType": str(config.get("artifactType", "approval")),
        "title": str(call.inputs.get("title", config.get("title", "Approval"))) or "Approval",
        "actions": approval_actions(config),
    }
    data.update({key: config[key] for key in CARRIED_KEYS if key in config})
    artifact = call.inputs.get("artifact", config.get("artifactData"))
    if artifact is not None:
        data["artifactData"] = artifact
    return GateSpec(
        kind="approval",
        data=data,
        timeout_ms=config.get("timeoutMs"),
        resume_schema=config.get("resumeSchema"),
        profile=config.get("profile"),
    )


def approval_actions(config: dict[str, Any]) -> list[str]:
    """Return the gate's actions, each once, in current spelling."""
    configured = config.get("actions") or ["accept", "reject"]
    return list(
        dict.fromkeys("edit-accept" if action == "edit" else action for action in configured)
    )


TYPE = NodeType(
    type_id="core.approvalGate",
    kind=NodeKind.GATE,
    gate=_gate,
    check=gate_config.check_approval,
    routes=True,
)
