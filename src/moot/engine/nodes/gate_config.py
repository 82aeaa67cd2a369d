"""What the configs of gates may say, checked when a workflow is registered.

Most of it is carried onto the wire as it is, so what does not fit the protocol must not get so far.
"""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from moot.core.json.schema import SchemaError, check
from moot.core.state.council_policy import Policy, meaningless
from moot.core.text.names import is_person

#: a hundred years
LONGEST_WAIT_MS = 3_155_760_000_000
MOST_TURNS = 10_000
MOST_MOCK_TURNS = 100

Text = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Count = Annotated[int, Meta(ge=1)]
Schema = dict[str, Any] | UnsetType
Words = list[str] | UnsetType
Config = TypeVar("Config", bound=Struct)


class Wait(Struct, kw_only=True, rename="camel"):
    """What every gate may have."""

    timeout_ms: Annotated[int, Meta(ge=0, le=LONGEST_WAIT_MS)] | UnsetType = UNSET
    on_timeout: Literal["fail", "complete"] = "fail"
    profile: str | UnsetType = UNSET
    resume_schema: Schema = UNSET
    answer_schema: Schema = UNSET


class Audience(Struct, forbid_unknown_fields=True):
    subjects: Words = UNSET
    groups: Words = UNSET
    roles: Words = UNSET


class Approval(Wait, rename="camel"):
    #: nothing is ever approved by waiting
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
    audience: Audience | UnsetType = UNSET


class Question(Struct):
    id: Text
    question: Text
    schema: Schema = UNSET


class Clarification(Wait):
    questions: Annotated[list[Question], Meta(min_length=1)]
    context_type: str | UnsetType = UNSET


class ExternalEvent(Struct, forbid_unknown_fields=True, rename="camel"):
    event_type: Text
    correlation: dict[str, Any]


class Custom(Struct, forbid_unknown_fields=True, rename="camel"):
    custom_kind: Text = "custom"
    payload: Any = None


class Conversation(Wait, rename="camel"):
    lifecycle: Literal["open-exchange-close"] | UnsetType = UNSET
    mock_auto_resume: bool = False
    turn_count: Annotated[int, Meta(ge=1, le=MOST_TURNS)] = 1
    participants: list[dict[str, Any]] | UnsetType = UNSET
    title: Text | UnsetType = UNSET
    agent_id: Name | UnsetType = UNSET
    group_id: Name | UnsetType = UNSET
    channel: Text | UnsetType = UNSET
    participation: Policy | UnsetType = UNSET
    schema: Schema = UNSET
    outcome_schema: Schema = UNSET


def read(config: dict[str, Any], type_: type[Config]) -> Config | str:
    """The config as its type, or what is wrong with it."""
    try:
        found = msgspec.convert(config, type_)
    except msgspec.ValidationError as error:
        return str(error).replace("`$.", "`")
    for name in ("resume_schema", "answer_schema", "schema", "outcome_schema"):
        if problem := unusable(getattr(found, name, UNSET)):
            return f"{name}: {problem}"
    return found


def unusable(schema: Schema) -> str | None:
    """What is wrong with a JSON Schema."""
    if isinstance(schema, UnsetType):
        return None
    try:
        check(schema)
    except SchemaError as error:
        return str(error)
    return None


def approval(config: dict[str, Any]) -> str | None:
    found = read(config, Approval)
    if isinstance(found, str):
        return found
    listed = [] if isinstance(found.approvers_list, UnsetType) else found.approvers_list
    others = config.get("approverGroupRefs") or config.get("approverRoleRefs")
    if listed and not others and found.required_approvals > len(set(listed)):
        return f"requiredApprovals is {found.required_approvals}, approversList names fewer"
    return None


def clarification(config: dict[str, Any]) -> str | None:
    found = read(config, Clarification)
    if isinstance(found, str):
        return found
    if len({question.id for question in found.questions}) < len(found.questions):
        return "every question needs an id of its own"
    for question in found.questions:
        if problem := unusable(question.schema):
            return f"the schema of question '{question.id}': {problem}"
    return None


def conversation(config: dict[str, Any]) -> str | None:
    """A roster that is too large is refused when a run is created, not here (council fixtures)."""
    found = read(config, Conversation)
    if isinstance(found, str):
        return found
    if isinstance(found.agent_id, str) and is_person(found.agent_id):
        return "agentId is an agent's; a person speaks with a key"
    if found.mock_auto_resume and found.turn_count > MOST_MOCK_TURNS:
        return f"turnCount is at most {MOST_MOCK_TURNS} with mockAutoResume"
    return meaningless(config.get("participation", {}))


#: kinds of core.interrupt -> what their data must be
DATA: dict[str, type[Struct]] = {
    "approval": Approval,
    "clarification": Clarification,
    "external-event": ExternalEvent,
    "custom": Custom,
}


def interrupt(config: dict[str, Any]) -> str | None:
    kind = config.get("kind", config.get("reason", "custom"))
    data = config.get("data", {})
    if not isinstance(kind, str) or kind not in DATA:
        return f"kind must be one of {', '.join(DATA)}"
    if not isinstance(data, dict):
        return "data must be an object"
    wait = read(config, Wait)
    if isinstance(wait, str):
        return wait
    if kind == "clarification":
        return clarification(data)
    found = read(data, DATA[kind])
    if isinstance(found, str):
        return f"data: {found}"
    return approval(data) if kind == "approval" else None
