"""What the log tells of children: that they wait, how they ended, what other hosts said of them.

Each is taken as the command it must have been, and decided once more.
"""

from typing import Any

from msgspec import UNSET

from moot.core.children import attestation
from moot.core.children.decide import ChildWaits, next_child
from moot.core.commands import decide
from moot.core.events import Event, NewEvent
from moot.core.runs.advance import failed
from moot.core.runs.child_outputs import ChildEnded
from moot.core.runs.child_outputs import Seen as Child
from moot.core.runs.readiness import PortProblem
from moot.core.state import remote_children
from moot.core.state.node import NodeState
from moot.core.supervisors.decide import WorkerRefused
from moot.core.supervisors.peer_answers import PeerFound, PeerRefused, PeerStopped
from moot.core.verify import nodes
from moot.core.verify.nodes import Impossible, Seen

STEP = "core.workflowChain.event"
ENDS = ("completed", "failed", "cancelled")
FAILURES = ("node.failed", "node.retried")


def child(seen: Seen, state: NodeState) -> list[NewEvent]:
    event, said, hints = seen.event, seen.event.payload, seen.hints or {}
    status = said.get("childStatus")
    if event.type == "node.dispatched" and "askId" in hints:
        found = PeerFound(
            ask_id=hints["askId"], child_run=said["childRunId"], host_id=hints["hostId"], at=seen.at
        )
        return decide(seen.run, seen.flow, found)
    going = status is not None and status not in ENDS and "tree" not in hints
    if event.type == "node.dispatched" and going:
        waits = ChildWaits(
            node_id=seen.its.id,
            child_run=said["childRunId"],
            workflow_id=said["childWorkflowId"],
            status=str(status),
        )
        return decide(seen.run, seen.flow, waits)
    if "askId" in hints and hints["askId"] in seen.run.abroad:
        return _turned_down(seen, hints)
    if seen.its.type.dispatches:
        return _worker(seen, state)
    if state.child is None:
        return nodes.outcome(seen, state)
    if attestation.attests(seen.its):
        return _attested(seen, state)
    return _ended(seen, state)


def _turned_down(seen: Seen, hints: dict[str, Any]) -> list[NewEvent]:
    """Another host began no child, or nobody knows whether it did."""
    said = seen.event.payload
    refused = PeerRefused(
        ask_id=hints["askId"],
        error=nodes.error_of(said.get("lastError", said.get("error"))),
        unsure="unsure" in hints,
        at=seen.at,
        seen=lost(seen),
    )
    return decide(seen.run, seen.flow, refused)


def stopped(seen: Seen) -> list[NewEvent]:
    """A child on another host was told that it is not wanted."""
    said = seen.event.payload
    if seen.run.replayed:
        return [seen.as_told()]  # the child was another run's: a replay has none to stop
    return decide(seen.run, seen.flow, PeerStopped(ask_id=said["askId"], outcome=said["outcome"]))


def lost(seen: Seen) -> dict[str, Child]:
    """What is told of children that are given up."""
    found: dict[str, Child] = {}
    for event in seen.rest:
        hints = event.hints if event.hints is not UNSET else {}
        if "childRunId" in hints and "runs" in hints:
            phase = event.payload.get("phase", "child.cancelled").removeprefix("child.")
            name = hints["childRunId"]
            found.setdefault(name, Child(phase, _runs(seen, name, hints)))
    return found


def _runs(seen: Seen, name: str, hints: dict[str, Any]) -> int:
    """How many runs a child has led to: itself, and no more than it was lent."""
    runs = hints.get("runs")
    if not isinstance(runs, int) or runs < 1:
        raise Impossible("hints", "how many runs the child has led to", hints)
    for state in seen.run.nodes.values():
        if runs > state.lent.get(name, runs):
            raise Impossible("hints", {"runs": f"at most {state.lent[name]}"}, {"runs": runs})
    return runs


def _over(seen: Seen, name: str, status: str, hints: dict[str, Any], **more: Any) -> ChildEnded:
    """The end of a child. One elsewhere may be named as the cause, or may still be there."""
    away = remote_children.entry_of(seen.run, name) is not None
    host = seen.event.payload.get("causationHostId")
    cause = seen.event.causation_id
    return ChildEnded(
        node_id=seen.its.id,
        child_run=name,
        status=status,
        at=seen.at,
        runs=_runs(seen, name, hints),
        seen=lost(seen),
        cause=str(cause) if away and host is not None else None,
        cause_host=str(host or ""),
        stop=away and hints.get("childRunId") == name,
        **more,
    )


