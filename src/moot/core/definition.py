"""The protocol's workflow definition as closed types, and the checks that need no host."""

import difflib
import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from moot.core.errors import BadRequest, CycleDetected

Json = Any

WORKFLOW_ID = r"^[a-z][a-z0-9_-]*$"
TYPE_ID = r"^[a-z][a-zA-Z0-9._-]*$"
REDUCER = (
    r"^(replace|append|merge|counter|votes|feedback|message"
    r"|vendor\.[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*)$"
)

#: no name of ours is longer
LONGEST_WORD = 256

NonEmpty = msgspec.Meta(min_length=1)


class Closed(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A client-submitted shape: an unknown field is an error, not a surprise later."""


class Static(Closed, frozen=True, tag_field="type", tag="static"):
    value: Json


class Expression(Closed, frozen=True, tag_field="type", tag="expression"):
    expression: str


class Connection(Closed, frozen=True, tag_field="type", tag="connection"):
    node_id: str
    output_key: str
    optional: bool = False


class Variable(Closed, frozen=True, tag_field="type", tag="variable"):
    variable_name: str
    optional: bool = False


PortValue = Static | Expression | Connection | Variable


class Position(Struct, frozen=True):
    x: float
    y: float


class NodeDef(Closed, frozen=True):
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


class EdgeCondition(Closed, frozen=True):
    type: Literal["expression", "equals", "notEquals", "contains", "regex"] = "expression"
    left: str | UnsetType = UNSET
    right: Json = UNSET
    expression: str | UnsetType = UNSET


TriggerRule = Literal["all_success", "any_success", "all_complete", "none_failed", "any_failed"]


class EdgeDef(Closed, frozen=True):
    id: str
    source_node_id: str
    target_node_id: str
    source_output: str | UnsetType = UNSET
    target_input: str | UnsetType = UNSET
    condition: EdgeCondition | UnsetType = UNSET
    label: str | UnsetType = UNSET
    trigger_rule: TriggerRule = "all_success"


class TriggerDef(Closed, frozen=True):
    id: str
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


class VariableDef(Closed, frozen=True):
    name: str
    type: Literal["string", "number", "boolean", "object", "array"]
    description: str | UnsetType = UNSET
    required: bool = False
    default_value: Json = UNSET
    sensitive: bool = False


class ChannelAccess(Closed, frozen=True):
    readers: list[str] | UnsetType = UNSET
    writers: list[str] | UnsetType = UNSET


class ChannelDef(Closed, frozen=True):
    reducer: str
    schema: dict[str, Json] | UnsetType = UNSET
    default: Json = UNSET
    max_size: int | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    options: dict[str, Json] | UnsetType = UNSET
    access: Literal["public", "private"] | ChannelAccess = "public"
    schema_version: int = 1
    compatible_with: list[int] = []
    sensitive: bool = False


class SettingsDef(Struct, frozen=True, kw_only=True, rename="camel"):
    timeout: int = 0
    max_retries: int = 0
    log_level: Literal["debug", "info", "warn", "error"] = "info"
    max_loopback_iterations: int = 5


class MetadataDef(Struct, frozen=True, kw_only=True, rename="camel"):
    tags: list[str] = []
    compliance_class: Literal["public", "pii", "phi", "pci", "regulated"] = "public"
    compliance_config: dict[str, Json] = {}


class WorkflowDef(Closed, frozen=True):
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
    slug: str | UnsetType = UNSET
    groups: list[dict[str, Json]] = []
    channels: dict[str, ChannelDef] = {}
    configurable_schema: dict[str, Json] | UnsetType = UNSET
    defaults: dict[str, Json] | UnsetType = UNSET
    accepts_inherited_artifacts: list[dict[str, Json]] = []
    created_at: str | UnsetType = UNSET
    updated_at: str | UnsetType = UNSET


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word a person most likely meant. Comparing what nobody typed takes too long."""
    if len(word) > LONGEST_WORD:
        return None
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def parse(body: bytes | dict[str, Json]) -> WorkflowDef:
    """A definition, or a refusal that names the place and what stands there."""
    try:
        if isinstance(body, bytes):
            found = msgspec.json.decode(body, type=WorkflowDef)
        else:
            found = msgspec.convert(body, WorkflowDef)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The workflow is not well formed: {error}", fields=[str(error)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body is not JSON: {error}") from None
    _check(found)
    return found


def _check(flow: WorkflowDef) -> None:
    problems = [*_word_problems(flow), *_node_problems(flow), *_edge_problems(flow)]
    problems += _variable_problems(flow) + _channel_problems(flow)
    if problems:
        raise BadRequest(f"The workflow has a mistake: {problems[0]}", fields=problems)
    if cycle := _cycle(flow):
        raise CycleDetected(
            f"The nodes form a circle: {' -> '.join(cycle)}. Remove one of these edges.",
            nodeIds=cycle,
        )


