"""Decide what another host's answer to a request for a child run causes."""

from msgspec import Struct

from moot.core.children import handoff
from moot.core.events import NewEvent
from moot.core.payloads.supervisors import RemoteChildStopped
from moot.core.runs.advance import node_failed_event
from moot.core.runs.child_outputs import ChildReport
from moot.core.runs.nodes import fail_attempt
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.supervisors.workers import give_up_workers
from moot.core.workflows import peer_ids
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeError, permanent_error

ANSWER_INVALID = "peer_answer_invalid"


class PeerFound(Struct, frozen=True, kw_only=True):
    """The other host has begun the child, now or on an earlier try."""

    ask_id: str
    child_run: str
    host_id: str
    at: int


class PeerRefused(Struct, frozen=True, kw_only=True):
    """There will be no child. ``unsure``: the other host may have begun it nevertheless."""

    ask_id: str
    error: NodeError
    unsure: bool
    at: int
    #: the children that the run still counts as living
    seen: dict[str, ChildReport] = {}


class PeerStopped(Struct, frozen=True, kw_only=True):
    """The host has tried to stop an unneeded child."""

    ask_id: str
    outcome: str


def decide_peer_answer(
    run: Run, flow: Flow, command: PeerFound | PeerRefused | PeerStopped
) -> list[NewEvent]:
    match command:
        case PeerFound():
            return accept_peer_child(run, flow, command)
        case PeerRefused():
            return refuse_peer_child(run, flow, command)
        case PeerStopped():
            return record_peer_stop(run, command)


def accept_peer_child(run: Run, flow: Flow, command: PeerFound) -> list[NewEvent]:
    """Record the child. Refuse an id that this run already knows as another run."""
    entry, state = _open_request(run, command.ask_id)
    if entry is None or state is None:
        return []
    child = command.child_run
    if child in {*remote_children.remote_names(run), *run.children, *state.ends}:
        message = f"Host '{entry.peer}' names a run that is already known as another one."
        error = permanent_error(ANSWER_INVALID, message)
        refusal = PeerRefused(ask_id=command.ask_id, error=error, unsure=False, at=command.at)
        return refuse_peer_child(run, flow, refusal)
    worker = f"{entry.peer}{peer_ids.SLASH}{entry.workflow_id}"
    hints = {"askId": command.ask_id, "hostId": command.host_id}
    if not flow.nodes[entry.node_id].type.dispatches:
        return [handoff.dispatched_event(entry.node_id, child, worker, state.started_seq, hints)]
    assert run.orchestrator is not None
    order = run.orchestrator
    event = handoff.dispatched_event(entry.node_id, child, worker, order.decided_seq, hints)
    if command.ask_id in order.links:  # it replaces a child from before the fork
        return [event]
    succeeded = "dispatch.succeeded"
    return [event, handoff.handoff_event(run, entry.node_id, succeeded, worker, entry.began, child)]


def refuse_peer_child(run: Run, flow: Flow, command: PeerRefused) -> list[NewEvent]:
    """Fail the node of a worker that cannot be started."""
    entry, state = _open_request(run, command.ask_id)
    if entry is None or state is None:
        return []
    node, name = flow.nodes[entry.node_id], command.ask_id
    hints = {"askId": name, **({"unsure": name, "why": "unsure"} if command.unsure else {})}
    if not node.type.dispatches:
        events = fail_attempt(run, flow, node.id, command.error, command.at)
        events[-1].hints = {**(events[-1].hints or {}), **hints}
        return events
    worker = f"{entry.peer}{peer_ids.SLASH}{entry.workflow_id}"
    error = command.error.as_payload()
    refused = handoff.handoff_event(
        run, node.id, "dispatch.failed", worker, entry.began, error=error
    )
    refused.hints = {**hints, "runs": max(1, entry.tree)} if command.unsure else hints
    rest = give_up_workers(run, node, state, command.seen, but=name)
    return [refused, *rest, node_failed_event(node, command.error, state.attempt)]


def record_peer_stop(run: Run, command: PeerStopped) -> list[NewEvent]:
    """Record the stop, unless the run has ended: its log is closed."""
    entry = run.abroad.get(command.ask_id)
    if run.terminal or entry is None or not entry.stop:
        return []
    stopped = RemoteChildStopped(
        ask_id=command.ask_id, peer=entry.peer, outcome=command.outcome, child_run_id=entry.child
    )
    return [NewEvent(stopped, cause=entry.asked_seq)]


def _open_request(
    run: Run, ask_id: str
) -> tuple[remote_children.RemoteChild | None, NodeState | None]:
    """Return the request that waits for its child to begin, and its running node."""
    entry = run.abroad.get(ask_id)
    if entry is None or entry.child is not None or entry.stop or not run.going:
        return None, None
    state = run.nodes.get(entry.node_id)
    if state is None or state.status is not NodeStatus.RUNNING:
        return None, None
    return entry, state
