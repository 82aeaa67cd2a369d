"""The types of a workflow definition, as strict as the published schema."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Json = Any

WORKFLOW_ID = r"^[a-z][a-z0-9_-]*$"
TYPE_ID = r"^[a-z][a-zA-Z0-9._-]*$"
REDUCER = (
    r"^(replace|append|merge|counter|votes|feedback|message"
    r"|vendor\.[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*)$"
)

ACCESS = r"^([a-z][a-zA-Z0-9._-]*\*?|\*)$"
SLUG = r"^[a-z0-9][a-z0-9_-]*$"
PROMPT_ID = r"[a-z0-9][a-z0-9._-]{0,127}"
SEMVER = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"


def _text_pattern(pattern: str, longest: int | None = None) -> Meta:
    """Python's $ also matches before a last newline; the protocol's does not."""
    return Meta(pattern=pattern + r"(?!\n)", max_length=longest)


NonEmptyText = Annotated[str, Meta(min_length=1)]
ZonedTime = Annotated[datetime, Meta(tz=True)]
Count = Annotated[int, Meta(ge=1)]
AccessEntry = Annotated[str, _text_pattern(ACCESS, 256)]


class DefinitionPart(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a definition that a client submits; an unknown field is an error."""


class StaticValue(DefinitionPart, frozen=True, tag_field="type", tag="static"):
    value: Json


class ExpressionValue(DefinitionPart, frozen=True, tag_field="type", tag="expression"):
    expression: NonEmptyText


class ConnectionValue(DefinitionPart, frozen=True, tag_field="type", tag="connection"):
    node_id: NonEmptyText
    output_key: NonEmptyText
    optional: bool = False


class VariableValue(DefinitionPart, frozen=True, tag_field="type", tag="variable"):
    variable_name: NonEmptyText
    optional: bool = False


PortValue = StaticValue | ExpressionValue | ConnectionValue | VariableValue


class Position(Struct, frozen=True):
    x: float
    y: float


class NodeDef(DefinitionPart, frozen=True):
    id: str
    type_id: str
    name: str
    position: Position
    config: dict[str, Json]
    inputs: dict[str, PortValue]
    credentials_ref: str | UnsetType = UNSET
    settings: dict[str, Json] = {}
    output_role: Literal["primary", "secondary"] | UnsetType = UNSET
    disabled: bool = False
    notes: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET
    agent: dict[str, Json] | UnsetType = UNSET
    envelope_contract: dict[str, Json] | UnsetType = UNSET
    artifact_type: str | UnsetType = UNSET
    card_type: str | UnsetType = UNSET
    output_sensitivity: dict[str, bool] = {}


class EdgeCondition(DefinitionPart, frozen=True):
    type: Literal["expression", "equals", "notEquals", "contains", "regex"] = "expression"
    left: str | UnsetType = UNSET
    right: Json = UNSET
    expression: str | UnsetType = UNSET


TriggerRule = Literal["all_success", "any_success", "all_complete", "none_failed", "any_failed"]


class EdgeDef(DefinitionPart, frozen=True):
    id: str
    source_node_id: str
    target_node_id: str
    source_output: str | UnsetType = UNSET
    target_input: str | UnsetType = UNSET
    condition: EdgeCondition | UnsetType = UNSET
    label: str | UnsetType = UNSET
    trigger_rule: TriggerRule = "all_success"


class TriggerDef(DefinitionPart, frozen=True):
    id: NonEmptyText
    type: Literal[
        "manual", "schedule", "webhook", "event", "artifact", "canvas", "envelope", "command",
        "chat-message", "channel-write",
    ]  # fmt: skip
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    config: dict[str, Json] = {}
    enabled: bool = True
    node_id: str | UnsetType = UNSET
    event_type: str | UnsetType = UNSET


class VariableDef(DefinitionPart, frozen=True):
    name: NonEmptyText
    type: Literal["string", "number", "boolean", "object", "array"]
    description: str | UnsetType = UNSET
    required: bool = False
    default_value: Json = UNSET
    sensitive: bool = False


class ChannelAccess(DefinitionPart, frozen=True):
    readers: Annotated[list[AccessEntry], Meta(max_length=256)] | UnsetType = UNSET
    writers: Annotated[list[AccessEntry], Meta(max_length=256)] | UnsetType = UNSET


