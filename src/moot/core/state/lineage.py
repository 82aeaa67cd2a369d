"""What a branch has from the run it was forked from: the beginning, the children, the waits.

A branch says the source's events before a sequence again, word for word. Its own life begins
there.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from moot.core.events import Event, NewEvent, event_id, iso
from moot.core.ids import derived_id
from moot.core.state import memory, remote_children
from moot.core.state.status import NodeStatus

if TYPE_CHECKING:
    from moot.core.state.run import Run

#: what a run is to other runs: a fork has a place of its own, or none
PLACE = ("parentRunId", "parentNodeId", "scopeId", "origin", "causationHostId")

CHILD_FORKED = "moot.child.forked"

#: edits that are events of their own; the others change how the run began
SAID = frozenset({"variables", "turn", "decision", "answer"})


def started(
    event: Event, fork: dict[str, Any], changes: dict[str, Any], parent: "Run | None"
) -> Event:
    """The beginning of the source as that of its branch, which remembers what the source did.
    Forked with its parent it is that one's child, else nobody's."""
    said = {key: value for key, value in event.payload.items() if key not in PLACE}
    said |= memory.forked(event, fork.get("given", max(fork["fromSeq"], 1)))
    cause = event.causation_id
    if parent is None:
        cause = UNSET
    else:
        said["parentRunId"] = parent.run_id
        said["parentNodeId"] = event.payload.get("parentNodeId")
        if "memory" in said:
            line = [*memory.ancestors_of(parent), parent.run_id]
            said["memory"] = {**said["memory"], "ancestors": line}
        place = cause.rpartition(".")[2] if cause is not UNSET else ""
        cause = event_id(parent.run_id, int(place)) if place.isdigit() else UNSET
    return replace(event, payload={**said, **changes, "forkedFrom": fork}, causation_id=cause)


def edited(run: "Run", event: Event) -> bool:
    """Whether whoever forked the run has said what stands there, or somebody who forked a run
    that it comes from."""
    if event.sequence < run.inherited:
        hints = event.hints if event.hints is not UNSET else {}
        return event.type == "runOrchestrator.decided" and "editedBy" in hints
    edit = (run.forked_from or {}).get("edit", {})
    return event.sequence == run.inherited and bool(SAID.intersection(edit.get("kinds", [])))


def living(run: "Run") -> list[tuple[str, str]]:
    """(node, child run) of every child here that is waited for."""
    if run.terminal:
        return []
    away = remote_children.names(run)
    return [
        (node_id, child)
        for node_id in run.active
        for child in (run.nodes[node_id].child, *run.nodes[node_id].living)
        if child is not None and child not in away and run.children.get(child) is None
    ]


def whole_cut(log: list[Event], cut: int) -> int:
    """The cut after the decision it falls into: what one decision caused is not torn apart."""
    until = log[cut - 1].timestamp
    while cut < len(log) and log[cut].timestamp == until:
        cut += 1
    return cut


def child_cut(child: list[Event], until: str) -> int:
    """How much of a child's log was there at a time; it had begun at least."""
    return max(1, bisect_right(child, until, key=lambda event: event.timestamp))


def child_id(branch: str, child: str) -> str:
    return derived_id("run_", branch, "fork", child)


def child_forked(node_id: str, child: str, fork: str, given: dict[str, int]) -> NewEvent:
    """``given`` says how many events of the child, and of those it had begun, were said again."""
    payload = {"nodeId": node_id, "childRunId": child, "forkRunId": fork}
    return NewEvent(CHILD_FORKED, payload, node_id, hints={"given": given})


def put_off(run: "Run", by_ms: int) -> dict[int, str]:
    """Time stands still between the source and its branch: sequence of the event that began a
    wait -> when that falls due now."""
    found = {}
    for node_id in run.active:
        state, asked = run.nodes[node_id], run.interrupts.get(node_id)
        if asked is not None and asked.due is not None:
            found[asked.seq + 1] = iso((asked.due + by_ms) * 1000)
        elif state.status is NodeStatus.RUNNING and state.due is not None:
            found[state.started_seq] = iso((state.due + by_ms) * 1000)
    return found


def due_of(event: Event) -> str | None:
    """When what began with this event falls due."""
    hints = event.hints if event.hints is not UNSET else {}
    due: str | None = hints.get("dueAt", event.payload.get("dueAt"))
    return due


def _child_forked(run: "Run", event: Event, at: int) -> None:
    """From here on the branch's own child is meant."""
    old, new = event.payload["childRunId"], event.payload["forkRunId"]
    run.children = remote_children.renamed(run.children, old, new)
    hints = event.hints if event.hints is not UNSET else {}
    memory.child_forked(run, old, new, hints.get("given", {}))
    if run.orchestrator is not None:
        run.orchestrator.links = remote_children.renamed(run.orchestrator.links, old, new)
    node = run.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is not None:
        remote_children.goes_by(node, old, new)


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {CHILD_FORKED: _child_forked}
