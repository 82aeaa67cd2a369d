"""core.interrupt: waits for an answer of any kind."""

from moot.core.workflows.node_types import Call, GateSpec, Kind, NodeType
from moot.engine.nodes import approval_gate, clarification_gate, gate_config


def _gate(call: Call) -> GateSpec:
    config = call.config
    kind = config.get("kind", config.get("reason", "custom"))
    data = dict(config.get("data", {}))
    if kind == "approval":
        data.setdefault("artifactId", f"{call.run_id}:{call.node_id}")
        data.setdefault("artifactType", "approval")
        data["title"] = data.get("title") or "Approval"
        data["actions"] = approval_gate.actions_of(data)
    if kind == "clarification":
        data = clarification_gate.data_of(data)
    if kind == "custom":
        data.setdefault("customKind", "custom")
    return GateSpec(
        kind=kind,
        data=data,
        timeout_ms=config.get("timeoutMs"),
        resume_schema=config.get("resumeSchema", config.get("answerSchema")),
        profile=config.get("profile"),
    )


TYPE = NodeType(
    type_id="core.interrupt", kind=Kind.GATE, gate=_gate, check=gate_config.interrupt, routes=True
)
