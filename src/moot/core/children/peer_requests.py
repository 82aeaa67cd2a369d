"""Handing work to another host: what is recorded before it is asked."""

from typing import Any

from msgspec import UNSET

from moot.core.errors import PeerUnknown
from moot.core.events import Event, NewEvent
from moot.core.ids import derived_id
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.workflows import peer_ids
from moot.core.workflows.graph import FlowNode
from moot.core.workflows.node_types import ChildSpec, NodeError


def asked(
    run: Run, node: FlowNode, state: NodeState, spec: ChildSpec, tree: int, worker: int | None
) -> NewEvent:
    """That the other host is going to be asked, with everything it is asked for.

    The name it goes by stays the same however often it is asked, so that it begins one run.
    """
    away = peer_ids.parted(spec.workflow_id)
    assert away is not None
    parts = (run.tenant, run.run_id, node.id, str(state.started_seq), str(state.children))
    payload = {
        "askId": derived_id("ask_", *parts),
        "peer": away[0],
        "workflowId": away[1],
        "parentRunId": run.run_id,
        "cause": "core.dispatch" if node.type.dispatches else "core.subWorkflow",
    }
    hints: dict[str, Any] = {"inputs": spec.seed, "depth": run.depth + 1, "tree": tree}
    if worker is not None:
        hints["worker"] = worker
    if spec.detach_on_cancel:
        hints["detached"] = True
    cause = state.started_seq if worker is None else None
    return NewEvent("moot.peer.asked", payload, node.id, cause=cause, hints=hints)


def others(run: Run) -> list[str]:
    """The names of children elsewhere that another run has asked for, and this one waits for."""
    if run.terminal:
        return []
    waited = {
        name
        for node_id in run.active
        for name in (run.nodes[node_id].child, *run.nodes[node_id].living)
    }
    return [
        name
        for name, each in run.abroad.items()
        if each.owner != run.run_id and (name in waited or each.child in waited)
    ]


def anew(run: Run, former: str, asked: Event) -> NewEvent:
    """A branch asks for a child of its own as its source ``asked``, under a name of its own."""
    entry = run.abroad[former]
    payload = {
        "askId": derived_id("ask_", run.tenant, run.run_id, "fork", former),
        "formerAskId": former,
        "peer": entry.peer,
        "workflowId": entry.workflow_id,
        "parentRunId": run.run_id,
        "cause": entry.cause,
    }
    hints = asked.hints if asked.hints is not UNSET else {}
    return NewEvent(
        remote_children.ASKED_ANEW, payload, entry.node_id, cause=asked.sequence, hints=hints
    )


def withheld(names: tuple[str, ...]) -> NodeError:
    """What a workflow calls sensitive does not leave this host."""
    return NodeError(
        code="peer_secret_withheld",
        message=f"'{names[0]}' is sensitive and is not sent to another host; map something else.",
        details={"variables": list(names)},
        retryable=False,
    )


def child_id(run: Run, *parts: str) -> str:
    """The id of a child that begins here, other than any that another host has chosen."""
    name, taken = derived_id("run_", run.run_id, *parts), remote_children.names(run)
    while name in taken:
        name = derived_id("run_", run.run_id, *parts, name)
    return name


def begins_here(new: NewEvent) -> bool:
    """Whether a dispatch begins a child run on this host, in the same commit."""
    return "tree" in (new.hints or {})


def nobody(workflow_id: str) -> NodeError:
    """There is nobody of this name to hand work to."""
    if peer_ids.is_away(workflow_id):
        unknown = PeerUnknown(workflow_id)
        return NodeError(code=unknown.code, message=unknown.message, retryable=False)
    message = f"There is no workflow '{workflow_id}' to hand work to."
    return NodeError(code="unknown_child_workflow", message=message, retryable=False)
