"""Record requests to other hosts for child runs, before they are sent."""

from msgspec import UNSET

from moot.core.errors import PeerUnknown
from moot.core.events import Event, NewEvent
from moot.core.ids import derived_id
from moot.core.payloads.supervisors import PeerAsked, PeerAskedAnew
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.workflows import peer_ids
from moot.core.workflows.flow import FlowNode
from moot.core.workflows.node_types import ChildSpec, NodeError


def peer_request_event(
    run: Run, node: FlowNode, state: NodeState, spec: ChildSpec, tree: int, worker: int | None
) -> NewEvent:
    """Record that another host will be asked for a child, with all that it needs.

    The id of the request stays the same on every try, so that the other host begins one run.
    """
    target = peer_ids.split_peer_id(spec.workflow_id)
    assert target is not None
    parts = (run.tenant, run.run_id, node.id, str(state.started_seq), str(state.children))
    payload = PeerAsked(
        ask_id=derived_id("ask_", *parts),
        peer=target[0],
        workflow_id=target[1],
        parent_run_id=run.run_id,
        cause="core.dispatch" if node.type.dispatches else "core.subWorkflow",
    )
    hints: dict[str, object] = {"inputs": spec.seed, "depth": run.depth + 1, "tree": tree}
    if worker is not None:
        hints["worker"] = worker
    if spec.detach_on_cancel:
        hints["detached"] = True
    cause = state.started_seq if worker is None else None
    return NewEvent(payload, node.id, cause=cause, hints=hints)


def inherited_requests(run: Run) -> list[str]:
    """Return the requests that another run made and this one waits for."""
    if run.terminal:
        return []
    awaited = {
        name
        for node_id in run.active
        for name in (run.nodes[node_id].child, *run.nodes[node_id].living)
    }
    return [
        name
        for name, request in run.abroad.items()
        if request.owner != run.run_id and (name in awaited or request.child in awaited)
    ]


def fork_request_event(run: Run, former: str, request: Event) -> NewEvent:
    """Ask for a child of the fork's own, with the contents of the source's request."""
    entry = run.abroad[former]
    payload = PeerAskedAnew(
        ask_id=derived_id("ask_", run.tenant, run.run_id, "fork", former),
        former_ask_id=former,
        peer=entry.peer,
        workflow_id=entry.workflow_id,
        parent_run_id=run.run_id,
        cause=entry.cause,
    )
    hints = request.hints if request.hints is not UNSET else {}
    return NewEvent(payload, entry.node_id, cause=request.sequence, hints=hints)


def secret_withheld_error(names: tuple[str, ...]) -> NodeError:
    """Return the error for sensitive values, which never leave this host."""
    return NodeError(
        code="peer_secret_withheld",
        message=f"'{names[0]}' is sensitive and is not sent to another host; map something else.",
        details={"variables": list(names)},
        retryable=False,
    )


def new_child_id(run: Run, *parts: str) -> str:
    """Return the id of a child on this host, different from all that other hosts chose."""
    name, taken = derived_id("run_", run.run_id, *parts), remote_children.remote_names(run)
    while name in taken:
        name = derived_id("run_", run.run_id, *parts, name)
    return name


def is_local_dispatch(new: NewEvent) -> bool:
    """Return whether a dispatch begins a child run on this host, in the same commit."""
    return "tree" in (new.hints or {})


def unknown_worker_error(workflow_id: str) -> NodeError:
    """Return the error for a workflow or peer that does not exist."""
    if peer_ids.is_peer_id(workflow_id):
        unknown = PeerUnknown(workflow_id)
        return NodeError(code=unknown.code, message=unknown.message, retryable=False)
    message = f"There is no workflow '{workflow_id}' to hand work to."
    return NodeError(code="unknown_child_workflow", message=message, retryable=False)
