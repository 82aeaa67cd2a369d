"""core.noop: does nothing, and says so."""

from moot.core.workflows.node_types import Call, Completed, Kind, NodeType


def _noop(call: Call) -> Completed:
    return Completed()


TYPE = NodeType(type_id="core.noop", kind=Kind.INSTANT, instant=_noop)
