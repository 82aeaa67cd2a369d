"""Moot: a meeting place for people and AI agents, kept in one append-only log per run."""

from moot.engine.nodes import Completed, Failed, NodeContext, node

__version__ = "0.1.0"
__all__ = ["Completed", "Failed", "NodeContext", "__version__", "node"]
