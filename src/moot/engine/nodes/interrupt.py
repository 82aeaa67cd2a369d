"""The node types ``core.interrupt`` and ``core.clarificationGate``.

Both ask and wait for an answer.
"""

from typing import Any

from moot.core.workflows.node_types import GateSpec, NodeCall, NodeKind, NodeType
from moot.engine.nodes import approval_gate, gate_config


def _interrupt_gate(call: NodeCall) -> GateSpec:
    config = call.config
    kind = config.get("kind", config.get("reason", "custom"))
    data = dict(config.get("data", {}))
    if kind == "approval":
        data.setdefault("artifactId", f"{call.run_id}:{call.node_id}")
        data.setdefault("artifactType", "approval")
        data["title"] = data.get("title") or "Approval"
        data["actions"] = approval_gate.approval_actions(data)
    if kind == "clarification":
        data = clarification_data(data)
    if kind == "custom":
        data.setdefault("customKind", "custom")
    return GateSpec(
        kind=kind,
        data=data,
        timeout_ms=config.get("timeoutMs"),
        resume_schema=config.get("resumeSchema", config.get("answerSchema")),
        profile=config.get("profile"),
    )


INTERRUPT = NodeType(
    type_id="core.interrupt",
    kind=NodeKind.GATE,
    gate=_interrupt_gate,
    check=gate_config.check_interrupt,
    routes=True,
)


def _clarification_gate(call: NodeCall) -> GateSpec:
    return GateSpec(
        kind="clarification",
        data=clarification_data(call.config),
        timeout_ms=call.config.get("timeoutMs"),
        resume_schema=call.config.get("resumeSchema"),
        profile=call.config.get("profile"),
    )


def clarification_data(config: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a clarification that go onto the wire."""
    questions = [
        {key: question[key] for key in ("id", "question", "schema") if key in question}
        for question in config["questions"]
    ]
    data: dict[str, Any] = {"questions": questions}
    if "contextType" in config:
        data["contextType"] = config["contextType"]
    return data


CLARIFICATION_GATE = NodeType(
    type_id="core.clarificationGate",
    kind=NodeKind.GATE,
    gate=_clarification_gate,
    check=gate_config.check_clarification,
)
