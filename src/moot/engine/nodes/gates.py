"""Node types that wait for an answer: approval, clarification, conversation.

``core.interrupt`` asks for any of these, or for an event from outside.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from moot.core.conversations.participants import check_invited, check_roster
from moot.core.errors import BadRequest
from moot.core.ids import derived_id
from moot.core.state.council_policy import Policy
from moot.core.workflows.node_types import ConversationSpec, GateSpec, NodeCall, NodeKind, NodeType
from moot.engine.nodes.gate_config import (
    ApprovalConfig,
    ClarificationConfig,
    ConversationConfig,
    GateConfig,
    check_approval,
    check_clarification,
    check_conversation,
    check_interrupt,
)

#: config keys that an approval carries besides its artifact, title and actions
CARRIED_KEYS = (
    "description", "requiredApprovals", "approversList", "rejectionPolicy",
    "overrideBypassesQuorum", "approverGroupRefs", "approverRoleRefs", "audience",
)  # fmt: skip

T = TypeVar("T")


def _or_none(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value


def _gate_spec(kind: str, data: dict[str, object], config: GateConfig) -> GateSpec:
    return GateSpec(
        kind=kind,
        data=data,
        timeout_ms=_or_none(config.timeout_ms),
        resume_schema=_or_none(config.resume_schema),
        profile=_or_none(config.profile),
    )


# -- core.approvalGate ---------------------------------------------------------------------------


def _approval_gate(call: NodeCall) -> GateSpec:
    config = call.config
    data: dict[str, object] = {
        "artifactId": str(
            config.get("artifactId") or derived_id("art_", call.run_id, call.node_id)
        ),
        "artifactType": str(config.get("artifactType", "approval")),
        "title": str(call.inputs.get("title", config.get("title", "Approval"))) or "Approval",
        "actions": _approval_actions(config.get("actions")),
    }
    data.update({key: config[key] for key in CARRIED_KEYS if key in config})
    artifact = call.inputs.get("artifact", config.get("artifactData"))
    if artifact is not None:
        data["artifactData"] = artifact
    return _gate_spec("approval", data, msgspec.convert(config, ApprovalConfig))


def _approval_actions(configured: object) -> list[str]:
    """Return the gate's actions, each once, in current spelling."""
    actions = configured if isinstance(configured, list) else []
    current = ["edit-accept" if action == "edit" else action for action in actions]
    return list(dict.fromkeys(current)) or ["accept", "reject"]


# -- core.interrupt and core.clarificationGate ---------------------------------------------------


def _interrupt_gate(call: NodeCall) -> GateSpec:
    config = call.config
    kind = str(config.get("kind", config.get("reason", "custom")))
    data: dict[str, object] = dict(config.get("data", {}))
    if kind == "approval":
        data.setdefault("artifactId", f"{call.run_id}:{call.node_id}")
        data.setdefault("artifactType", "approval")
        data["title"] = data.get("title") or "Approval"
        data["actions"] = _approval_actions(data.get("actions"))
    if kind == "clarification":
        data = _clarification_data(data)
    if kind == "custom":
        data.setdefault("customKind", "custom")
    settings = msgspec.convert(config, GateConfig)
    if settings.resume_schema is UNSET:
        settings.resume_schema = settings.answer_schema
    return _gate_spec(kind, data, settings)


def _clarification_gate(call: NodeCall) -> GateSpec:
    data = _clarification_data(call.config)
    return _gate_spec("clarification", data, msgspec.convert(call.config, GateConfig))


def _clarification_data(config: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a clarification that go onto the wire."""
    parsed = msgspec.convert(config, ClarificationConfig)
    data: dict[str, object] = {"questions": msgspec.to_builtins(parsed.questions)}
    if parsed.context_type is not UNSET:
        data["contextType"] = parsed.context_type
    return data


# -- core.conversationGate -----------------------------------------------------------------------


def conversation_gate(call: NodeCall, mock_turns: int | None = None) -> GateSpec:
    """Return the question of the gate. With ``mock_turns`` it answers itself that often."""
    config = msgspec.convert(call.config, ConversationConfig)
    participants = _setting(call, "participants")
    if participants is not None:
        check_roster(participants)
    opening, outside = _setting(call, "question", "prompt"), call.run_inputs.get("outside")
    policy, profiles = _setting(call, "participation"), _setting(call, "profiles") or {}
    spec = ConversationSpec(
        opening=opening,
        title=_setting(call, "title"),
        participants=participants,
        invited=check_invited(_setting(call, "invited") or []),
        schema=_or_none(config.schema),
        owner=_or_none(config.agent_id),
        group_id=_or_none(config.group_id),
        participation=None if policy is None else _check_fit(policy, "participation", Policy),
        profiles=_check_fit(profiles, "profiles", dict[str, dict[str, str]]),
        outside=[str(name) for name in outside] if isinstance(outside, list) else [],
        mock_turns=mock_turns,
    )
    data: dict[str, object] = {
        "conversationId": f"{call.run_id}:{call.node_id}:{call.attempt}",
        "prompt": opening if isinstance(opening, str) and opening else "The floor is open.",
        "turnIndex": 1,
    }
    if config.outcome_schema is not UNSET:
        data["outcomeSchema"] = config.outcome_schema
    return GateSpec(
        kind="conversation.exchange",
        data=data,
        timeout_ms=_or_none(config.timeout_ms),
        profile=_or_none(config.profile),
        conversation=spec,
    )


def _check_fit(setting: Any, name: str, type_: Any) -> Any:
    """Return a copy of the setting. Raise BadRequest when it does not fit the type."""
    try:
        msgspec.convert(setting, type_)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{name} does not fit: {error}", field=name) from None
    return dict(setting)


def _setting(call: NodeCall, name: str, in_config: str | None = None) -> Any:
    """Return a setting: the node's port first, then the workflow, then the run's inputs.

    The caller that starts a run cannot override its workflow.
    """
    return call.inputs.get(name, call.config.get(in_config or name, call.run_inputs.get(name)))


def _check_conversation_gate(config: Mapping[str, object]) -> str | None:
    if config.get("mockAutoResume"):
        return "mockAutoResume is for a host under trial (moot serve --conformance)"
    return check_conversation(config)


GATE = NodeKind.GATE
CONVERSATION_GATE = NodeType(
    type_id="core.conversationGate",
    kind=GATE,
    gate=conversation_gate,
    check=_check_conversation_gate,
)
GATES = (
    NodeType(
        type_id="core.approvalGate",
        kind=GATE,
        gate=_approval_gate,
        check=check_approval,
        routes=True,
    ),
    NodeType(
        type_id="core.clarificationGate",
        kind=GATE,
        gate=_clarification_gate,
        check=check_clarification,
    ),
    NodeType(
        type_id="core.interrupt",
        kind=GATE,
        gate=_interrupt_gate,
        check=check_interrupt,
        routes=True,
    ),
    CONVERSATION_GATE,
)
