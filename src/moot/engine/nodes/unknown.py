"""A table of node types for who only reads: it has an answer for types nobody installed here."""

from collections.abc import Iterator, Mapping

from moot.core.workflows.node_types import Kind, NodeType
from moot.engine.nodes import registry


class AnyType(Mapping[str, NodeType]):
    """The known types; every other one is taken for an activity and can never be carried out.

    With it a definition can be read, shown and folded over, whatever nodes it uses.
    """

    def __init__(self, known: Mapping[str, NodeType] | None = None) -> None:
        self._known = registry.built_in(conformance=True) if known is None else known

    def __getitem__(self, type_id: str) -> NodeType:
        found = self._known.get(type_id)
        return found or NodeType(type_id=type_id, kind=Kind.ACTIVITY)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
