"""List the pending work of a run: the steps that the host owes it in its state."""

from msgspec import Struct

from moot.core.councils import next_speaker
from moot.core.state import remote_children
from moot.core.state.floor import Floor
from moot.core.state.mutes import put_off_until
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.supervisors.worker_join import can_dispatch_more
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeKind


class PendingWork(Struct):
    """The steps that the host owes a run now, and the next due time."""

    #: nodes that are pure functions: the host decides them at once
    instant: list[str]
    #: nodes that need their next child run
    dispatches: list[str]
    #: (node, attempt) of nodes that touch the world
    activities: list[tuple[str, int]]
    #: child runs that the run waits for
    children: list[str]
    #: the earliest time at which something falls due, in ms
    due: int | None = None
    #: gates whose council has a next step
    talks: list[str] = []
    #: (gate, invitation) of members that the host answers for
    speakers: list[tuple[str, str]] = []
    #: (request id, next step) of child runs on other hosts
    abroad: list[tuple[str, str]] = []
    #: (gate, thread) of open links to side threads
    sides: list[tuple[str, str]] = []

    @property
    def now(self) -> bool:
        """Whether the host can do a step at once."""
        here = self.instant or self.dispatches or self.activities or self.children
        return bool(here) or bool(self.talks or self.speakers or self.abroad or self.sides)

    @property
    def anything(self) -> bool:
        return self.now or self.due is not None


#: kinds whose next step follows from the state alone
IMMEDIATE_KINDS = frozenset({NodeKind.INSTANT, NodeKind.GATE})

NO_WORK = PendingWork([], [], [], [])


def pending(run: Run, flow: Flow) -> PendingWork:
    """Return the pending work. A terminal or paused run has only remote children to stop."""
    if not run.going:
        return (
            PendingWork([], [], [], [], abroad=remote_children.pending_remote_children(run))
            if run.abroad
            else NO_WORK
        )
    work = PendingWork([], [], [], [], run_deadline(run))
    if run.abroad:
        work.abroad = remote_children.pending_remote_children(run)
    for node_id in run.active:
        state = run.nodes[node_id]
        is_held_back = run.pause is not None and state.status is NodeStatus.RETRYING
        if state.due is not None and not is_held_back:
            _add_due_time(work, state.due)
        if state.status is NodeStatus.RUNNING:
            _add_running_node(work, run, flow.nodes[node_id], state)
        elif state.status is NodeStatus.SUSPENDED and node_id in run.conversations:
            _add_conversation(work, run, node_id)
    return work


def _add_running_node(work: PendingWork, run: Run, node: FlowNode, state: NodeState) -> None:
    kind = node.type.kind
    if kind in IMMEDIATE_KINDS:
        work.instant.append(node.id)
        return
    if kind is NodeKind.ACTIVITY:
        work.activities.append((node.id, state.attempt))
    elif kind is NodeKind.CHILD:
        _add_children(work, run, node, state)
    limit = attempt_deadline(node, state)
    if limit is not None:
        _add_due_time(work, limit)


def _add_conversation(work: PendingWork, run: Run, node_id: str) -> None:
    conversation = run.conversations[node_id]
    if not conversation.open or run.replayed:
        return
    if conversation.links:
        work.sides += [(node_id, name) for name, link in conversation.links.items() if link.open]
    if conversation.floor is not None:
        _add_speakers(work, node_id, conversation.floor)
        for until in put_off_until(conversation).values():
            _add_due_time(work, until)
    if next_speaker.next_step(conversation, run.updated_at) is not None:
        work.talks.append(node_id)


def _add_speakers(work: PendingWork, node_id: str, floor: Floor) -> None:
    for invitation_id, invitation in floor.wakes.items():
        member = floor.members.get(invitation.agent)
        if member is not None and member.driven:
            work.speakers.append((node_id, invitation_id))
        _add_due_time(work, invitation.due)


def _add_children(work: PendingWork, run: Run, node: FlowNode, state: NodeState) -> None:
    away = remote_children.remote_names(run) if run.abroad else ()
    if node.type.dispatches:
        work.children += [child for child in state.living if child not in away]
        config, living = node.definition.config, len(state.living)
        if can_dispatch_more(run.orchestrator, config, state.children, living):
            work.dispatches.append(node.id)
    elif state.child is None:
        work.dispatches.append(node.id)
    elif state.child not in away:
        work.children.append(state.child)


def attempt_deadline(node: FlowNode, state: NodeState) -> int | None:
    """Return the end of the attempt's time limit; pauses do not count."""
    return state.started_at + state.paused_ms + node.timeout_ms if node.timeout_ms else None


def run_deadline(run: Run) -> int | None:
    """Return the end of the run's time limit; waiting and pauses do not count."""
    limit = run.limits.duration_ms
    if run.status is not Status.RUNNING:
        return None
    return run.active_since + max(0, limit - run.active_ms) if limit else None


def _add_due_time(work: PendingWork, due: int) -> None:
    work.due = due if work.due is None else min(work.due, due)
