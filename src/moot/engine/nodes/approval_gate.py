"""core.approvalGate: waits until enough of the right people have said yes, or one says no."""

from typing import Any

from moot.core import schemas
from moot.core.approvals import ACTIONS
from moot.core.ids import derived_id
from moot.core.outcomes import Call, GateSpec, Kind, NodeType

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


def check(config: dict[str, Any]) -> str | None:
    actions = config.get("actions", ["accept"])
    if not isinstance(actions, list) or not set(actions) <= {*ACTIONS, "edit"}:
        return f"actions must be among {', '.join(ACTIONS)}"
    if config.get("rejectionPolicy", "single-veto") not in ("single-veto", "majority"):
        return "rejectionPolicy must be single-veto or majority"
    needed = config.get("requiredApprovals", 1)
    if not isinstance(needed, int) or isinstance(needed, bool) or needed < 1:
        return "requiredApprovals must be a whole number from 1"
    listed = config.get("approversList", [])
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        return "approversList must be a list of names"
    subjects = _subjects(config.get("audience", {}))
    if subjects is None or not all(isinstance(name, str) for name in subjects):
        return "audience must be an object, its subjects a list of names"
    return check_schema(config, "resumeSchema") or check_timeout(config)


def _subjects(audience: Any) -> list[Any] | None:
    found = audience.get("subjects", []) if isinstance(audience, dict) else None
    return found if isinstance(found, list) else None


def check_schema(config: dict[str, Any], field: str) -> str | None:
    """A schema that cannot be used would refuse every answer."""
    schema = config.get(field)
    if schema is None:
        return None
    if not isinstance(schema, dict):
        return f"{field} must be a JSON Schema"
    try:
        schemas.check(schema)
    except schemas.SchemaError as error:
        return f"{field} cannot be used: {error}"
    return None


def check_timeout(config: dict[str, Any]) -> str | None:
    wait = config.get("timeoutMs", 0)
    if not isinstance(wait, int) or isinstance(wait, bool) or wait < 0:
        return "timeoutMs must be a whole number from 0"
    if config.get("onTimeout", "fail") not in ("fail", "complete"):
        return "onTimeout must be fail or complete"
    return None


TYPE = NodeType(type_id="core.approvalGate", kind=Kind.GATE, gate=_gate, check=check, routes=True)