def _word_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    if not _matches(WORKFLOW_ID, flow.id) or len(flow.id) > 128:
        problems.append(f"id '{flow.id}' must match {WORKFLOW_ID} and have at most 128 characters")
    if not 1 <= len(flow.name) <= 256:
        problems.append("name must have 1 to 256 characters")
    if not flow.version:
        problems.append("version must not be empty")
    if not flow.nodes:
        problems.append("a workflow needs at least one node")
    tags = flow.metadata.tags
    if len(tags) > 100 or any(not 1 <= len(tag) <= 256 for tag in tags):
        problems.append("metadata.tags takes at most 100 tags of 1 to 256 characters")
    if flow.settings.timeout < 0 or flow.settings.max_retries < 0:
        problems.append("settings.timeout and settings.maxRetries must not be negative")
    return problems


def _node_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    seen: set[str] = set()
    for node in flow.nodes:
        if not node.id or len(node.id) > 128:
            problems.append("a node id must have 1 to 128 characters")
        if node.id in seen:
            problems.append(f"node id '{node.id}' is used twice")
        seen.add(node.id)
        if not _matches(TYPE_ID, node.type_id):
            problems.append(f"node '{node.id}': typeId '{node.type_id}' must match {TYPE_ID}")
        if not node.name:
            problems.append(f"node '{node.id}' needs a name")
    for node in flow.nodes:
        problems += _port_problems(node, seen)
    return problems


def _port_problems(node: NodeDef, known: set[str]) -> list[str]:
    problems = []
    for port, value in node.inputs.items():
        if isinstance(value, Connection) and value.node_id not in known:
            problems.append(
                f"node '{node.id}', input '{port}': there is no node '{value.node_id}'"
                + _suggest(value.node_id, known)
            )
    return problems


def _edge_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    known = {node.id for node in flow.nodes}
    seen: set[str] = set()
    for edge in flow.edges:
        if not edge.id:
            problems.append("an edge needs an id")
        if edge.id in seen:
            problems.append(f"edge id '{edge.id}' is used twice")
        seen.add(edge.id)
        problems += [
            f"edge '{edge.id}': there is no node '{end}'{_suggest(end, known)}"
            for end in (edge.source_node_id, edge.target_node_id)
            if end not in known
        ]
        problems += _condition_problems(edge)
    return problems


def _condition_problems(edge: EdgeDef) -> list[str]:
    condition = edge.condition
    if condition is UNSET:
        return []
    if condition.type == "expression":
        return (
            [] if condition.expression else [f"edge '{edge.id}': the condition has no expression"]
        )
    if not condition.left:
        return [f"edge '{edge.id}': a condition of type {condition.type} needs 'left'"]
    if condition.type == "regex" and not isinstance(condition.right, str):
        return [f"edge '{edge.id}': a regex condition needs a pattern in 'right'"]
    return []


def _variable_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    seen: set[str] = set()
    for variable in flow.variables:
        if variable.name in seen:
            problems.append(f"variable '{variable.name}' is declared twice")
        seen.add(variable.name)
        if variable.name in flow.channels:
            problems.append(f"'{variable.name}' is declared as a variable and as a channel")
        if variable.default_value is not UNSET and not fits(variable.type, variable.default_value):
            problems.append(f"the default of variable '{variable.name}' is not a {variable.type}")
    return problems


def _channel_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    for name, channel in flow.channels.items():
        if not _matches(REDUCER, channel.reducer):
            problems.append(f"channel '{name}': '{channel.reducer}' is not a reducer")
        if channel.max_size is not UNSET and channel.max_size < 1:
            problems.append(f"channel '{name}': maxSize must be at least 1")
        if channel.ttl_ms is not UNSET:
            if not 1 <= channel.ttl_ms <= 31_536_000_000:
                problems.append(f"channel '{name}': ttlMs must be 1 to 31536000000")
            if channel.reducer not in ("append", "votes", "feedback"):
                problems.append(f"channel '{name}': ttlMs goes with append, votes or feedback")
    return problems


def fits(type_: str, value: Json) -> bool:
    """Whether a JSON value is of a declared variable type."""
    match type_:
        case "string":
            return isinstance(value, str)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            # The published fixtures declare "object" for "any JSON payload".
            return True


def _cycle(flow: WorkflowDef) -> list[str]:
    """One circle of node ids, or nothing. Iterative: a definition may be a very long chain."""
    waiting: dict[str, int] = {node.id: 0 for node in flow.nodes}
    after: dict[str, list[str]] = {node.id: [] for node in flow.nodes}
    for edge in flow.edges:
        waiting[edge.target_node_id] += 1
        after[edge.source_node_id].append(edge.target_node_id)
    ready = [node for node, count in waiting.items() if not count]
    while ready:
        for target in after[ready.pop()]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    stuck = {node for node, count in waiting.items() if count}
    return _walk_circle(stuck, after) if stuck else []


def _walk_circle(stuck: set[str], after: dict[str, list[str]]) -> list[str]:
    """Every stuck node has a stuck predecessor, so walking backwards must meet itself."""
    before = {target: node for node in sorted(stuck) for target in after[node] if target in stuck}
    node = min(before)
    path: list[str] = []
    while node not in path:
        path.append(node)
        node = before[node]
    circle = [*path[path.index(node) :], node]
    return circle[::-1]


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern.strip("^$"), text) is not None


def _suggest(word: str, known: Iterable[str]) -> str:
    found = nearest(word, known)
    return f"; did you mean '{found}'?" if found else ""
