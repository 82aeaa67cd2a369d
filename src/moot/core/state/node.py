"""The state of one node of a run, and of a pause."""

from typing import Any

from msgspec import Struct

from moot.core.state.status import NodeStatus

NODE_ENDS = {
    "node.completed": NodeStatus.COMPLETED,
    "node.failed": NodeStatus.FAILED,
    "node.skipped": NodeStatus.SKIPPED,
    "node.cancelled": NodeStatus.CANCELLED,
}


class NodeState(Struct, omit_defaults=True):
    status: NodeStatus
    attempt: int = 0
    started_at: int = 0
    started_seq: int = 0
    ended_seq: int = -1
    due: int | None = None
    outputs: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    reason: str | None = None
    #: the child run this attempt waits for, and how many it has started
    child: str | None = None
    children: int = 0
    results: list[Any] | None = None
    #: of an attested child: the newest event of its handoff, and what it gave, until a person
    #: has looked at it
    link: int = 0
    held: dict[str, Any] | None = None
    #: child -> how many runs it may lead to
    lent: dict[str, int] = {}
    #: what the last question of this attempt was answered with
    answer: list[Any] = []
    #: of a dispatch node: living child -> number of its worker; child -> where its end stands
    living: dict[str, int] = {}
    ends: dict[str, int] = {}
    #: those of the living that wait for somebody, and how
    waits: dict[str, str] = {}
    #: attempts that failed and were tried again; one that a pause cut short is none of them
    failures: int = 0
    #: how long this attempt was none of the node's work: the run was paused, or somebody was asked
    paused_ms: int = 0
    #: type of event -> how often the agent of this attempt has said it (deltas: in the open block)
    said: dict[str, int] = {}
    #: tool call that has not come back -> where it stands
    calls: dict[str, int] = {}
    #: decision of this attempt -> what a person has made of it
    rulings: dict[str, Any] = {}


class Pause(Struct, omit_defaults=True):
    requested_at: int
    policy: str
    reason: str | None = None
