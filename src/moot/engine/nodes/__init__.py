"""Built-in node types, and the names a user needs to write another."""

from moot.core.workflows.node_types import Completed, Failed, NodeError
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.user import node

__all__ = ["Completed", "Failed", "NodeContext", "NodeError", "node"]
