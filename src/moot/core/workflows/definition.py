"""Parse a workflow definition and check all that needs no host."""

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET

from moot.core.errors import BadRequest, CycleDetected
from moot.core.text.nearest import nearest_word
from moot.core.workflows.schema import (
    REDUCER,
    TYPE_ID,
    WORKFLOW_ID,
    ChannelAccess,
    ChannelDef,
    ConnectionValue,
    EdgeDef,
    NodeAgentRef,
    NodeDef,
    WorkflowDef,
)

#: the node types of a supervisor and of the node that carries out its decisions
SUPERVISOR = "core.orchestrator.supervisor"
DISPATCH = "core.dispatch"

#: the prefix of the host's own workflow ids; other workflows may not use it
RESERVED = "moot."


def parse_definition(body: bytes | dict[str, object]) -> WorkflowDef:
    """Return the definition. Raise BadRequest with the place of a mistake."""
    try:
        if isinstance(body, bytes):
            definition = msgspec.json.decode(body, type=WorkflowDef)
        else:
            definition = msgspec.convert(body, WorkflowDef)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The workflow is not well formed: {error}", fields=[str(error)]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body is not JSON: {error}") from None
    _check(definition)
    return definition


def _check(flow: WorkflowDef) -> None:
    problems = [*_field_problems(flow), *_node_problems(flow), *_edge_problems(flow)]
    problems += _variable_problems(flow) + _channel_problems(flow)
    if problems:
        raise BadRequest(f"The workflow has a mistake: {problems[0]}", fields=problems)
    if cycle := _find_cycle(flow):
        path = " -> ".join(cycle)
        message = f"The nodes form a circle: {path}. Remove one of these edges."
        raise CycleDetected(message, nodeIds=cycle)


def _field_problems(flow: WorkflowDef) -> list[str]:
    tags, settings = flow.metadata.tags, flow.settings
    valid_id = _matches(WORKFLOW_ID, flow.id.removeprefix(RESERVED)) and len(flow.id) <= 128
    few_tags = len(tags) <= 100 and all(1 <= len(tag) <= 256 for tag in tags)
    checks = {
        f"id '{flow.id}' must match {WORKFLOW_ID} and have at most 128 characters": valid_id,
        "name must have 1 to 256 characters": 1 <= len(flow.name) <= 256,
        "version must not be empty": flow.version,
        "a workflow needs at least one node": flow.nodes,
        "metadata.tags takes at most 100 tags of 1 to 256 characters": few_tags,
        "settings.timeout and settings.maxRetries must not be negative": (
            settings.timeout >= 0 and settings.max_retries >= 0
        ),
    }
    return [problem for problem, fine in checks.items() if not fine]


def _node_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    node_ids: set[str] = set()
    for node in flow.nodes:
        if not node.id or len(node.id) > 128:
            problems.append("a node id must have 1 to 128 characters")
        if node.id in node_ids:
            problems.append(f"node id '{node.id}' is used twice")
        node_ids.add(node.id)
        if not _matches(TYPE_ID, node.type_id):
            problems.append(f"node '{node.id}': typeId '{node.type_id}' must match {TYPE_ID}")
        if not node.name:
            problems.append(f"node '{node.id}' needs a name")
    for node in flow.nodes:
        problems += _port_problems(node, node_ids)
    return problems


def _agent_problems(node: NodeDef) -> list[str]:
    if node.agent is UNSET:
        return []
    try:
        msgspec.convert(node.agent, NodeAgentRef)
    except msgspec.ValidationError as error:
        return [f"node '{node.id}', agent: {error}"]
    both = "version" in node.agent and "channel" in node.agent
    return [f"node '{node.id}', agent: version and channel exclude each other"] if both else []


def _port_problems(node: NodeDef, node_ids: set[str]) -> list[str]:
    problems = _agent_problems(node)
    for port, value in node.inputs.items():
        if isinstance(value, ConnectionValue) and value.node_id not in node_ids:
            hint = _suggest(value.node_id, node_ids)
            place = f"node '{node.id}', input '{port}'"
            problems.append(f"{place}: there is no node '{value.node_id}'{hint}")
    return problems


def _edge_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    node_ids = {node.id for node in flow.nodes}
    edge_ids: set[str] = set()
    for edge in flow.edges:
        if not edge.id:
            problems.append("an edge needs an id")
        if edge.id in edge_ids:
            problems.append(f"edge id '{edge.id}' is used twice")
        edge_ids.add(edge.id)
        problems += [
            f"edge '{edge.id}': there is no node '{end}'{_suggest(end, node_ids)}"
            for end in (edge.source_node_id, edge.target_node_id)
            if end not in node_ids
        ]
        problems += _condition_problems(edge)
    return problems


