"""Node types that wait for an answer: approval, clarification, conversation.

``core.interrupt`` asks for any of these, or for an event from outside. Most of a config goes onto
the wire unchanged, so that only values which fit the protocol may pass the check.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.conversations.participants import check_invited, check_roster
from moot.core.errors import BadRequest
from moot.core.ids import derived_id
from moot.core.json.schema import SchemaError, check_schema
from moot.core.state.council_policy import Policy, describe_unused_settings
from moot.core.text.names import is_person
from moot.core.workflows.node_types import ConversationSpec, GateSpec, NodeCall, NodeKind, NodeType

#: a hundred years
LONGEST_WAIT_MS = 3_155_760_000_000
MOST_TURNS = 10_000
MOST_MOCK_TURNS = 100

Text = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Count = Annotated[int, Meta(ge=1)]
Schema = dict[str, object] | UnsetType
Words = list[str] | UnsetType
ConfigT = TypeVar("ConfigT", bound=Struct)


class GateConfig(Struct, kw_only=True, rename="camel"):
    timeout_ms: Annotated[int, Meta(ge=0, le=LONGEST_WAIT_MS)] | UnsetType = UNSET
    on_timeout: Literal["fail", "complete"] = "fail"
    profile: str | UnsetType = UNSET
    resume_schema: Schema = UNSET
    answer_schema: Schema = UNSET


class ApprovalAudience(Struct, forbid_unknown_fields=True):
    subjects: Words = UNSET
    groups: Words = UNSET
    roles: Words = UNSET


class ApprovalConfig(GateConfig, rename="camel"):
    #: a timeout never approves
    on_timeout: Literal["fail"] = "fail"
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    artifact_id: Text | UnsetType = UNSET
    artifact_type: Text | UnsetType = UNSET
    actions: list[Literal["accept", "reject", "refine", "edit-accept", "edit", "ask"]] = []
    required_approvals: Count = 1
    approvers_list: Words = UNSET
    rejection_policy: Literal["single-veto", "majority"] = "single-veto"
    override_bypasses_quorum: bool = False
    approver_group_refs: Words = UNSET
    approver_role_refs: Words = UNSET
    audience: ApprovalAudience | UnsetType = UNSET


class GateQuestion(Struct):
    id: Text
    question: Text
    schema: Schema = UNSET


class ClarificationConfig(GateConfig):
    questions: Annotated[list[GateQuestion], Meta(min_length=1)]
    context_type: str | UnsetType = UNSET


class ExternalEventData(Struct, forbid_unknown_fields=True, rename="camel"):
    event_type: Text
    correlation: dict[str, object]


class CustomData(Struct, forbid_unknown_fields=True, rename="camel"):
    custom_kind: Text = "custom"
    payload: Any = None


class ConversationConfig(GateConfig, rename="camel"):
    lifecycle: Literal["open-exchange-close"] | UnsetType = UNSET
    mock_auto_resume: bool = False
    turn_count: Annotated[int, Meta(ge=1, le=MOST_TURNS)] = 1
    participants: list[dict[str, object]] | UnsetType = UNSET
    title: Text | UnsetType = UNSET
    agent_id: Name | UnsetType = UNSET
    group_id: Name | UnsetType = UNSET
    channel: Text | UnsetType = UNSET
    participation: Policy | UnsetType = UNSET
    schema: Schema = UNSET
    outcome_schema: Schema = UNSET


def read_config(config: Mapping[str, object], type_: type[ConfigT]) -> ConfigT | str:
    """Return the config as its type, or the problem with it."""
    try:
        parsed = msgspec.convert(config, type_)
    except msgspec.ValidationError as error:
        return str(error).replace("`$.", "`")
    for name in ("resume_schema", "answer_schema", "schema", "outcome_schema"):
        if problem := schema_problem(getattr(parsed, name, UNSET)):
            return f"{name}: {problem}"
    return parsed


def schema_problem(schema: Schema) -> str | None:
    if isinstance(schema, UnsetType):
        return None
    try:
        check_schema(schema)
    except SchemaError as error:
        return str(error)
    return None


def check_approval(config: Mapping[str, object]) -> str | None:
    parsed = read_config(config, ApprovalConfig)
    if isinstance(parsed, str):
        return parsed
    listed = [] if isinstance(parsed.approvers_list, UnsetType) else parsed.approvers_list
    others = config.get("approverGroupRefs") or config.get("approverRoleRefs")
    if listed and not others and parsed.required_approvals > len(set(listed)):
        return f"requiredApprovals is {parsed.required_approvals}, approversList names fewer"
    return None


def check_clarification(config: Mapping[str, object]) -> str | None:
    parsed = read_config(config, ClarificationConfig)
    if isinstance(parsed, str):
        return parsed
    if len({question.id for question in parsed.questions}) < len(parsed.questions):
        return "every question needs an id of its own"
    for question in parsed.questions:
        if problem := schema_problem(question.schema):
            return f"the schema of question '{question.id}': {problem}"
    return None


def check_conversation(config: Mapping[str, object]) -> str | None:
    """Check the config. Creating a run, not this check, refuses a roster that is too large."""
    parsed = read_config(config, ConversationConfig)
    if isinstance(parsed, str):
        return parsed
    if isinstance(parsed.agent_id, str) and is_person(parsed.agent_id):
        return "agentId is an agent's; a person speaks with a key"
    if parsed.mock_auto_resume and parsed.turn_count > MOST_MOCK_TURNS:
        return f"turnCount is at most {MOST_MOCK_TURNS} with mockAutoResume"
    policy = config.get("participation")
    return describe_unused_settings(policy) if isinstance(policy, dict) else None


#: kind of core.interrupt -> the type of its data
INTERRUPT_DATA: dict[str, type[Struct]] = {
    "approval": ApprovalConfig,
    "clarification": ClarificationConfig,
    "external-event": ExternalEventData,
    "custom": CustomData,
}


def check_interrupt(config: Mapping[str, object]) -> str | None:
    kind = config.get("kind", config.get("reason", "custom"))
    data = config.get("data", {})
    if not isinstance(kind, str) or kind not in INTERRUPT_DATA:
        return f"kind must be one of {', '.join(INTERRUPT_DATA)}"
    if not isinstance(data, dict):
        return "data must be an object"
    wait = read_config(config, GateConfig)
    if isinstance(wait, str):
        return wait
    if kind == "clarification":
        return check_clarification(data)
    parsed = read_config(data, INTERRUPT_DATA[kind])
    if isinstance(parsed, str):
        return f"data: {parsed}"
    return check_approval(data) if kind == "approval" else None


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
    gate = _gate_spec("conversation.exchange", data, config)
    return msgspec.structs.replace(gate, resume_schema=None, conversation=spec)


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
