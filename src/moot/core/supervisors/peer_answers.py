"""What the answers of another host mean that was asked for a child run."""

from msgspec import Struct

from moot.core.children import handoff
from moot.core.events import NewEvent
from moot.core.runs.advance import failed
from moot.core.runs.child_outputs import Seen
from moot.core.runs.nodes import finish
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.supervisors.workers import given_up
from moot.core.workflows import peer_ids
from moot.core.workflows.graph import Flow
from moot.core.workflows.node_types import Failed, NodeError

ANSWER_INVALID = "peer_answer_invalid"


class PeerFound(Struct, frozen=True, kw_only=True):
    """The other host has begun the child, or had begun it when it was asked before."""

    ask_id: str
    child_run: str
    host_id: str
    at: int


class PeerRefused(Struct, frozen=True, kw_only=True):
    """There will be no child. ``unsure``: the other host may have begun it all the same."""

    ask_id: str
    error: NodeError
    unsure: bool
    at: int
    #: the children that live on as far as the run knows
    seen: dict[str, Seen] = {}


class PeerStopped(Struct, frozen=True, kw_only=True):
    """A child that is not wanted any more was told so, or nobody could be told."""

    ask_id: str
    outcome: str


def answered(
    run: Run, flow: Flow, command: PeerFound | PeerRefused | PeerStopped
) -> list[NewEvent]:
    match command:
        case PeerFound():
            return found(run, flow, command)
        case PeerRefused():
            return refused(run, flow, command)
        case PeerStopped():
            return stopped(run, command)


def found(run: Run, flow: Flow, command: PeerFound) -> list[NewEvent]:
    """The child is there. A name that is taken in this run cannot be its."""
    entry, state = _asking(run, command.ask_id)
    if entry is None or state is None:
        return []
    child = command.child_run
    if child in {*remote_children.names(run), *run.children, *state.ends}:
        error = NodeError(
            code=ANSWER_INVALID,
            message=f"Host '{entry.peer}' names a run that is already known as another one.",
            retryable=False,
        )
        refusal = PeerRefused(ask_id=command.ask_id, error=error, unsure=False, at=command.at)
        return refused(run, flow, refusal)
    worker = f"{entry.peer}{peer_ids.SLASH}{entry.workflow_id}"
    hints = {"askId": command.ask_id, "hostId": command.host_id}
    if not flow.nodes[entry.node_id].type.dispatches:
        return [handoff.dispatched(entry.node_id, child, worker, state.started_seq, hints)]
    assert run.orchestrator is not None
    order = run.orchestrator
    begun = handoff.dispatched(entry.node_id, child, worker, order.decided_seq, hints)
    if command.ask_id in order.links:  # it takes the place of one that was there before the fork
        return [begun]
    succeeded = "dispatch.succeeded"
    return [begun, handoff.step(run, entry.node_id, succeeded, worker, entry.began, child)]


def refused(run: Run, flow: Flow, command: PeerRefused) -> list[NewEvent]:
    """A worker that cannot be started fails its node at once."""
    entry, state = _asking(run, command.ask_id)
    if entry is None or state is None:
        return []
    node, name = flow.nodes[entry.node_id], command.ask_id
    hints = {"askId": name, **({"unsure": name, "why": "unsure"} if command.unsure else {})}
    if not node.type.dispatches:
        events = finish(run, flow, node.id, state.attempt, Failed(command.error), command.at)
        events[-1].hints = {**(events[-1].hints or {}), **hints}
        return events
    worker = f"{entry.peer}{peer_ids.SLASH}{entry.workflow_id}"
    error = command.error.as_payload()
    told = handoff.step(run, node.id, "dispatch.failed", worker, entry.began, error=error)
    told.hints = {**hints, "runs": max(1, entry.tree)} if command.unsure else hints
    rest = given_up(run, node, state, command.seen, but=name)
    return [told, *rest, failed(node, command.error, state.attempt)]


def stopped(run: Run, command: PeerStopped) -> list[NewEvent]:
    """Said while the run lives; the log of one that has ended is closed."""
    entry = run.abroad.get(command.ask_id)
    if run.terminal or entry is None or not entry.stop:
        return []
    payload = {"askId": command.ask_id, "peer": entry.peer, "outcome": command.outcome}
    if entry.child is not None:
        payload["childRunId"] = entry.child
    return [NewEvent("moot.peer.stopped", payload, cause=entry.asked_seq)]


def _asking(run: Run, ask_id: str) -> tuple[remote_children.Abroad | None, NodeState | None]:
    """The entry whose child is waited for to begin, and its node at work."""
    entry = run.abroad.get(ask_id)
    if entry is None or entry.child is not None or entry.stop or not run.going:
        return None, None
    state = run.nodes.get(entry.node_id)
    if state is None or state.status is not NodeStatus.RUNNING:
        return None, None
    return entry, state
