"""When a wave of children has come together, and what that means."""

from typing import Any

from msgspec import Struct

from moot.core.state.supervisor import Orchestrator


class Join(Struct, frozen=True, kw_only=True):
    """How a wave of children comes together."""

    mode: str = "wait-all"
    quorum: int = 0
    on_failure: str = "collect"


class Ended(Struct, frozen=True):
    """A child of the wave that has ended, in the order the parent saw it."""

    child: str
    worker: str
    status: str
    error: dict[str, Any] | None = None
    #: what flows back to the parent: its variable -> value; None when nothing shall
    harvest: dict[str, Any] | None = None
    #: the join needed it no more: cancelled for that, or ended just before it could be
    lost: bool = False
    #: how many runs it has led to, itself among them
    runs: int = 1


def settled(join: Join, ended: list[Ended], planned: int) -> bool:
    """Whether nothing that is still to come can matter."""
    completed = sum(each.status == "completed" and not each.lost for each in ended)
    unwell = sum(each.status != "completed" and not each.lost for each in ended)
    if join.on_failure == "fail-fast" and unwell:
        return True
    match join.mode:
        case "quorum":
            return completed >= join.quorum or planned - unwell < join.quorum
        case "first":
            return completed >= 1 or unwell == planned
        case "race":
            return bool(ended)
        case _:
            return len(ended) >= planned


def outcome(join: Join, ended: list[Ended], planned: int) -> str:
    """``satisfied``, ``partial`` or ``failed``; who was cancelled by the join itself is a loser,
    not a failure."""
    completed = sum(each.status == "completed" and not each.lost for each in ended)
    unwell = sum(each.status != "completed" and not each.lost for each in ended)
    if join.on_failure == "fail-fast" and unwell:
        return "failed"
    reached = {
        "wait-all": len(ended) >= planned,
        "quorum": completed >= join.quorum,
        "first": completed >= 1,
        "race": bool(ended),
    }[join.mode]
    if not reached and join.on_failure != "absorb":
        return "failed"
    return "partial" if unwell else "satisfied"


def join_of(config: dict[str, Any], workers: list[str]) -> Join | None:
    """How the children come together; None when they go one after the other."""
    if config.get("fanOutPolicy") != "parallel" or len(workers) < 2:
        return None
    asked = config.get("joinPolicy", {})
    return Join(
        mode=asked.get("mode", "wait-all"),
        quorum=asked.get("quorum", 0),
        on_failure=asked.get("onChildFailure", "collect"),
    )


def goes_on(order: Orchestrator | None, config: dict[str, Any], started: int, living: int) -> bool:
    """Whether a dispatch node has a next step that waits for nobody."""
    if order is None or order.decision.get("kind") != "next-worker":
        return True
    workers = order.decision["nextWorkerIds"]
    if join_of(config, workers) is None:
        return not living
    return started < len(workers) and living < (config.get("maxConcurrency") or len(workers))
