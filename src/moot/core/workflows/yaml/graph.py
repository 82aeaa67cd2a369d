"""Nodes and edges under construction, and how ways through the graph come together.

One rule carries the joins: where several ways lead on and one of them is taken, the next node
asks for ``any_success``. (``none_failed`` would also run when all of them were skipped, that is
after a failure further up or inside a branch that was not taken.)
"""

from typing import Any

from msgspec import Struct

from moot.core.workflows.yaml.source import Item
from moot.core.workflows.yaml.templates import NAME


class Exit(Struct, frozen=True):
    """A place the next node follows: a node, or one port of it."""

    node: str
    port: str | None = None
    label: str | None = None


class Entry(Struct, frozen=True):
    """How a node is reached. No exits: it begins the workflow."""

    exits: tuple[Exit, ...] = ()
    rule: str = "all_success"


class Part(Struct, frozen=True):
    """A finished piece: where it ends, and the nodes whose failure nobody has dealt with."""

    exits: tuple[Exit, ...]
    risks: tuple[str, ...]

    def entry(self) -> Entry:
        return Entry(self.exits, "all_success" if len(self.exits) == 1 else "any_success")


class Graph:
    """Collects the nodes and edges of one definition."""

    def __init__(self, reserved: set[str]) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.lane = 0
        self._reserved = reserved
        self._taken: set[str] = set()

    def claim(self, item: Item) -> str:
        """An id the writer gave."""
        name = item.text("id")
        if not NAME.fullmatch(name) or len(name) > 120:
            raise item.error(f"'{name}' is not an id; use letters, digits, '-' and '_'")
        if name in self._taken:
            raise item.error(f"the id '{name}' is used twice")
        self._taken.add(name)
        return name

    def fresh(self, stem: str) -> str:
        """``set-1``, ``set-2``, …, leaving out what the writer uses."""
        number = 1
        while (name := f"{stem}-{number}") in self._taken or name in self._reserved:
            number += 1
        self._taken.add(name)
        return name

    def only(self, name: str) -> str:
        """This very id if it is free."""
        if name in self._taken or name in self._reserved:
            return self.fresh(name)
        self._taken.add(name)
        return name

    def add(self, node: dict[str, Any], entry: Entry) -> Part:
        """The node, with an edge from each place that leads to it."""
        place = {"x": 200 * len(self.nodes), "y": 120 * self.lane}
        self.nodes.append({"position": place, "config": {}, "inputs": {}, **node})
        for source in entry.exits:
            self._connect(source, node["id"], entry.rule)
        return Part((Exit(node["id"]),), (node["id"],))

    def back(self, source: str, target: str) -> None:
        """The way back to where a loop begins."""
        self._connect(Exit(source), target, "all_success")

    def join(self, name: str, entry: Entry) -> Part:
        """A node that does nothing but bring ways together."""
        node = {"id": self.only(name), "typeId": "core.noop", "name": f"Join ({name})"}
        return self.add(node, entry)

    def _connect(self, source: Exit, target: str, rule: str) -> None:
        edge = {
            "id": f"e{len(self.edges) + 1:05d}",
            "sourceNodeId": source.node,
            "targetNodeId": target,
            "triggerRule": rule,
        }
        if source.port is not None:
            edge["sourceOutput"] = source.port
        if source.label is not None:
            edge["label"] = source.label
        self.edges.append(edge)
