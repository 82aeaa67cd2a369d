"""A table of node types that also answers for types that are not installed."""

from collections.abc import Iterator, Mapping

from moot.core.workflows.node_types import NodeKind, NodeType
from moot.engine.nodes import registry


class AnyNodeType(Mapping[str, NodeType]):
    """The known types; every other one counts as an activity that cannot be carried out.

    With it the host can read, show and fold a workflow with any nodes.
    """

    def __init__(self, known: Mapping[str, NodeType] | None = None) -> None:
        self._known = registry.built_in_types() if known is None else known

    def __getitem__(self, type_id: str) -> NodeType:
        node_type = self._known.get(type_id)
        return node_type or NodeType(type_id=type_id, kind=NodeKind.ACTIVITY)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