def _ended(seen: Seen, state: NodeState) -> list[NewEvent]:
    """The child of a node that waits for one; what it gave back is a fact."""
    node, name = seen.its, str(state.child)
    last = next(e for e in seen.rest if e.type != "variable.changed" or e.node_id != node.id)
    hints = {} if last.hints is UNSET else last.hints
    status = hints.get("childStatus") or last.payload.get("childStatus")
    if status not in ENDS or (
        "childRunId" in hints and remote_children.entry_of(seen.run, name) is None
    ):
        return nodes.outcome(seen, state)  # it failed for a reason of its own
    given = {e.payload["name"]: e.payload.get("next") for e in seen.log[seen.first : last.sequence]}
    collect = _collect(seen, state)
    outputs = last.payload.get("outputs", {})
    ended = _over(
        seen, name, status, hints,
        variables={collect[mine]: value for mine, value in given.items() if mine in collect},
        outputs=hints.get("result", outputs.get("childOutputs", {})),
        error=_error(last),
    )  # fmt: skip
    found = decide(seen.run, seen.flow, ended)
    if not seen.fits(found) and last.type in FAILURES:
        return nodes.outcome(seen, state)
    return found


def _collect(seen: Seen, state: NodeState) -> dict[str, str]:
    try:
        spec = next_child(seen.run, seen.its, seen.at, {}, state.children - 1)
    except PortProblem:
        return {}
    return spec.collect if spec is not None else {}


def _error(event: Event) -> dict[str, Any] | None:
    """What the child had failed with, where its parent tells of it."""
    error = event.payload.get("error") or event.payload.get("lastError") or {}
    found: dict[str, Any] | None = error.get("details", {}).get("childError")
    return found


def _attested(seen: Seen, state: NodeState) -> list[NewEvent]:
    """The end of a child whose outputs are attested, and what was made of them."""
    event, hints, name = seen.event, seen.hints or {}, str(state.child)
    phase = event.payload.get("phase", "")
    if event.type != STEP or not phase.startswith("child."):
        return nodes.outcome(seen, state)
    after = next((e for e in seen.rest[1:] if e.type != "variable.changed"), event)
    harvest = _harvest(seen, hints)
    error = _error(after) if after.type in FAILURES else event.payload.get("error")
    ended = _over(
        seen, name, phase.removeprefix("child."), hints,
        variables=harvest, outputs=harvest, error=error,
    )  # fmt: skip
    found = decide(seen.run, seen.flow, ended)
    if not seen.fits(found) and after.type == "node.failed":  # what cannot be merged is not kept
        return [found[0], failed(seen.its, nodes.error_of(after.payload["error"]), state.attempt)]
    return found


def _harvest(seen: Seen, hints: dict[str, Any]) -> dict[str, Any]:
    if "held" in hints:
        return dict(hints["held"]["harvest"])
    done = next((e for e in seen.rest if e.type == "node.completed"), None)
    outputs = done.payload.get("outputs", {}) if done is not None else {}
    return dict(outputs.get("childOutputs", {}))


def _worker(seen: Seen, state: NodeState) -> list[NewEvent]:
    event, said = seen.event, seen.event.payload
    phase = said.get("phase", "")
    if event.type == STEP and phase == "dispatch.began":
        end = next(e for e in seen.rest if e.type == "node.failed")
        error = nodes.error_of(end.payload["error"])
        refused = WorkerRefused(seen.its.id, said["workerId"], error, seen.at, lost(seen))
        return decide(seen.run, seen.flow, refused)
    if event.type != STEP or not phase.startswith("child."):
        return nodes.outcome(seen, state)
    hints = seen.hints or {}
    result = hints["result"]
    config, worker = seen.its.definition.config, said["workerId"]
    wanted = config.get("perWorkerOutputMappings", {}).get(worker, config.get("outputMapping", {}))
    ended = _over(
        seen, said["childRunId"], phase.removeprefix("child."), hints,
        variables={wanted[mine]: value for mine, value in (result.get("harvest") or {}).items()},
        error=result.get("error"),
    )  # fmt: skip
    return decide(seen.run, seen.flow, ended)
