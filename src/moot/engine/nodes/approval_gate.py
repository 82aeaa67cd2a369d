"""core.approvalGate: waits until enough of the right people have said yes, or one says no."""

from typing import Any

from moot.core.ids import derived_id
from moot.core.workflows.node_types import Call, GateSpec, Kind, NodeType
from moot.engine.nodes import gate_config

#: what an approval may carry, besides its artifact, title and actions
CARRIED = (
    "description", "requiredApprovals", "approversList", "rejectionPolicy",
    "overrideBypassesQuorum", "approverGroupRefs", "approverRoleRefs", "audience",
)  # fmt: skip


def _gate(call: Call) -> GateSpec:
    config = call.config
    data: dict[str, Any] = {
        "artifactId": str(
            config.get("artifactId") or derived_id("art_", call.run_id, call.node_id)
        ),
        "artifactType": str(config.get("artifactType", "approval")),
        "title": str(call.inputs.get("title", config.get("title", "Approval"))) or "Approval",
        "actions": actions_of(config),
    }
    data.update({key: config[key] for key in CARRIED if key in config})
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


def actions_of(config: dict[str, Any]) -> list[str]:
    """The gate's actions, each once, in today's spelling."""
    asked = config.get("actions") or ["accept", "reject"]
    return list(dict.fromkeys("edit-accept" if word == "edit" else word for word in asked))


TYPE = NodeType(
    type_id="core.approvalGate", kind=Kind.GATE, gate=_gate, check=gate_config.approval, routes=True
)
