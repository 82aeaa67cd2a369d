"""Compile a definition into a flow: nodes with their types, edges, channels."""

import hashlib
from collections.abc import Mapping

from msgspec import UNSET, Struct

from moot.core.errors import BadRequest, CapabilityRequired, UnsupportedNodeType
from moot.core.json.schema import SchemaError, check_schema
from moot.core.text.nearest import nearest_word
from moot.core.workflows import expressions
from moot.core.workflows.channels import ChannelRule, channel_rule, has_access
from moot.core.workflows.definition import (
    DISPATCH,
    SUPERVISOR,
    edges_forward,
    loop_edges,
    node_depths,
    reachable_nodes,
)
from moot.core.workflows.node_types import NodeKind, NodeType
from moot.core.workflows.schema import EdgeDef, ExpressionValue, NodeDef, WorkflowDef

#: reserved node type -> the capability that it needs
GATED = {
    "core.conversationGate": "conversationPrimitive",
    "core.orchestrator.supervisor": "orchestrator.supported",
    "core.dispatch": "dispatch.supported",
    "core.conformance.mock-agent": "conformance.mockAgent",
}

MASKING_MODES = ("mask", "omit", "hash", "passthrough")
RETRY_DELAY_MS = 500
RETRY_DELAY_MAX_MS = 30_000


class FlowNode(Struct, frozen=True, kw_only=True):
    """A node of a flow with its type, edges and limits."""

    id: str
    type: NodeType
    definition: NodeDef
    index: int
    incoming: tuple[EdgeDef, ...]
    targets: tuple[str, ...]
    rule: str
    retries: int
    retry_delay_ms: int
    timeout_ms: int
    #: channels whose readers do not include this node
    unreadable: frozenset[str]

    def delay_before(self, attempt: int) -> int:
        """Return the milliseconds before this attempt (the second one is 2): doubling, bounded."""
        return int(min(self.retry_delay_ms * 2 ** max(0, attempt - 2), RETRY_DELAY_MAX_MS))


class Flow(Struct, frozen=True, kw_only=True, eq=False):
    """A workflow compiled for running. Its identity is its hash, so that results can be cached."""

    digest: str
    definition: WorkflowDef
    nodes: dict[str, FlowNode]
    sources: tuple[str, ...]
    ends: frozenset[str]
    channels: dict[str, ChannelRule]
    sensitive: frozenset[str]
    masking: str
    #: workflows that nodes hand work to
    references: tuple[str, ...]
    #: dispatch node -> its supervisor, and the other nodes of the loop
    loops: dict[str, tuple[str, tuple[str, ...]]]
    #: node -> the agent that it is pinned to
    agents: dict[str, dict[str, object]]


def definition_digest(body: bytes) -> str:
    """Return the digest of a definition's exact bytes; a run pins its definition by it."""
    return hashlib.sha256(body).hexdigest()


def compile_flow(definition: WorkflowDef, types: Mapping[str, NodeType], name: str) -> Flow:
    """Return a flow for new runs. Raise for unknown types and mistakes in the definition."""
    for node in definition.nodes:
        type_ = _type_of(node, types)
        if not definition.id.startswith(type_.only_in):
            raise _missing_capability(node)
        _check_config(node, type_)
    _check_expressions(definition)
    _check_schemas(definition)
    return build_flow(definition, types, name)


def build_flow(definition: WorkflowDef, types: Mapping[str, NodeType], name: str) -> Flow:
    """Connect nodes to their types without the checks for new runs.

    A run from before a stricter check can still be read; what does not work fails where it is used.
    """
    order = node_depths(definition)
    _check_loop(definition)
    incoming: dict[str, list[EdgeDef]] = {node.id: [] for node in definition.nodes}
    targets: dict[str, dict[str, None]] = {node.id: {} for node in definition.nodes}
    for edge in edges_forward(definition):
        incoming[edge.target_node_id].append(edge)
        targets[edge.source_node_id][edge.target_node_id] = None
    nodes = {}
    for node in definition.nodes:
        edges = tuple(incoming[node.id]), targets[node.id]
        nodes[node.id] = _node(definition, node, types, order, edges)
    back = loop_edges(definition)
    masking = definition.metadata.compliance_config.get("maskingMode", "mask")
    if masking not in MASKING_MODES:
        raise BadRequest(f"'{masking}' is not a masking mode; use {', '.join(MASKING_MODES)}.")
    return Flow(
        digest=name,
        definition=definition,
        nodes=nodes,
        sources=tuple(sorted((n for n in nodes if not incoming[n]), key=lambda n: (order[n], n))),
        ends=frozenset(n for n in nodes if not targets[n]),
        channels={name: channel_rule(channel) for name, channel in definition.channels.items()},
        sensitive=frozenset(v.name for v in definition.variables if v.sensitive),
        masking=masking,
        references=_references(nodes),
        loops={
            edge.source_node_id: (edge.target_node_id, _loop_body(nodes, edge))
            for edge in definition.edges
            if edge.id in back
        },
        agents={node.id: node.agent for node in definition.nodes if isinstance(node.agent, dict)},
    )


