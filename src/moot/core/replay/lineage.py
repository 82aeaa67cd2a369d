"""Build a branch from its source: the start, the children and the due times.

A branch repeats the source's events before the fork unchanged. Its own events begin there.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from moot.core.events import Event, NewEvent, event_id, iso, payload_fields, with_fields
from moot.core.ids import derived_id
from moot.core.payloads.comparison import PLACE_FIELDS
from moot.core.payloads.runs import RunFork
from moot.core.payloads.supervisors import ChildForked, SupervisorDecided
from moot.core.state import memory, remote_children
from moot.core.state.status import NodeStatus

if TYPE_CHECKING:
    from moot.core.state.run import Run


#: edits that are events; the others change the start of the run
EVENT_EDITS = frozenset({"variables", "turn", "decision", "answer"})


def branch_start(
    event: Event, fork: RunFork, changes: Mapping[str, object], parent: "Run | None"
) -> Event:
    """Return the source's start as the start of its branch.

    A branch that is forked together with its parent is a child of that fork; others have no parent.
    """
    fields = payload_fields(event)
    payload = {key: value for key, value in fields.items() if key not in PLACE_FIELDS}
    copied = max(fork.from_seq or 0, 1) if fork.given is None else fork.given
    payload |= memory.memory_of_fork(event, copied)
    cause = event.causation_id
    if parent is None:
        cause = UNSET
    else:
        payload["parentRunId"] = parent.run_id
        payload["parentNodeId"] = fields.get("parentNodeId")
        if "memory" in payload:
            ancestors = [*memory.ancestor_runs(parent), parent.run_id]
            payload["memory"] = {**payload["memory"], "ancestors": ancestors}
        place = cause.rpartition(".")[2] if cause is not UNSET else ""
        cause = event_id(parent.run_id, int(place)) if place.isdigit() else UNSET
    start = with_fields(event, {**payload, **changes, "forkedFrom": fork})
    return replace(start, causation_id=cause)


def is_edited(run: "Run", event: Event) -> bool:
    """Return whether the event is an edit of this fork, or of a fork that it comes from."""
    if event.sequence < run.inherited:
        is_decision = isinstance(event.payload, SupervisorDecided)
        return is_decision and event.known_hints.edited_by is not None
    edit = run.forked_from.edit if run.forked_from is not None else None
    kinds = edit.kinds if edit is not None else []
    return event.sequence == run.inherited and not EVENT_EDITS.isdisjoint(kinds)


def living_children(run: "Run") -> list[tuple[str, str]]:
    """Return (node, child run) of each local child that the run waits for."""
    if run.terminal:
        return []
    away = remote_children.remote_names(run)
    return [
        (node_id, child)
        for node_id in run.active
        for child in (run.nodes[node_id].child, *run.nodes[node_id].living)
        if child is not None and child not in away and run.children.get(child) is None
    ]


def complete_cut(log: list[Event], cut: int) -> int:
    """Move the cut to the end of the decision it falls into, so that no decision is split."""
    until = log[cut - 1].timestamp
    while cut < len(log) and log[cut].timestamp == until:
        cut += 1
    return cut


def child_cut(child: list[Event], until: str) -> int:
    """Return how many events of a child's log existed at a time; at least its start."""
    return max(1, bisect_right(child, until, key=lambda event: event.timestamp))


def forked_child_id(branch: str, child: str) -> str:
    return derived_id("run_", branch, "fork", child)


def child_forked_event(node_id: str, child: str, fork: str, copied: dict[str, int]) -> NewEvent:
    """Return the event. ``copied`` maps the child and its descendants to their copied events."""
    payload = ChildForked(node_id=node_id, child_run_id=child, fork_run_id=fork)
    return NewEvent(payload, node_id, hints={"given": copied})


def postponed_due_times(run: "Run", by_ms: int) -> dict[int, str]:
    """Return the new due time of each wait, by the sequence of the event that began it.

    The time between the source and its branch does not count.
    """
    due_times = {}
    for node_id in run.active:
        state, interrupt = run.nodes[node_id], run.interrupts.get(node_id)
        if interrupt is not None and interrupt.due is not None:
            due_times[interrupt.seq + 1] = iso((interrupt.due + by_ms) * 1000)
        elif state.status is NodeStatus.RUNNING and state.due is not None:
            due_times[state.started_seq] = iso((state.due + by_ms) * 1000)
    return due_times
