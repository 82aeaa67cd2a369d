"""moot.deployed: says in a run's log what was changed about the versions of an agent. Only the
host's own workflows have it, and it says nothing but that."""

from moot.core.agents.deployments import checked
from moot.core.workflows.node_types import Call, Completed, Kind, NodeType

#: its input: [type, payload] of each event
TOLD = "told"


def _tell(call: Call) -> Completed:
    return Completed(told=tuple(checked(call.inputs[TOLD])))


TYPE = NodeType(type_id="moot.deployed", kind=Kind.INSTANT, instant=_tell, only_in="moot.")
