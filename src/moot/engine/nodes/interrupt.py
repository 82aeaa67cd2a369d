"""core.interrupt: waits for an answer of any kind."""

from typing import Any

from moot.core.outcomes import Call, GateSpec, Kind, NodeType
from moot.engine.nodes import approval_gate, clarification_gate
from moot.engine.nodes.approval_gate import check_schema, check_timeout

KINDS = ("approval", "clarification", "external-event", "custom")


def _gate(call: Call) -> GateSpec:
    config = call.config
    kind = config.get("kind", config.get("reason", "custom"))
    data = dict(config.get("data", {}))
    if kind == "approval":
        data.setdefault("artifactId", f"{call.run_id}:{call.node_id}")
        data.setdefault("artifactType", "approval")
        data.setdefault("title", "Approval")
        data["actions"] = approval_gate.actions_of(data)
    if kind == "custom":
        data.setdefault("customKind", "custom")
    return GateSpec(
        kind=kind,
        data=data,
        timeout_ms=config.get("timeoutMs"),
        resume_schema=config.get("resumeSchema", config.get("answerSchema")),
        profile=config.get("profile"),
    )


def _check(config: dict[str, Any]) -> str | None:
    kind = config.get("kind", config.get("reason", "custom"))
    data = config.get("data", {})
    if kind not in KINDS:
        return f"kind must be one of {', '.join(KINDS)}"
    if not isinstance(data, dict):
        return "data must be an object"
    return (
        CHECKS[kind](data)
        or check_schema(config, "resumeSchema")
        or check_schema(config, "answerSchema")
        or check_timeout(config)
    )


def _check_event(data: dict[str, Any]) -> str | None:
    if set(data) - {"eventType", "correlation"}:
        return "data of an external event has eventType and correlation"
    if not isinstance(data.get("eventType"), str) or not isinstance(data.get("correlation"), dict):
        return "data of an external event needs eventType and correlation"
    return None


def _check_custom(data: dict[str, Any]) -> str | None:
    return "data has customKind and payload" if set(data) - {"customKind", "payload"} else None


CHECKS = {
    "approval": approval_gate.check,
    "clarification": clarification_gate.check,
    "external-event": _check_event,
    "custom": _check_custom,
}

TYPE = NodeType(type_id="core.interrupt", kind=Kind.GATE, gate=_gate, check=_check, routes=True)
