"""How many runs a run may still lead to: what it was given, less what its children used or hold.

A child is lent a share when it begins, and what it did not use is there again when it ends, so that
a loop of small workers goes on for long and a tree that grows for ever does not.
"""

from moot.core.runs.child_outputs import Seen
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NODE_TERMINAL
from moot.core.state.supervisor import lent
from moot.core.workflows.graph import Flow
from moot.core.workflows.node_types import Kind, NodeError

#: the right that starting a run takes
START = "runs:create"

USUAL = 1000

#: a child elsewhere is lent this part of its share: a host that does not say how much of it was
#: used has used it all
PART_ABROAD = 16


UNSEEN = Seen()


def last_seen(run: Run, state: NodeState, seen: dict[str, Seen], child: str) -> Seen:
    """What is known of a child that is given up: one elsewhere may have used all it was lent."""
    if child in seen or child not in remote_children.names(run):
        return seen.get(child, UNSEEN)
    return Seen(None, max(1, state.lent.get(child, 1)))


def share(run: Run, flow: Flow, node_id: str, waiting: int = 1, away: bool = False) -> int:
    """What the next child of a node is lent. ``waiting`` is how many it is yet to start, this one
    among them; nodes that have not come to start any keep a share each."""
    free = run.limits.get("tree", USUAL) - 1 - run.spent - lent(run)
    others = sum(
        node.type.kind is Kind.CHILD and name != node_id and _to_come(run.nodes.get(name))
        for name, node in flow.nodes.items()
    )
    found = free // (waiting + others)
    return max(1, found // PART_ABROAD) if away and found > 0 else found


def _to_come(state: NodeState | None) -> bool:
    if state is None:
        return True
    return state.status not in NODE_TERMINAL and state.child is None and not state.living


def refusal(run: Run, free: int) -> NodeError | None:
    """Why the run may have no further child, if it may not."""
    most = run.limits.get("depth", 16)
    if not run.may(START):
        return NodeError(
            code="forbidden",
            message=f"The run was started without the right {START}; it may start no other.",
            details={"scopeRequired": START},
            retryable=False,
        )
    if run.depth + 1 > most:
        return NodeError(
            code="depth_exceeded",
            message=f"Workflows may call each other {most} levels deep.",
            retryable=False,
        )
    if free < 1:
        return NodeError(
            code="tree_exceeded",
            message="The run and those it comes from have started as many runs as they may.",
            retryable=False,
        )
    return None
