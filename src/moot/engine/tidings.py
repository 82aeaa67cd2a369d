"""What a parent is told of its child, as commands."""

from typing import Any

from moot.core.children import ChildEnded, ChildWaits
from moot.core.run import Run
from moot.engine.head import Head


def waits(child: Run, node_id: str) -> ChildWaits:
    return ChildWaits(
        node_id=node_id,
        child_run=child.run_id,
        workflow_id=child.workflow_id,
        status=child.status.value,
    )


def end(head: Head, node_id: str, sealed: dict[str, Any], at: int) -> ChildEnded:
    """``head`` is that of the child, with its messages; ``sealed`` is of the parent."""
    child = head.run
    return ChildEnded(
        node_id=node_id,
        child_run=child.run_id,
        status=child.status.value,
        at=at,
        variables={**child.variables, **child.channels, **head.messages},
        outputs=child.outputs or {},
        error=child.error,
        sealed=sealed,
        runs=1 + child.spent,
    )