def _condition_problems(edge: EdgeDef) -> list[str]:
    condition = edge.condition
    if condition is UNSET:
        return []
    if condition.type == "expression":
        problem = None if condition.expression else "the condition has no expression"
    elif not condition.left:
        problem = f"a condition of type {condition.type} needs 'left'"
    else:
        needs_pattern = condition.type == "regex" and not isinstance(condition.right, str)
        problem = "a regex condition needs a pattern in 'right'" if needs_pattern else None
    return [f"edge '{edge.id}': {problem}"] if problem else []


def _variable_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    names: set[str] = set()
    for variable in flow.variables:
        if variable.name in names:
            problems.append(f"variable '{variable.name}' is declared twice")
        names.add(variable.name)
        if variable.name in flow.channels:
            problems.append(f"'{variable.name}' is declared as a variable and as a channel")
        default = variable.default_value
        if default is not UNSET and not is_of_type(variable.type, default):
            problems.append(f"the default of variable '{variable.name}' is not a {variable.type}")
    return problems


def _channel_problems(flow: WorkflowDef) -> list[str]:
    problems = []
    for name, channel in flow.channels.items():
        problems += _list_problems(name, channel)
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


def _list_problems(name: str, channel: ChannelDef) -> list[str]:
    """Report duplicates in lists that the published schema requires to be unique."""
    lists: dict[str, list[object]] = {"compatibleWith": list(channel.compatible_with)}
    if isinstance(channel.access, ChannelAccess):
        sides = {"readers": channel.access.readers, "writers": channel.access.writers}
        lists |= {side: list(names) for side, names in sides.items() if names is not UNSET}
    return [
        f"channel '{name}': {key} names something twice"
        for key, entries in lists.items()
        if len(set(entries)) < len(entries)
    ]


def is_of_type(type_: str, value: object) -> bool:
    """Return whether a JSON value is of a declared variable type."""
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


def loop_edges(flow: WorkflowDef) -> frozenset[str]:
    """Return the ids of edges from a dispatch node back to its supervisor.

    These are the only cycles that a workflow may have.
    """
    kinds = {node.id: node.type_id for node in flow.nodes}
    loop = DISPATCH, SUPERVISOR
    candidates = [
        edge
        for edge in flow.edges
        if (kinds.get(edge.source_node_id), kinds.get(edge.target_node_id)) == loop
    ]
    after: dict[str, list[str]] = {}
    for edge in flow.edges if candidates else ():
        if edge not in candidates:
            after.setdefault(edge.source_node_id, []).append(edge.target_node_id)
    return frozenset(
        edge.id
        for edge in candidates
        if edge.source_node_id in reachable_nodes(edge.target_node_id, after)
    )


def reachable_nodes(start: str, neighbours: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the start and every node that a path leads to."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += neighbours.get(name, ())
    return reached


def edges_forward(flow: WorkflowDef) -> list[EdgeDef]:
    """Return the edges without those that lead back in a loop, by id."""
    back = loop_edges(flow)
    return sorted((edge for edge in flow.edges if edge.id not in back), key=lambda edge: edge.id)


def node_depths(flow: WorkflowDef) -> dict[str, int]:
    """Return each node's longest distance from a source; nodes of a cycle have none.

    Iterative, because a chain may be very long.
    """
    waiting = {node.id: 0 for node in flow.nodes}
    after = _followers(flow)
    for targets in after.values():
        for target in targets:
            waiting[target] += 1
    depth = {node: 0 for node, count in waiting.items() if not count}
    ready, reached = list(depth), dict(depth)
    while ready:
        node = ready.pop()
        depth[node] = reached[node]
        for target in after[node]:
            reached[target] = max(reached.get(target, 0), depth[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return depth


def _followers(flow: WorkflowDef) -> dict[str, list[str]]:
    after: dict[str, list[str]] = {node.id: [] for node in flow.nodes}
    for edge in edges_forward(flow):
        after[edge.source_node_id].append(edge.target_node_id)
    return after


def _find_cycle(flow: WorkflowDef) -> list[str]:
    """Return one cycle of node ids, or nothing."""
    stuck = {node.id for node in flow.nodes} - node_depths(flow).keys()
    return _walk_cycle(stuck, _followers(flow)) if stuck else []


def _walk_cycle(stuck: set[str], after: dict[str, list[str]]) -> list[str]:
    """Walk backwards: every stuck node has a stuck predecessor, so the walk meets itself."""
    before = {target: node for node in sorted(stuck) for target in after[node] if target in stuck}
    node = min(before)
    path: list[str] = []
    while node not in path:
        path.append(node)
        node = before[node]
    cycle = [*path[path.index(node) :], node]
    return cycle[::-1]


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern.strip("^$"), text) is not None


def _suggest(word: str, choices: Iterable[str]) -> str:
    suggestion = nearest_word(word, choices)
    return f"; did you mean '{suggestion}'?" if suggestion else ""
