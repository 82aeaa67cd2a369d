"""The statuses of runs and nodes, and which events lead from one to the next."""

from enum import StrEnum


class Status(StrEnum):
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
#: alive and not paused: running, or running and waiting for somebody
GOING = frozenset(
    {Status.RUNNING, Status.WAITING_APPROVAL, Status.WAITING_INPUT, Status.WAITING_EXTERNAL}
)

#: going, but for somebody's answer
WAITING = GOING - {Status.RUNNING}

#: kind of interrupt -> the status of a run that does nothing but wait for it
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
    "run.started": (frozenset({Status.PENDING}), Status.RUNNING),
    "run.paused": (GOING, Status.PAUSED),
    "run.resumed": (frozenset({Status.PAUSED}), Status.RUNNING),
    "run.completed": (frozenset({Status.RUNNING}), Status.COMPLETED),
    "run.failed": (LIVE, Status.FAILED),
    "run.cancelled": (LIVE, Status.CANCELLED),
}


class NodeStatus(StrEnum):
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
