"""core.clarificationGate: asks a list of questions and waits until all are answered."""

from typing import Any

from moot.core.workflows.node_types import Call, GateSpec, Kind, NodeType
from moot.engine.nodes import gate_config


def _gate(call: Call) -> GateSpec:
    return GateSpec(
        kind="clarification",
        data=data_of(call.config),
        timeout_ms=call.config.get("timeoutMs"),
        resume_schema=call.config.get("resumeSchema"),
        profile=call.config.get("profile"),
    )


def data_of(config: dict[str, Any]) -> dict[str, Any]:
    """What goes onto the wire, and nothing else."""
    questions = [
        {key: question[key] for key in ("id", "question", "schema") if key in question}
        for question in config["questions"]
    ]
    data: dict[str, Any] = {"questions": questions}
    if "contextType" in config:
        data["contextType"] = config["contextType"]
    return data


TYPE = NodeType(
    type_id="core.clarificationGate", kind=Kind.GATE, gate=_gate, check=gate_config.clarification
)
