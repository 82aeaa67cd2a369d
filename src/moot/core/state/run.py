"""The state of a run and its fold.

The fold owns its state and changes it in place: O(1) per event, total, never raises on what it
does not know. The state holds counters and references, never transcripts.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET, Struct

from moot.core.events import Event, millis
from moot.core.state import (
    agents,
    initiation,
    lineage,
    remote_children,
    run_started,
    supervisor,
    values,
)
from moot.core.state import conversation as waiting
from moot.core.state.memory import Memory, turned
from moot.core.state.node import NODE_ENDS, NodeState, Pause
from moot.core.state.remote_children import Abroad
from moot.core.state.seats import HANDLERS as SEATING
from moot.core.state.status import GOING, TERMINAL, TRANSITIONS, WAITING, WAITS, NodeStatus, Status
from moot.core.state.usage import HANDLERS as CHARGING
from moot.core.state.usage import Used
from moot.core.trace import Trace

#: a cached state of another version is thrown away and folded anew
FOLD_VERSION = 22

#: more events than any log has
EVERYTHING = sys.maxsize


class Run(Struct):
    """Everything that is so about a run, given its log."""

    run_id: str
    tenant: str = ""
    next_sequence: int = 0
    status: Status = Status.PENDING
    workflow_id: str = ""
    definition: str = ""
    principal: str = ""
    #: who speaks when the run's own question is put
    person: str = "user"
    engine_version: str = ""
    started_at: int = 0
    ended_at: int = 0
    updated_at: int = 0
    inputs: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    channels: dict[str, Any] = {}
    #: channel of messages -> how many it holds, and the ids of those that nodes wrote
    messages: dict[str, int] = {}
    message_ids: dict[str, list[str]] = {}
    declared: list[str] = []
    nodes: dict[str, NodeState] = {}
    #: nodes that hold the run open, in the order they started
    active: dict[str, None] = {}
    executions: int = 0
    outputs: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    #: attempts of the node that used all of them up, and the run with it
    dead_after: int = 0
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    configurable: dict[str, Any] = {}
    scope_id: str | None = None
    limits: dict[str, int] = {}
    parent_run: str | None = None
    parent_node: str | None = None
    #: what it may do of what its principal may; None is all of it
    rights: list[str] | None = None
    depth: int = 0
    #: the run on another host that this one was started by, as its caller said
    origin: dict[str, Any] | None = None
    #: the place in a trace that it was given
    trace: Trace | None = None
    #: the run this one was made from, where and how
    forked_from: dict[str, Any] | None = None
    memory: Memory | None = None
    orchestrator: supervisor.Orchestrator | None = None
    #: the agent that has the work in hand
    agent: dict[str, Any] | None = None
    #: agent@channel -> the version that serves this run
    versions: dict[str, str] = {}
    #: node of a loop -> attempts it had in earlier rounds
    attempts: dict[str, int] = {}
    #: the run was cancelled because its parent ended
    with_parent: bool = False
    #: child run -> its status when it ended, or None while it lives
    children: dict[str, str | None] = {}
    #: runs that children which have ended had led to, themselves among them
    spent: int = 0
    used: Used | None = None
    #: name a child on another host was asked for by -> what is known of it
    abroad: dict[str, Abroad] = {}
    #: node -> how the child it waits for waits itself
    mirrored: dict[str, str] = {}
    #: node -> its open question; node -> who answered its last one
    interrupts: dict[str, waiting.Interrupt] = {}
    answered: dict[str, waiting.Answered] = {}
    #: node -> its conversation, open or closed
    conversations: dict[str, waiting.Conversation] = {}
    #: standing agents it names; the one it is the work of; where its delivery stands, by which id
    members: dict[str, initiation.Member] = {}
    member: initiation.Member | None = None
    delivery: tuple[int, str] | None = None
    #: what came in and began it: the world's word, for its nodes to read
    trigger: dict[str, Any] | None = None
    pause: Pause | None = None
    paused_at: int = 0
    active_ms: int = 0
    active_since: int = 0

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def replayed(self) -> bool:
        """Whether it only says again what another run was told: nothing may be done for it."""
        return self.forked_from is not None and self.forked_from.get("mode") == "replay"

    @property
    def inherited(self) -> int:
        """How many of its events are another run's, said again. Those of a replay all are."""
        if self.replayed:
            return EVERYTHING
        mark = self.forked_from or {}
        given = mark.get("given", mark.get("fromSeq"))
        return max(given, 1) if isinstance(given, int) else 0

    @property
    def going(self) -> bool:
        return self.status in GOING

    def may(self, scope: str) -> bool:
        return self.rights is None or scope in self.rights

    def suspend(self, node_id: str) -> None:
        node = self.nodes.get(node_id)
        if node is not None:
            node.status = NodeStatus.SUSPENDED
            node.due = self.interrupts[node_id].due if node_id in self.interrupts else None

    def unsuspend(self, node_id: str) -> None:
        node = self.nodes.get(node_id)
        if node is not None and node.status is NodeStatus.SUSPENDED:
            node.status = NodeStatus.RUNNING
            node.due = None