class ChannelDef(DefinitionPart, frozen=True):
    reducer: str
    schema: dict[str, Json] | UnsetType = UNSET
    default: Json = UNSET
    max_size: int | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    options: dict[str, Json] | UnsetType = UNSET
    access: Literal["public", "private"] | ChannelAccess = "public"
    schema_version: Count = 1
    compatible_with: list[Count] = []
    sensitive: bool = False


class Size(Struct, frozen=True):
    width: float
    height: float


class GroupDef(DefinitionPart, frozen=True):
    """A visual group of nodes without effect on the run."""

    id: NonEmptyText
    name: NonEmptyText
    node_ids: list[str]
    position: Position
    size: Size
    color: str | UnsetType = UNSET
    collapsed: bool = False


class NodeAgentRef(DefinitionPart, frozen=True):
    """The agent that carries out a node; the run's snapshot shows it unchanged."""

    agent_id: Annotated[str, Meta(min_length=3, max_length=256)]
    name: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET
    model_class: (
        Literal[
            "reasoning", "tool-using", "chat", "code", "vision", "multimodal", "embedding",
            "classification", "retrieval",
        ]
        | UnsetType
    ) = UNSET  # fmt: skip
    memory_ref: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    version: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    channel: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    source_manifest_id: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


class PromptRef(DefinitionPart, frozen=True):
    template_id: Annotated[str, _text_pattern(f"^{PROMPT_ID}$")]
    library_id: Annotated[str, _text_pattern(f"^{PROMPT_ID}$")] | UnsetType = UNSET
    version: Annotated[str, _text_pattern(f"^{SEMVER}$")] | UnsetType = UNSET
    variable_overrides: dict[str, Json] = {}


AnyPromptRef = Annotated[str, _text_pattern(f"^prompt:{PROMPT_ID}(@{SEMVER})?$")] | PromptRef


class PromptRefs(Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    system: AnyPromptRef | UnsetType = UNSET
    user: AnyPromptRef | UnsetType = UNSET
    few_shot: AnyPromptRef | UnsetType = UNSET
    schema_hint: AnyPromptRef | UnsetType = UNSET


class Defaults(DefinitionPart, frozen=True):
    prompt_refs: PromptRefs | UnsetType = UNSET


class SettingsDef(Struct, frozen=True, kw_only=True, rename="camel"):
    timeout: int = 0
    max_retries: int = 0
    log_level: Literal["debug", "info", "warn", "error"] = "info"
    max_loopback_iterations: Count = 5


class MetadataDef(Struct, frozen=True, kw_only=True, rename="camel"):
    tags: list[str] = []
    created_by: str | UnsetType = UNSET
    created_at: ZonedTime | UnsetType = UNSET
    updated_by: str | UnsetType = UNSET
    updated_at: ZonedTime | UnsetType = UNSET
    category: str | UnsetType = UNSET
    author: str | UnsetType = UNSET
    code_version: str | UnsetType = UNSET
    customized_at: ZonedTime | UnsetType = UNSET
    customized_by: str | UnsetType = UNSET
    forked_from: str | UnsetType = UNSET
    cloned_from: str | UnsetType = UNSET
    cloned_at: ZonedTime | UnsetType = UNSET
    custom_properties: dict[str, Json] = {}
    compliance_class: Literal["public", "pii", "phi", "pci", "regulated"] = "public"
    compliance_config: dict[str, Json] = {}


class WorkflowDef(DefinitionPart, frozen=True):
    id: str
    name: str
    version: str
    nodes: list[NodeDef]
    edges: list[EdgeDef]
    triggers: list[TriggerDef]
    variables: list[VariableDef]
    metadata: MetadataDef
    settings: SettingsDef
    description: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    is_active: bool = True
    status: Literal["active", "inactive", "draft", "archived"] = "active"
    tenant_id: str | UnsetType = UNSET
    scope_id: str | UnsetType = UNSET
    slug: Annotated[str, _text_pattern(SLUG)] | UnsetType = UNSET
    groups: list[GroupDef] = []
    channels: dict[str, ChannelDef] = {}
    configurable_schema: dict[str, Json] | UnsetType = UNSET
    defaults: Defaults | UnsetType = UNSET
    accepts_inherited_artifacts: list[dict[str, Json]] = []
    created_at: ZonedTime | UnsetType = UNSET
    updated_at: ZonedTime | UnsetType = UNSET
