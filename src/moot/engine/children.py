"""Statuses and ends of child runs, as commands for their parent."""

from moot.core.children.decide import ChildWaits
from moot.core.runs.child_outputs import ChildEnded, ChildReport
from moot.core.state.run import Run
from moot.engine.head import Head


def child_statuses(run: Run, family: dict[str, Head]) -> dict[str, ChildReport]:
    """Return the current status of each child that the run waits for and that is in ``family``."""
    states = [run.nodes[name] for name in run.active]
    awaited = [child for state in states for child in (*state.living, state.child)]
    present = (child for child in awaited if child is not None and child in family)
    return {child: _child_status(family[child].run, family) for child in present}


def child_ended(child: Head, parent: Head, at: int) -> ChildEnded:
    """Return the command that reports a child's end to its parent."""
    run = child.run
    assert run.parent_node is not None
    return ChildEnded(
        node_id=run.parent_node,
        child_run=run.run_id,
        status=run.status.value,
        at=at,
        variables={**run.variables, **run.channels, **child.messages},
        outputs=run.outputs or {},
        error=run.error,
        sealed=parent.sealed,
        runs=1 + run.spent,
    )


def child_waits(child: Run, node_id: str) -> ChildWaits:
    """Return the command that reports how a child waits to its parent."""
    return ChildWaits(
        node_id=node_id,
        child_run=child.run_id,
        workflow_id=child.workflow_id,
        status=child.status.value,
    )


def _child_status(run: Run, family: dict[str, Head]) -> ChildReport:
    """Return the child's status and the number of runs it has led to."""
    living = [name for name, status in run.children.items() if status is None and name in family]
    runs = 1 + run.spent + sum(_child_status(family[name].run, family).runs for name in living)
    return ChildReport(run.status.value if run.terminal else None, runs)


def is_detached(parent: Head, child: Head) -> bool:
    """Return whether the child lives on when its parent is cancelled."""
    node = parent.flow.nodes.get(child.run.parent_node or "")
    return node is not None and node.definition.config.get("propagateCancellation") is False
