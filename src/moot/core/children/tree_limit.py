"""Limit how many runs a run's tree may have.

A child is lent a share when it begins and gives back what it did not use when it ends. So a loop of
small workers can run for long, and a tree cannot grow forever.
"""

from moot.core.runs.child_outputs import ChildReport
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NODE_TERMINAL
from moot.core.state.supervisor import count_lent_runs
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeError, NodeKind

#: the scope that a run needs to start a child
START_RIGHT = "runs:create"


#: a child on another host is lent its share divided by this, because a host that does not report
#: its use counts as having used all of it
REMOTE_DIVISOR = 16


NO_REPORT = ChildReport()


def last_report(
    run: Run, state: NodeState, reports: dict[str, ChildReport], child: str
) -> ChildReport:
    """Return the last report of a child that the parent gives up.

    One on another host without a report counts as having used all that it was lent.
    """
    if child in reports or child not in remote_children.remote_names(run):
        return reports.get(child, NO_REPORT)
    return ChildReport(None, max(1, state.lent.get(child, 1)))


def next_share(run: Run, flow: Flow, node_id: str, waiting: int = 1, away: bool = False) -> int:
    """Return the share to lend to the next child of a node.

    ``waiting`` is how many children the node has yet to start, this one included. Every other node
    that has not started its child keeps a share.
    """
    free = run.limits.tree - 1 - run.spent - count_lent_runs(run)
    others = sum(
        node.type.kind is NodeKind.CHILD
        and name != node_id
        and _is_yet_to_start(run.nodes.get(name))
        for name, node in flow.nodes.items()
    )
    share = free // (waiting + others)
    return max(1, share // REMOTE_DIVISOR) if away and share > 0 else share


def _is_yet_to_start(state: NodeState | None) -> bool:
    if state is None:
        return True
    return state.status not in NODE_TERMINAL and state.child is None and not state.living


def child_refusal(run: Run, free: int) -> NodeError | None:
    """Return why the run may start no further child, or None when it may."""
    most = run.limits.depth
    if not run.may(START_RIGHT):
        return NodeError(
            code="forbidden",
            message=f"The run was started without the right {START_RIGHT}; it may start no other.",
            details={"scopeRequired": START_RIGHT},
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
