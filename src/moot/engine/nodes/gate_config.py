"""Check the configs of gates when a workflow is registered.

Most of a config goes onto the wire unchanged, so that only values which fit the protocol may pass.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.json.schema import SchemaError, check_schema
from moot.core.state.council_policy import Policy, describe_unused_settings
from moot.core.text.names import is_person

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
