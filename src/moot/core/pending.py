"""What the host still owes a run, given its state."""

from msgspec import Struct

from moot.core.councils import next_step
from moot.core.state import put_off_requests, remote_children
from moot.core.state.floor import Floor
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.supervisors.join import goes_on
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Kind


class Owed(Struct):
    """Everything that is owed now, and when to look again."""

    #: nodes that are pure functions: decided at once
    instant: list[str]
    #: nodes that want their next child run
    dispatches: list[str]
    #: (node, attempt) of nodes that touch the world
    activities: list[tuple[str, int]]
    #: child runs whose end the run waits for
    children: list[str]
    #: the earliest time at which something falls due, in ms
    due: int | None = None
    #: gates whose conversation the host leads and somebody is to be given the floor
    talks: list[str] = []
    #: (gate, wake) of members that have the floor and whom the host speaks for
    speakers: list[tuple[str, str]] = []
    #: (name, what is to be done) of child runs on other hosts
    abroad: list[tuple[str, str]] = []
    #: (gate, thread) of side threads whose end is to be told
    sides: list[tuple[str, str]] = []

    @property
    def now(self) -> bool:
        """Whether something can be done at once."""
        here = self.instant or self.dispatches or self.activities or self.children
        return bool(here) or bool(self.talks or self.speakers or self.abroad or self.sides)

    @property
    def anything(self) -> bool:
        return self.now or self.due is not None


#: kinds whose next step follows from the state alone
AT_ONCE = frozenset({Kind.INSTANT, Kind.GATE})

NOTHING = Owed([], [], [], [])


def pending(run: Run, flow: Flow) -> Owed:
    """A terminal or paused run is owed nothing but the end of what it has begun elsewhere."""
    if not run.going:
        return Owed([], [], [], [], abroad=remote_children.owed(run)) if run.abroad else NOTHING
    owed = Owed([], [], [], [], deadline(run), abroad=remote_children.owed(run))
    for node_id in run.active:
        state, node = run.nodes[node_id], flow.nodes[node_id]
        held_back = run.pause is not None and state.status is NodeStatus.RETRYING
        if state.due is not None and not held_back:
            _sooner(owed, state.due)
        if state.status is NodeStatus.SUSPENDED and node_id in run.conversations:
            _floor(owed, run, node_id)
        if state.status is not NodeStatus.RUNNING:
            continue
        if node.type.kind in AT_ONCE:
            owed.instant.append(node_id)
        elif node.type.kind is Kind.ACTIVITY:
            owed.activities.append((node_id, state.attempt))
        elif node.type.kind is Kind.CHILD:
            _children(owed, run, node, state)
        limit = time_limit(node, state)
        if limit is not None and node.type.kind not in AT_ONCE:
            _sooner(owed, limit)
    return owed


def _floor(owed: Owed, run: Run, node_id: str) -> None:
    talk = run.conversations[node_id]
    if talk.open and not run.replayed:
        owed.sides += [(node_id, name) for name, link in talk.links.items() if link.open]
    if not talk.open or run.replayed:
        return
    if talk.floor is not None:
        _wakes(owed, node_id, talk.floor)
    for until in put_off_requests.due(talk).values():
        _sooner(owed, until)
    if next_step.step(talk, run.updated_at) is not None:
        owed.talks.append(node_id)


def _wakes(owed: Owed, node_id: str, led: Floor) -> None:
    for wake_id, wake in led.wakes.items():
        member = led.members.get(wake.agent)
        if member is not None and member.driven:
            owed.speakers.append((node_id, wake_id))
        _sooner(owed, wake.due)


def _children(owed: Owed, run: Run, node: FlowNode, state: NodeState) -> None:
    away = remote_children.names(run) if run.abroad else ()
    if node.type.dispatches:
        owed.children += [child for child in state.living if child not in away]
        config, living = node.definition.config, len(state.living)
        if goes_on(run.orchestrator, config, state.children, living):
            owed.dispatches.append(node.id)
    elif state.child is None:
        owed.dispatches.append(node.id)
    elif state.child not in away:
        owed.children.append(state.child)


def time_limit(node: FlowNode, state: NodeState) -> int | None:
    """When the attempt's time limit is reached; pauses do not count."""
    return state.started_at + state.paused_ms + node.timeout_ms if node.timeout_ms else None


def deadline(run: Run) -> int | None:
    """When the run's time limit is reached; waiting and pauses do not count."""
    limit = run.limits.get("durationMs", 0)
    if run.status is not Status.RUNNING:
        return None
    return run.active_since + max(0, limit - run.active_ms) if limit else None


def _sooner(owed: Owed, due: int) -> None:
    owed.due = due if owed.due is None else min(owed.due, due)
