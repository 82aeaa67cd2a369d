"""The children of a run as they are now, which it may not have been told yet."""

from moot.core.children.decide import ChildWaits
from moot.core.runs.child_outputs import ChildEnded, Seen
from moot.core.state.run import Run
from moot.engine.head import Head


def children_of(run: Run, family: dict[str, Head]) -> dict[str, Seen]:
    """Those it waits for, as far as they are at hand."""
    states = [run.nodes[name] for name in run.active]
    waited = [child for state in states for child in (*state.living, state.child)]
    return {
        child: _seen(family[child].run, family)
        for child in waited
        if child is not None and child in family
    }


def end_of(child: Head, parent: Head, at: int) -> ChildEnded:
    """The end of a child, as its parent is told of it."""
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


def waits(child: Run, node_id: str) -> ChildWaits:
    """How a child waits, as its parent is told of it."""
    return ChildWaits(
        node_id=node_id,
        child_run=child.run_id,
        workflow_id=child.workflow_id,
        status=child.status.value,
    )


def _seen(run: Run, family: dict[str, Head]) -> Seen:
    """A child, with everybody it has led to."""
    living = [name for name, status in run.children.items() if status is None and name in family]
    runs = 1 + run.spent + sum(_seen(family[name].run, family).runs for name in living)
    return Seen(run.status.value if run.terminal else None, runs)
