"""Statuses of runs and nodes, and the events that lead from one to the next."""

from enum import StrEnum

from moot.core.payloads.runs import (
    PauseBegan,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunStarted,
)


class Status(StrEnum):
    """The status of a run."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    WAITING_APPROVAL = "waiting-approval"
    WAITING_INPUT = "waiting-input"
    WAITING_EXTERNAL = "waiting-external"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
LIVE = frozenset(Status) - TERMINAL
#: live and not paused: running, or waiting for an answer
GOING = frozenset(
    {Status.RUNNING, Status.WAITING_APPROVAL, Status.WAITING_INPUT, Status.WAITING_EXTERNAL}
)

#: waiting for an answer
WAITING = GOING - {Status.RUNNING}

#: kind of interrupt -> the status of a run that only waits for it
WAITS: dict[str, Status] = {
    "approval": Status.WAITING_APPROVAL,
    "low-confidence": Status.WAITING_APPROVAL,
    "conversation.start": Status.WAITING_APPROVAL,
    "conversation.exchange": Status.WAITING_APPROVAL,
    "conversation.close": Status.WAITING_APPROVAL,
    "clarification": Status.WAITING_INPUT,
    "custom": Status.WAITING_INPUT,
    "external-event": Status.WAITING_EXTERNAL,
}

#: event type -> (statuses it may be recorded in, status afterwards)
TRANSITIONS: dict[str, tuple[frozenset[Status], Status]] = {
    RunStarted.event_type: (frozenset({Status.PENDING}), Status.RUNNING),
    PauseBegan.event_type: (GOING, Status.PAUSED),
    RunResumed.event_type: (frozenset({Status.PAUSED}), Status.RUNNING),
    RunCompleted.event_type: (frozenset({Status.RUNNING}), Status.COMPLETED),
    RunFailed.event_type: (LIVE, Status.FAILED),
    RunCancelled.event_type: (LIVE, Status.CANCELLED),
}


class NodeStatus(StrEnum):
    """The status of a node's current attempt."""

    RUNNING = "running"
    RETRYING = "retrying"
    INTERRUPTED = "interrupted"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


NODE_TERMINAL = frozenset(
    {NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.SKIPPED, NodeStatus.CANCELLED}
)