def _check_loop(definition: WorkflowDef) -> None:
    kinds = {node.type_id: node.id for node in definition.nodes}
    if DISPATCH in kinds and SUPERVISOR not in kinds:
        name = kinds[DISPATCH]
        message = f"Node '{name}' carries out decisions, and there is no {SUPERVISOR} to take any."
        raise BadRequest(message, nodeId=name)


def _loop_body(nodes: dict[str, FlowNode], back: EdgeDef) -> tuple[str, ...]:
    """Return every node between a supervisor and its dispatch node, and the dispatch node."""
    targets = {name: node.targets for name, node in nodes.items()}
    sources = {
        name: [edge.source_node_id for edge in node.incoming] for name, node in nodes.items()
    }
    after = reachable_nodes(back.target_node_id, targets)
    before = reachable_nodes(back.source_node_id, sources)
    return tuple(sorted((after & before) - {back.target_node_id}))


def _node(
    flow: WorkflowDef,
    node: NodeDef,
    types: Mapping[str, NodeType],
    order: dict[str, int],
    edges: tuple[tuple[EdgeDef, ...], dict[str, None]],
) -> FlowNode:
    type_ = _type_of(node, types)
    settings = node.settings
    retries = flow.settings.max_retries if type_.retries is None else type_.retries
    timeout_ms = _whole_setting(node, settings, "timeout", type_.timeout_ms)
    return FlowNode(
        id=node.id,
        type=type_,
        definition=node,
        index=order[node.id],
        incoming=edges[0],
        targets=tuple(sorted(edges[1], key=lambda target: (order[target], target))),
        rule=edges[0][0].trigger_rule if edges[0] else "all_success",
        retries=_whole_setting(node, settings, "maxRetries", retries),
        retry_delay_ms=_whole_setting(node, settings, "retryDelayMs", RETRY_DELAY_MS),
        timeout_ms=_whole_setting(node, settings, "timeoutMs", timeout_ms),
        unreadable=frozenset(
            name
            for name, channel in flow.channels.items()
            if not has_access(channel.access, "readers", node.id, node.type_id)
        ),
    )


def _type_of(node: NodeDef, types: Mapping[str, NodeType]) -> NodeType:
    type_ = types.get(node.type_id)
    if type_ is not None:
        other = type_.instead(node) if type_.instead is not None else None
        return other or type_
    if node.type_id in GATED:
        raise _missing_capability(node)
    suggestion = nearest_word(node.type_id, types)
    hint = f" Did you mean '{suggestion}'?" if suggestion else ""
    message = f"Node '{node.id}': there is no node type '{node.type_id}' here.{hint}"
    raise UnsupportedNodeType(message, offendingTypeId=node.type_id, nodeId=node.id)


def _missing_capability(node: NodeDef) -> CapabilityRequired:
    capability = GATED.get(node.type_id, node.type_id)
    return CapabilityRequired(
        f"Node '{node.id}' needs the capability {capability}, which this host does not have here.",
        requiredCapability=capability,
        offendingTypeId=node.type_id,
        nodeId=node.id,
    )


def _check_config(node: NodeDef, type_: NodeType) -> None:
    problem = type_.check(node.config) if type_.check else None
    if problem:
        message = f"Node '{node.id}' ({node.type_id}): {problem}"
        raise BadRequest(message, fields=[problem], nodeId=node.id)


def _whole_setting(node: NodeDef, settings: Mapping[str, object], key: str, default: int) -> int:
    value = settings.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**31:
        message = f"Node '{node.id}': settings.{key} must be a whole number from 0."
        raise BadRequest(message, nodeId=node.id)
    return value


def _check_expressions(flow: WorkflowDef) -> None:
    sources = [
        (f"node '{node.id}', input '{port}'", value.expression)
        for node in flow.nodes
        for port, value in node.inputs.items()
        if isinstance(value, ExpressionValue)
    ]
    sources += [
        (f"edge '{edge.id}'", edge.condition.expression)
        for edge in flow.edges
        if edge.condition is not UNSET and isinstance(edge.condition.expression, str)
    ]
    for place, source in sources:
        try:
            expressions.check_expression(source)
        except expressions.ExpressionError as error:
            raise BadRequest(f"The expression at {place} cannot be read: {error}") from None


def _check_schemas(flow: WorkflowDef) -> None:
    schemas = {f"channel '{name}'": channel.schema for name, channel in flow.channels.items()}
    schemas["configurableSchema"] = flow.configurable_schema
    for place, schema in schemas.items():
        if schema is UNSET:
            continue
        try:
            check_schema(schema)
        except SchemaError as error:
            raise BadRequest(f"The schema of {place} cannot be used: {error}") from None


def _references(nodes: dict[str, FlowNode]) -> tuple[str, ...]:
    workflow_ids = {
        str(node.definition.config["workflowId"])
        for node in nodes.values()
        if node.type.kind is NodeKind.CHILD and "workflowId" in node.definition.config
    }
    return tuple(sorted(workflow_ids))
