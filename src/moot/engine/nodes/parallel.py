"""core.parallel: marks where branches begin. The edges do the fanning out."""

from moot.core.workflows.node_types import Call, Completed, Kind, NodeType


def _parallel(call: Call) -> Completed:
    return Completed(call.inputs)


TYPE = NodeType(type_id="core.parallel", kind=Kind.INSTANT, instant=_parallel)
