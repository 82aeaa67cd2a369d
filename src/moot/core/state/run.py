"""The state of a run and its fold.

The fold owns its state and changes it in place: O(1) per event. It is total: it ignores events that
it does not know. The state holds counters and references, never transcripts.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET, Struct

from moot.core.catalogue import PAYLOADS
from moot.core.events import Event, check_hints, millis
from moot.core.payloads.base import OpaquePayload, Payload, RecordedError
from moot.core.payloads.conversations import ConversationExchanged
from moot.core.payloads.runs import (
    PauseBegan,
    PauseRequested,
    PeerOrigin,
    RecordedLimits,
    RunCancelled,
    RunCompleted,
    RunDeadLettered,
    RunFailed,
    RunFork,
    RunPrincipal,
    RunResumed,
    RunStarted,
)
from moot.core.state import (
    agents,
    conversation,
    initiation,
    interrupt,
    memory,
    node,
    remote_children,
    supervisor,
    usage,
    values,
)
from moot.core.state.conversation import Conversation
from moot.core.state.initiation import RunMember
from moot.core.state.interrupt import Interrupt, InterruptAnswer
from moot.core.state.memory import RunMemory
from moot.core.state.node import NodeState
from moot.core.state.remote_children import RemoteChild
from moot.core.state.status import GOING, TERMINAL, TRANSITIONS, WAITING, WAITS, NodeStatus, Status
from moot.core.state.usage import ModelUsage
from moot.core.trace import Trace, parse_trace

#: a snapshot of another version is thrown away, and the log is folded again
FOLD_VERSION = 23

#: more events than any log has
EVERYTHING = sys.maxsize


class RunPause(Struct, omit_defaults=True):
    """A pause that waits for the running nodes to finish."""

    requested_at: int
    policy: str
    reason: str | None = None


class Run(Struct):
    """The state of one run, folded from its log."""

    run_id: str
    tenant: str = ""
    next_sequence: int = 0
    status: Status = Status.PENDING
    workflow_id: str = ""
    definition: str = ""
    principal: str = ""
    #: the person in whose name the run's own question is asked
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
    error: RecordedError | None = None
    #: attempts of the node that used up all of its attempts and failed the run
    dead_after: int = 0
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    configurable: dict[str, Any] = {}
    scope_id: str | None = None
    limits: RecordedLimits = RecordedLimits()
    parent_run: str | None = None
    parent_node: str | None = None
    #: the subset of its principal's rights that the run has; None is all of them
    rights: list[str] | None = None
    depth: int = 0
    #: the run on another host that started this one, as the caller reported it
    origin: PeerOrigin | None = None
    #: the caller's place in a trace
    trace: Trace | None = None
    #: the run this one was forked from, at which sequence and how
    forked_from: RunFork | None = None
    memory: RunMemory | None = None
    orchestrator: supervisor.Orchestrator | None = None
    #: the agent that does the work now
    agent: dict[str, Any] | None = None
    #: agent@channel -> the version that serves this run
    versions: dict[str, str] = {}
    #: node of a loop -> attempts it had in earlier rounds
    attempts: dict[str, int] = {}
    #: the run was cancelled because its parent ended
    with_parent: bool = False
    #: child run -> its status when it ended, or None while it lives
    children: dict[str, str | None] = {}
    #: runs that ended children have led to, the children included
    spent: int = 0
    used: ModelUsage | None = None
    #: request id of a child on another host -> its state
    abroad: dict[str, RemoteChild] = {}
    #: node -> the waiting status of its child
    mirrored: dict[str, str] = {}
    #: node -> its open question; node -> the answer to its last question
    interrupts: dict[str, Interrupt] = {}
    answered: dict[str, InterruptAnswer] = {}
    #: node -> its conversation, open or closed
    conversations: dict[str, Conversation] = {}
    #: standing agents that the run names; the one it works for; sequence and id of its delivery
    members: dict[str, RunMember] = {}
    member: RunMember | None = None
    delivery: tuple[int, str] | None = None
    #: the inbound item that began the run; its content is untrusted
    trigger: dict[str, Any] | None = None
    pause: RunPause | None = None
    paused_at: int = 0
    active_ms: int = 0
    active_since: int = 0

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def replayed(self) -> bool:
        """A replay repeats the log of another run: the host does no work for it."""
        return self.forked_from is not None and self.forked_from.mode == "replay"

    @property
    def inherited(self) -> int:
        """The number of events copied from another run. Of a replay all are copies."""
        if self.replayed:
            return EVERYTHING
        fork = self.forked_from
        copied = None if fork is None else fork.from_seq if fork.given is None else fork.given
        return 0 if copied is None else max(copied, 1)

    @property
    def going(self) -> bool:
        return self.status in GOING

    def may(self, scope: str) -> bool:
        return self.rights is None or scope in self.rights

    def suspend(self, node_id: str) -> None:
        state = self.nodes.get(node_id)
        if state is not None:
            state.status = NodeStatus.SUSPENDED
            state.due = self.interrupts[node_id].due if node_id in self.interrupts else None

    def unsuspend(self, node_id: str) -> None:
        state = self.nodes.get(node_id)
        if state is not None and state.status is NodeStatus.SUSPENDED:
            state.status = NodeStatus.RUNNING
            state.due = None


def fold(run_id: str, events: Iterable[Event]) -> Run:
    run = Run(run_id)
    for event in events:
        apply(run, event)
    return run


def apply(run: Run, event: Event, at: int | None = None, strict: bool = False) -> None:
    """Apply one event. An event of an unknown type only moves the position.

    A caller that knows the event's time in ms can pass it as ``at``; it must be the time in the
    timestamp. ``strict`` raises on malformed payloads; it is for logs of other hosts.
    """
    if at is None:
        at = millis(event.timestamp)
    transition = TRANSITIONS.get(event.type)
    if transition is not None:
        run.status = transition[1]
    payload = event.payload
    kind: Any = type(payload)
    handler = HANDLERS.get(kind)
    if handler is not None:
        try:
            handler(run, payload, event, at)
            if event.hints is not UNSET:
                if strict:
                    check_hints(event.hints)
                run.spent += event.known_hints.runs or 0
        except (AttributeError, KeyError, TypeError, ValueError):
            if strict:
                raise  # otherwise a malformed payload has no effect
        if kind not in KEEPS_STATUS and (run.interrupts or run.mirrored or run.status in WAITING):
            _update_status(run, at)
    elif strict and isinstance(payload, OpaquePayload) and event.type in PAYLOADS:
        raise ValueError(f"The payload does not fit the type {event.type}.")
    run.next_sequence = event.sequence + 1
    run.updated_at = at


def _current_status(run: Run) -> Status:
    """Return a waiting status when every active node waits, else running."""
    if len(run.active) <= len(run.interrupts) + len(run.mirrored):
        for question in run.interrupts.values():
            return WAITS.get(question.kind, Status.WAITING_INPUT)
        for status in run.mirrored.values():
            return Status(status)
    return Status.RUNNING


def _update_status(run: Run, at: int) -> None:
    """Set the status, and stop the active time while the run waits."""
    if run.status not in GOING:
        return
    status = _current_status(run)
    if status is Status.RUNNING and run.status is not Status.RUNNING:
        run.active_since = at
    elif status is not Status.RUNNING and run.status is Status.RUNNING:
        run.active_ms += max(0, at - run.active_since)
    run.status = status


def _apply_run_started(run: Run, payload: RunStarted, event: Event, at: int) -> None:
    owner = payload.owner or RunPrincipal()
    run.tenant = run.tenant or owner.tenant
    run.principal = owner.principal
    run.person = payload.person or "user"
    run.workflow_id = payload.workflow_id
    run.definition = payload.definition
    run.engine_version = payload.engine_version
    run.started_at = run.active_since = at
    run.inputs = dict(payload.inputs)
    run.variables = dict(payload.variables)
    if payload.channels:
        run.declared = list(payload.channels)
        run.channels = {
            name: list(default) if isinstance(default, list) else default
            for name, default in payload.channels.items()
            if default is not None
        }
    run.tags = payload.tags or []
    run.metadata = payload.metadata or {}
    run.configurable = payload.configurable or {}
    run.scope_id = payload.scope_id
    run.limits = payload.limits or RecordedLimits()
    run.parent_run = payload.parent_run_id
    run.parent_node = payload.parent_node_id
    run.rights = payload.rights
    run.trigger = payload.trigger
    run.depth = payload.depth
    run.forked_from = payload.forked_from
    run.memory = None if payload.memory is None else memory.memory_from_start(run, payload.memory)
    run.versions = dict(payload.agent_versions or {})
    run.origin = payload.origin
    if payload.trace:
        run.trace = parse_trace(payload.trace.get("traceparent"), payload.trace.get("tracestate"))
    if payload.members or event.causation_id is not UNSET:
        initiation.apply_initiation(run, payload, event)


def _apply_run_dead_lettered(run: Run, payload: RunDeadLettered, event: Event, _: int) -> None:
    run.dead_after = payload.attempts


def _apply_run_ended(
    run: Run, payload: RunCompleted | RunFailed | RunCancelled, event: Event, at: int
) -> None:
    run.ended_at = at
    if isinstance(payload, RunCompleted):
        run.outputs = payload.outputs
    if isinstance(payload, RunFailed):
        run.error = payload.error
    run.with_parent = isinstance(payload, RunCancelled) and payload.parent_run_id is not None
    if run.abroad:
        remote_children.stop_remote_children(run, at)
    run.pause = None
    if run.active:
        run.spent += supervisor.count_lent_runs(run)  # children that live on count in full
        run.active = {}
    run.interrupts = {}
    run.mirrored = {}
    for each in run.conversations.values():
        each.open = False


def _apply_run_paused(run: Run, payload: PauseBegan, event: Event, at: int) -> None:
    if _current_status(run) is Status.RUNNING:  # a pause may have drained while the rest waits
        run.active_ms += max(0, at - run.active_since)
    run.paused_at = at
    run.pause = None
    for node_id in run.active:
        state = run.nodes[node_id]
        alone = state.child is None and state.held is None and not state.living and not state.ends
        if state.status is NodeStatus.RUNNING and alone:
            state.status = NodeStatus.INTERRUPTED
            state.due = None


def _apply_run_resumed(run: Run, payload: RunResumed, event: Event, at: int) -> None:
    for node_id in run.active:
        if node_id not in run.interrupts:  # the time of an open interrupt counts at its answer
            run.nodes[node_id].paused_ms += max(0, at - run.paused_at)
    run.active_since = at
    run.paused_at = 0


def _apply_pause_requested(run: Run, payload: PauseRequested, event: Event, at: int) -> None:
    run.pause = RunPause(at, payload.drain_policy, payload.reason)


HANDLERS: dict[type[Payload], Callable[[Run, Any, Event, int], None]] = {
    RunStarted: _apply_run_started,
    RunCompleted: _apply_run_ended,
    RunFailed: _apply_run_ended,
    RunCancelled: _apply_run_ended,
    RunDeadLettered: _apply_run_dead_lettered,
    PauseBegan: _apply_run_paused,
    RunResumed: _apply_run_resumed,
    PauseRequested: _apply_pause_requested,
    **node.HANDLERS,
    **values.HANDLERS,
    **interrupt.HANDLERS,
    **conversation.HANDLERS,
    **supervisor.HANDLERS,
    **agents.HANDLERS,
    **remote_children.HANDLERS,
    **usage.HANDLERS,
    **initiation.HANDLERS,
}
#: payloads that open, answer and end nothing, so that the status stays as it is
KEEPS_STATUS = frozenset({ConversationExchanged})
#: types of the events that change the state of a run
HANDLED_TYPES = frozenset(payload.event_type for payload in HANDLERS)
