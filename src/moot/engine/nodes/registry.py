"""The node types of a host: built-in, from packages, and from a user's file."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moot.agents.invocation.context import Invoke, no_agents
from moot.config import user_files
from moot.core.workflows.node_types import NodeKind, NodeType
from moot.engine.nodes import agent, delay, loop, supervisor
from moot.engine.nodes.agent import DEPLOYED, catch_up_type
from moot.engine.nodes.child_nodes import CHILD_NODES
from moot.engine.nodes.gates import GATES
from moot.engine.nodes.instant_nodes import INSTANT_NODES
from moot.engine.nodes.user import check_type_id

ENTRY_POINT_GROUP = "moot.nodes"
#: the mark of a user's function, and the word for it
NAMES = ("node_type", "node type")

BUILT_IN = (*INSTANT_NODES, delay.TYPE, loop.TYPE, *CHILD_NODES, *GATES)


def built_in_types(
    invoke: Invoke = no_agents, extra: Iterable[NodeType] = ()
) -> dict[str, NodeType]:
    """Return the host's own node types. ``invoke`` is used to ask agents.

    A type of ``extra`` replaces the one with the same id.
    """
    supervisors = supervisor.supervisor_type(supervisor.TYPE, invoke)
    agents = agent.agent_type(invoke), catch_up_type(invoke), DEPLOYED
    types = (*BUILT_IN, supervisors, *agents, *extra)
    return {type_.type_id: type_ for type_ in types}


def types_from_entry_points() -> dict[str, NodeType]:
    """Return the types of installed packages. Raise ValueError that names a broken entry."""
    types: dict[str, NodeType] = {}
    for installed, source in user_files.read_entry_points(ENTRY_POINT_GROUP, NodeType, *NAMES):
        _add_types(types, installed, source)
    return types


def types_from_file(path: Path | str) -> dict[str, NodeType]:
    """Return the types of a user's file. Raise ValueError that names the file."""
    types: dict[str, NodeType] = {}
    module = user_files.load_user_module(Path(path))
    _add_types(types, user_files.find_definitions(module, NodeType, *NAMES), str(path))
    return types


def _add_types(types_by_id: dict[str, NodeType], types: Iterable[NodeType], source: str) -> None:
    for type_ in types:
        try:
            check_type_id(type_.type_id)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        if type_.type_id in types_by_id:
            raise ValueError(f"{source}: node type '{type_.type_id}' is defined twice.")
        types_by_id[type_.type_id] = type_


class AnyNodeType(Mapping[str, NodeType]):
    """The known types; every other one counts as an activity that cannot be carried out.

    With it the host can read, show and fold a workflow with any nodes.
    """

    def __init__(self, known: Mapping[str, NodeType] | None = None) -> None:
        self._known = built_in_types() if known is None else known

    def __getitem__(self, type_id: str) -> NodeType:
        node_type = self._known.get(type_id)
        return node_type or NodeType(type_id=type_id, kind=NodeKind.ACTIVITY)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
