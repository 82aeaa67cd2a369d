"""Build the nodes and edges of a definition and join its branches.

Where several branches meet and one of them was taken, the next node asks for ``any_success``.
(``none_failed`` would also run when all of them were skipped, after a failure further up or inside
a branch that was not taken.)
"""

from collections.abc import Mapping

from msgspec import Struct

from moot.core.workflows.yaml.source import YamlItem
from moot.core.workflows.yaml.templates import NAME


class StepExit(Struct, frozen=True):
    """A place that the next node follows: a node, or one port of it."""

    node: str
    port: str | None = None
    label: str | None = None


class StepEntry(Struct, frozen=True):
    """The exits that lead to a node. Without exits it begins the workflow."""

    exits: tuple[StepExit, ...] = ()
    rule: str = "all_success"


class StepPart(Struct, frozen=True):
    """A finished part: its exits, and the nodes whose failure is not handled yet."""

    exits: tuple[StepExit, ...]
    risks: tuple[str, ...]

    def entry(self) -> StepEntry:
        return StepEntry(self.exits, "all_success" if len(self.exits) == 1 else "any_success")


class GraphBuilder:
    """Collects the nodes and edges of one definition."""

    def __init__(self, reserved: set[str]) -> None:
        self.nodes: list[dict[str, object]] = []
        self.edges: list[dict[str, str]] = []
        self.lane = 0
        self._reserved = reserved
        self._taken: set[str] = set()

    def claim_id(self, item: YamlItem) -> str:
        """Return an id that the author chose. Raise FlowFileError when it is taken or invalid."""
        name = item.text("id")
        if not NAME.fullmatch(name) or len(name) > 120:
            raise item.error(f"'{name}' is not an id; use letters, digits, '-' and '_'")
        if name in self._taken:
            raise item.error(f"the id '{name}' is used twice")
        self._taken.add(name)
        return name

    def new_id(self, stem: str) -> str:
        """Return ``set-1``, ``set-2``, …, without the ids that the author uses."""
        number = 1
        while (name := f"{stem}-{number}") in self._taken or name in self._reserved:
            number += 1
        self._taken.add(name)
        return name

    def reserve_id(self, name: str) -> str:
        """Return this id if it is free, or else a numbered one."""
        if name in self._taken or name in self._reserved:
            return self.new_id(name)
        self._taken.add(name)
        return name

    def add(self, node: Mapping[str, object], entry: StepEntry) -> StepPart:
        """Add the node with an edge from each exit that leads to it."""
        name = str(node["id"])
        place = {"x": 200 * len(self.nodes), "y": 120 * self.lane}
        self.nodes.append({"position": place, "config": {}, "inputs": {}, **node})
        for source in entry.exits:
            self._connect(source, name, entry.rule)
        return StepPart((StepExit(name),), (name,))

    def connect_back(self, source: str, target: str) -> None:
        """Add the edge back to the beginning of a loop."""
        self._connect(StepExit(source), target, "all_success")

    def join(self, name: str, entry: StepEntry) -> StepPart:
        """Add a node that only joins branches."""
        node = {"id": self.reserve_id(name), "typeId": "core.noop", "name": f"Join ({name})"}
        return self.add(node, entry)

    def _connect(self, source: StepExit, target: str, rule: str) -> None:
        edge = {"id": f"e{len(self.edges) + 1:05d}", "sourceNodeId": source.node}
        edge |= {"targetNodeId": target, "triggerRule": rule}
        if source.port is not None:
            edge["sourceOutput"] = source.port
        if source.label is not None:
            edge["label"] = source.label
        self.edges.append(edge)
