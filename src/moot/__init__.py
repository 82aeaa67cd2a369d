"""Moot: a meeting place for people and AI agents, one append-only log per run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moot.agents.tools.functions import tool
    from moot.client import ApiError, AsyncClient, Client
    from moot.engine.nodes import Completed, Failed, NodeContext, NodeError, node

__version__ = "0.1.0"
__all__ = [
    "ApiError", "AsyncClient", "Client", "Completed", "Failed", "NodeContext", "NodeError",
    "__version__", "node", "tool",
]  # fmt: skip

_NODES = "moot.engine.nodes"
_ELSEWHERE = {
    "tool": "moot.agents.tools.functions",
    **dict.fromkeys(("ApiError", "AsyncClient", "Client"), "moot.client"),
}


def __getattr__(name: str) -> Any:
    """Found on first use: the command line imports this package and must start at once."""
    if name in __all__:
        return getattr(import_module(_ELSEWHERE.get(name, _NODES)), name)
    raise AttributeError(f"module 'moot' has no attribute '{name}'")
