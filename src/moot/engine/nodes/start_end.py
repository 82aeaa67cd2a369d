"""core.start and core.end: where a run's inputs enter the graph and its outputs leave it."""

from moot.core.workflows.node_types import Call, Completed, Kind, NodeType


def _start(call: Call) -> Completed:
    return Completed(call.run_inputs)


def _end(call: Call) -> Completed:
    return Completed(call.inputs)


TYPES = (
    NodeType(type_id="core.start", kind=Kind.INSTANT, instant=_start),
    NodeType(type_id="core.end", kind=Kind.INSTANT, instant=_end),
)
