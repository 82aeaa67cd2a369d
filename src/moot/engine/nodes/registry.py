"""The node types of a host: built-in, from packages, and from a user's file."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from moot.agents.invocation.context import Invoke, no_agents
from moot.config import user_files
from moot.core.workflows.node_types import NodeType
from moot.engine.nodes import (
    agent,
    agent_supervisor,
    approval_gate,
    channel_write,
    conditional,
    control_nodes,
    conversation_gate,
    delay,
    dispatch,
    for_each,
    host_nodes,
    interrupt,
    loop,
    sub_workflow,
    supervisor,
    variables,
)
from moot.engine.nodes.control_nodes import (
    FAIL_NODE,
    IDENTITY_NODE,
    MERGE_NODE,
    NOOP_NODE,
    PARALLEL_NODE,
)
from moot.engine.nodes.host_nodes import DEPLOYED
from moot.engine.nodes.interrupt import CLARIFICATION_GATE
from moot.engine.nodes.user import check_type_id

ENTRY_POINT_GROUP = "moot.nodes"

BUILT_IN = (
    *control_nodes.START_AND_END_NODES,
    NOOP_NODE,
    IDENTITY_NODE,
    delay.TYPE,
    FAIL_NODE,
    conditional.TYPE,
    *variables.TYPES,
    MERGE_NODE,
    PARALLEL_NODE,
    loop.TYPE,
    for_each.TYPE,
    channel_write.TYPE,
    sub_workflow.TYPE,
    approval_gate.TYPE,
    CLARIFICATION_GATE,
    interrupt.INTERRUPT,
    conversation_gate.TYPE,
    supervisor.TYPE,
    dispatch.TYPE,
)


def built_in_types(
    invoke: Invoke = no_agents, extra: Iterable[NodeType] = ()
) -> dict[str, NodeType]:
    """Return the host's own node types. ``invoke`` is used to ask agents.

    A type of ``extra`` replaces the one with the same id.
    """
    types = (
        *BUILT_IN,
        agent_supervisor.supervisor_type(supervisor.TYPE, invoke),
        agent.build_type(invoke),
        host_nodes.build_type(invoke),
        DEPLOYED,
        *extra,
    )
    return {type_.type_id: type_ for type_ in types}


def types_from_entry_points() -> dict[str, NodeType]:
    """Return the types of installed packages. Raise ValueError that names a broken entry."""
    types: dict[str, NodeType] = {}
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name):
        _add_types(types, _load_types(entry), f"entry point '{entry.name}' ({entry.value})")
    return types


def types_from_file(path: Path | str) -> dict[str, NodeType]:
    """Return the types of a user's file. Raise ValueError that names the file."""
    types: dict[str, NodeType] = {}
    _add_types(types, _types_in(user_files.load_user_module(Path(path))), str(path))
    return types


def _load_types(entry: EntryPoint) -> list[NodeType]:
    try:
        return _types_in(entry.load())
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"The nodes of entry point '{entry.name}' ({entry.value}) cannot be loaded:"
            f" {type(error).__name__}: {error}"
        ) from error


def _types_in(value: Any) -> list[NodeType]:
    if isinstance(value, NodeType):
        return [value]
    if isinstance(value, ModuleType):
        return _marked_types(user_files.list_own_definitions(value))
    if isinstance(value, (list, tuple)):
        return [type_ for each in value for type_ in _types_in(each)]
    if isinstance(marked := getattr(value, "node_type", None), NodeType):
        return [marked]
    raise TypeError(f"{value!r} is no node type, no list of them and no module")


def _marked_types(values: list[Any]) -> list[NodeType]:
    """Return each type once, even when its function has two names in the module."""
    marks = (getattr(value, "node_type", None) for value in values)
    return list({id(mark): mark for mark in marks if isinstance(mark, NodeType)}.values())


def _add_types(types_by_id: dict[str, NodeType], types: Iterable[NodeType], source: str) -> None:
    for type_ in types:
        try:
            check_type_id(type_.type_id)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        if type_.type_id in types_by_id:
            raise ValueError(f"{source}: node type '{type_.type_id}' is defined twice.")
        types_by_id[type_.type_id] = type_