def fold(run_id: str, events: Iterable[Event]) -> Run:
    """What is so, given the log."""
    run = Run(run_id)
    for event in events:
        apply(run, event)
    return run


def apply(run: Run, event: Event, at: int | None = None, strict: bool = False) -> None:
    """One more event. An unknown type only moves the position. Who knows the event's time in ms
    may say it; it is the one its timestamp tells. ``strict`` is for logs that others wrote."""
    if at is None:
        at = millis(event.timestamp)
    transition = TRANSITIONS.get(event.type)
    if transition is not None:
        run.status = transition[1]
    handler = HANDLERS.get(event.type)
    if handler is not None:
        try:
            handler(run, event, at)
            if event.hints is not UNSET:
                run.spent += event.hints.get("runs", 0)
        except (AttributeError, KeyError, TypeError, ValueError):
            if strict:
                raise  # else a payload of no known form says nothing
        if run.interrupts or run.mirrored or run.status in WAITING:
            _restate(run, at)
    run.next_sequence = event.sequence + 1
    run.updated_at = at


def _standing(run: Run) -> Status:
    """A run that goes on waits when every node that holds it open waits."""
    if len(run.active) <= len(run.interrupts) + len(run.mirrored):
        for asked in run.interrupts.values():
            return WAITS.get(asked.kind, Status.WAITING_INPUT)
        for status in run.mirrored.values():
            return Status(status)
    return Status.RUNNING


def _restate(run: Run, at: int) -> None:
    """Waiting time is not active time."""
    if run.status not in GOING:
        return
    status = _standing(run)
    if status is Status.RUNNING and run.status is not Status.RUNNING:
        run.active_since = at
    elif status is not Status.RUNNING and run.status is Status.RUNNING:
        run.active_ms += max(0, at - run.active_since)
    run.status = status


def _dead_lettered(run: Run, event: Event, _: int) -> None:
    run.dead_after = event.payload.get("attempts", 0)


def _ended(run: Run, event: Event, at: int) -> None:
    run.ended_at = at
    run.outputs = event.payload.get("outputs", run.outputs)
    run.error = event.payload.get("error", run.error)
    run.with_parent = "parentRunId" in event.payload
    remote_children.ended(run, at)
    run.pause = None
    run.spent += supervisor.lent(run)  # who lives on is not counted any more
    run.active = {}
    run.interrupts = {}
    run.mirrored = {}
    for conversation in run.conversations.values():
        conversation.open = False


def _paused(run: Run, event: Event, at: int) -> None:
    if _standing(run) is Status.RUNNING:  # a pause may have drained while the rest waits
        run.active_ms += max(0, at - run.active_since)
    run.paused_at = at
    run.pause = None
    for node_id in run.active:
        node = run.nodes[node_id]
        alone = node.child is None and node.held is None and not node.living and not node.ends
        if node.status is NodeStatus.RUNNING and alone:
            node.status = NodeStatus.INTERRUPTED
            node.due = None


def _resumed(run: Run, event: Event, at: int) -> None:
    for node_id in run.active:
        if node_id not in run.interrupts:  # whose time counts when it is answered
            run.nodes[node_id].paused_ms += max(0, at - run.paused_at)
    run.active_since = at
    run.paused_at = 0


def _pause_requested(run: Run, event: Event, at: int) -> None:
    said = event.payload
    run.pause = Pause(at, said.get("drainPolicy", "drain-current-node"), said.get("reason"))


