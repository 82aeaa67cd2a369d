"""Decide when parallel workers are joined, and with which outcome."""

from typing import Any

from msgspec import Struct

from moot.core.payloads.base import RecordedError
from moot.core.state.supervisor import Orchestrator


class WorkerJoin(Struct, frozen=True, kw_only=True):
    """The rule for joining the parallel workers of a dispatch node."""

    mode: str = "wait-all"
    quorum: int = 0
    on_failure: str = "collect"


class EndedWorker(Struct, frozen=True):
    """A worker that has ended, in the order in which the parent saw it."""

    child: str
    worker: str
    status: str
    error: RecordedError | None = None
    #: the parent's variable -> value; None when no outputs are mapped
    harvest: dict[str, object] | None = None
    #: the join no longer needed it: it was cancelled, or ended just before that
    lost: bool = False
    #: the size of its run tree, itself included
    runs: int = 1


def is_join_settled(join: WorkerJoin, ended: list[EndedWorker], planned: int) -> bool:
    """Return whether no further worker can change the outcome."""
    completed = sum(each.status == "completed" and not each.lost for each in ended)
    failures = sum(each.status != "completed" and not each.lost for each in ended)
    if join.on_failure == "fail-fast" and failures:
        return True
    match join.mode:
        case "quorum":
            return completed >= join.quorum or planned - failures < join.quorum
        case "first":
            return completed >= 1 or failures == planned
        case "race":
            return bool(ended)
        case _:
            return len(ended) >= planned


def join_outcome(join: WorkerJoin, ended: list[EndedWorker], planned: int) -> str:
    """Return ``satisfied``, ``partial`` or ``failed``.

    A worker that the join itself cancelled does not count as a failure.
    """
    completed = sum(each.status == "completed" and not each.lost for each in ended)
    failures = sum(each.status != "completed" and not each.lost for each in ended)
    if join.on_failure == "fail-fast" and failures:
        return "failed"
    reached = {
        "wait-all": len(ended) >= planned,
        "quorum": completed >= join.quorum,
        "first": completed >= 1,
        "race": bool(ended),
    }[join.mode]
    if not reached and join.on_failure != "absorb":
        return "failed"
    return "partial" if failures else "satisfied"


def join_policy(config: dict[str, Any], workers: list[str]) -> WorkerJoin | None:
    """Return the join policy, or None when the workers run one after the other."""
    if config.get("fanOutPolicy") != "parallel" or len(workers) < 2:
        return None
    policy = config.get("joinPolicy", {})
    return WorkerJoin(
        mode=policy.get("mode", "wait-all"),
        quorum=policy.get("quorum", 0),
        on_failure=policy.get("onChildFailure", "collect"),
    )


def can_dispatch_more(
    order: Orchestrator | None, config: dict[str, Any], started: int, living: int
) -> bool:
    """Return whether a dispatch node can take its next step now."""
    if order is None or order.decision.get("kind") != "next-worker":
        return True
    workers = order.decision["nextWorkerIds"]
    if join_policy(config, workers) is None:
        return not living
    return started < len(workers) and living < (config.get("maxConcurrency") or len(workers))
