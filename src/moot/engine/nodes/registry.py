"""The table of node types a host knows: built in, from installed packages, from a user's file."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from moot.agents.invocation.desk import Invoke, nobody
from moot.config import user_files
from moot.conformance import mock_providers
from moot.conformance.mock_model import Programs
from moot.conformance.nodes import (
    call_prompt,
    memory_probe,
    mock_agent,
    structured_output,
)
from moot.conformance.nodes.delay import TYPES
from moot.core.workflows.node_types import NodeType
from moot.engine.nodes import (
    agent,
    agent_supervisor,
    approval_gate,
    catch_up,
    channel_write,
    clarification_gate,
    conditional,
    conversation_gate,
    delay,
    deployed,
    dispatch,
    fail,
    for_each,
    identity,
    interrupt,
    loop,
    merge,
    noop,
    parallel,
    start_end,
    sub_workflow,
    supervisor,
    variables,
)
from moot.engine.nodes.user import check_type_id

GROUP = "moot.nodes"

BUILT_IN = (
    *start_end.TYPES,
    noop.TYPE,
    identity.TYPE,
    delay.TYPE,
    fail.TYPE,
    conditional.TYPE,
    *variables.TYPES,
    merge.TYPE,
    parallel.TYPE,
    loop.TYPE,
    for_each.TYPE,
    channel_write.TYPE,
    sub_workflow.TYPE,
    approval_gate.TYPE,
    clarification_gate.TYPE,
    interrupt.TYPE,
    conversation_gate.TYPE,
    supervisor.TYPE,
    dispatch.TYPE,
)

CONFORMANCE = (
    *TYPES,
    call_prompt.TYPE,
    mock_agent.TYPE,
    conversation_gate.ON_TRIAL,
    supervisor.ON_TRIAL,
    memory_probe.IDENTITY,
)

MOCK_PROVIDERS: tuple[str, ...] = tuple(mock_providers.PROVIDERS)


def built_in(
    conformance: bool = False, programs: Programs | None = None, invoke: Invoke = nobody
) -> dict[str, NodeType]:
    """The host's own types; those that only a test suite uses come with the flag, and with what
    it tells the mock model to say. ``invoke`` is how agents are asked."""
    asking = (agent.type_with(invoke), catch_up.type_with(invoke))
    types: tuple[NodeType, ...] = (*BUILT_IN, *asking, deployed.TYPE)
    if conformance:
        types += (*CONFORMANCE, structured_output.type_with(programs or Programs()))
    found = {type_.type_id: type_ for type_ in types}
    planned = found[supervisor.TYPE.type_id]
    return {**found, planned.type_id: _led(planned, invoke, conformance)}


def _led(planned: NodeType, invoke: Invoke, trial: bool) -> NodeType:
    """A supervisor follows its plan, unless an agent decides."""
    led = agent_supervisor.type_with(invoke)
    return replace(
        planned, instead=lambda node: led if agent_supervisor.by_agent(node, trial) else None
    )


def from_entry_points() -> dict[str, NodeType]:
    """The types of installed packages. Raises ValueError naming the entry that is broken."""
    found: dict[str, NodeType] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        _add(found, _loaded(entry), f"entry point '{entry.name}' ({entry.value})")
    return found


def from_file(path: Path | str) -> dict[str, NodeType]:
    """The types of a user's file of @node functions. Raises ValueError naming the file."""
    found: dict[str, NodeType] = {}
    _add(found, _types_in(user_files.module(Path(path))), str(path))
    return found


def _loaded(entry: EntryPoint) -> list[NodeType]:
    try:
        return _types_in(entry.load())
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"The nodes of entry point '{entry.name}' ({entry.value}) cannot be loaded:"
            f" {type(error).__name__}: {error}"
        ) from error


def _types_in(found: Any) -> list[NodeType]:
    if isinstance(found, NodeType):
        return [found]
    if isinstance(found, ModuleType):
        return _types_among(user_files.own(found))
    if isinstance(found, (list, tuple)):
        return [type_ for each in found for type_ in _types_in(each)]
    if isinstance(marked := getattr(found, "node_type", None), NodeType):
        return [marked]
    raise TypeError(f"{found!r} is no node type, no list of them and no module")


def _types_among(values: list[Any]) -> list[NodeType]:
    """Each type once, also when the function has two names in its module."""
    marks = (getattr(value, "node_type", None) for value in values)
    return list({id(mark): mark for mark in marks if isinstance(mark, NodeType)}.values())


def _add(found: dict[str, NodeType], types: Iterable[NodeType], source: str) -> None:
    for type_ in types:
        try:
            check_type_id(type_.type_id)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        if type_.type_id in found:
            raise ValueError(f"{source}: node type '{type_.type_id}' is defined twice.")
        found[type_.type_id] = type_