def _node_started(run: Run, event: Event, at: int) -> None:
    said = event.payload
    node_id = _node_id(event)
    due = lineage.due_of(event)
    hints = event.hints if event.hints is not UNSET else {}
    before = run.nodes.get(node_id) if "again" not in hints else None
    run.nodes[node_id] = NodeState(
        status=NodeStatus.RUNNING,
        attempt=said.get("attempt", 1),
        started_at=at,
        started_seq=event.sequence,
        due=millis(due) if due else None,
        failures=before.failures if before is not None else 0,
    )
    run.active[node_id] = None
    run.executions += 1
    agents.took_over(run, said.get("agent"))
    for name in hints.get("again", ()):  # the nodes of a loop that goes round once more
        found = run.nodes.pop(name, None)
        if found is not None:
            run.attempts[name] = found.attempt
    if "again" in hints:
        run.attempts[node_id] = said.get("attempt", 1) - 1
    turned(run, hints)


def _node_ended(run: Run, event: Event, at: int) -> None:
    said = event.payload
    node_id = _node_id(event)
    node = run.nodes.setdefault(node_id, NodeState(status=NodeStatus.RUNNING))
    node.status = NODE_ENDS[event.type]
    node.ended_seq = event.sequence
    node.due = None
    node.outputs = said.get("outputs", node.outputs)
    node.error = said.get("error")
    node.reason = said.get("reason")
    node.results = node.held = None
    hints = event.hints if event.hints is not UNSET else {}
    run.spent += remote_children.kept(run, node, hints)
    node.living, node.ends, node.waits, node.answer = {}, {}, {}, []
    node.said, node.calls, node.rulings = {}, {}, {}
    if run.orchestrator is not None:
        supervisor.answered(run.orchestrator, hints)
    run.interrupts.pop(node_id, None)
    run.mirrored.pop(node_id, None)
    if node.child is not None and run.children.get(node.child) is None:
        status = hints.get("childStatus", (node.outputs or {}).get("childStatus"))
        remote_children.given_back(run, event, node.child, status, at)
    run.active.pop(node_id, None)


def _node_retried(run: Run, event: Event, at: int) -> None:
    node = run.nodes.get(_node_id(event))
    if node is not None:
        node.status = NodeStatus.RETRYING
        node.failures += 1
        node.due = at + event.payload.get("delayMs", 0)
        node.error = event.payload.get("lastError")
        run.spent += remote_children.kept(
            run, node, event.hints if event.hints is not UNSET else {}
        )
        if node.child is not None and event.hints is not UNSET:
            remote_children.given_back(run, event, node.child, event.hints.get("childStatus"), at)
        node.child = None
        run.mirrored.pop(_node_id(event), None)


def _dispatched(run: Run, event: Event, at: int) -> None:
    """With what it was lent or asked for by, or without a status, a child began; else it waits,
    runs again, or has ended."""
    child = event.payload.get("childRunId", "")
    hints = event.hints if event.hints is not UNSET else {}
    began = "tree" in hints or "askId" in hints
    status = None if began else event.payload.get("childStatus")
    node = run.nodes.get(_node_id(event))
    if status in GOING:
        supervisor.child_waits(run, _node_id(event), child, str(status))
        return
    run.mirrored.pop(_node_id(event), None)
    if "askId" in hints:
        remote_children.found(run, node, event, hints["askId"])
        return
    remote_children.given_back(run, event, child, status, at)
    run.children[child] = status
    if node is None:
        return
    if status is None:
        if "worker" in hints:
            node.living[child] = hints["worker"]
        else:
            node.child, node.lent = child, {}
        if "tree" in hints:
            node.lent[child] = hints["tree"]
        node.children += 1
    else:
        node.child = None
        node.results = [*(node.results or []), hints.get("result")]


def _node_id(event: Event) -> str:
    return event.node_id if event.node_id is not UNSET else event.payload.get("nodeId", "")


HANDLERS: dict[str, Callable[[Run, Event, int], None]] = {
    "run.started": run_started.started,
    "run.completed": _ended,
    "run.failed": _ended,
    "run.cancelled": _ended,
    "run.dead_lettered": _dead_lettered,
    "run.paused": _paused,
    "run.resumed": _resumed,
    "moot.pause.requested": _pause_requested,
    "node.started": _node_started,
    "node.retried": _node_retried,
    "node.dispatched": _dispatched,
    **dict.fromkeys(NODE_ENDS, _node_ended),
    **values.HANDLERS,
    **waiting.HANDLERS,
    **supervisor.HANDLERS,
    **lineage.HANDLERS,
    **agents.HANDLERS,
    **remote_children.HANDLERS,
    **CHARGING,
    **SEATING,
    **initiation.HANDLERS,
}
