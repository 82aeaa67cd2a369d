"""What a run has done, read from its events: handoffs, turns, questions."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from moot.client.http.sse import Event

#: phase of a handoff -> the state it leads to
STATES = {
    "dispatch.began": "dispatching",
    "dispatch.succeeded": "running",
    "dispatch.failed": "failed",
    "child.completed": "completed",
    "child.failed": "failed",
    "child.cancelled": "cancelled",
    "output.harvested": "harvested",
}
TURNS = {
    "conversation.opened": "initialTurn",
    "conversation.exchanged": "turn",
    "conversation.closed": "finalTurn",
}


class Handoff(Struct, kw_only=True):
    """Work handed to a worker, from the decision to its end."""

    worker: str
    states: list[str]
    child: str | None = None
    error: dict[str, Any] | None = None
    #: the keys that were taken over from its outputs
    harvested: list[str] = []

    @property
    def state(self) -> str:
        return self.states[-1]


class Said(Struct, frozen=True, kw_only=True):
    """A turn of a conversation."""

    by: str
    content: Any
    to: str | None = None
    role: str = ""
    index: int = 0


def handoffs(events: Sequence[Event]) -> list[Handoff]:
    """In the order in which they were decided."""
    found: list[Handoff] = []
    for event in events:
        if event.type == "runOrchestrator.decided":
            found += [Handoff(worker=name, states=["pending"]) for name in _workers(event.payload)]
        elif event.type == "core.workflowChain.event":
            _step(found, event.payload)
    return found


def _workers(payload: dict[str, Any]) -> list[str]:
    decision = payload.get("decision")
    inner = decision if isinstance(decision, dict) else payload
    return [str(name) for name in inner.get("nextWorkerIds") or []]


def _step(found: list[Handoff], payload: dict[str, Any]) -> None:
    phase, worker = str(payload.get("phase")), str(payload.get("workerId"))
    child = payload.get("childRunId")
    mine = [one for one in found if one.worker == worker]
    if phase == "dispatch.began":
        mine = [one for one in mine if one.states == ["pending"]]
    elif child is not None:
        mine = [one for one in mine if one.child == child] or [one for one in mine if not one.child]
    if not mine or phase not in STATES:
        return
    one = mine[0] if phase == "dispatch.began" else mine[-1]
    one.states.append(STATES[phase])
    one.child = str(child) if child is not None else one.child
    one.error = payload.get("error", one.error)
    one.harvested = list(payload.get("harvestedKeys", one.harvested))


def transcript(events: Sequence[Event]) -> list[Said]:
    found = []
    for event in events:
        turn = event.payload.get(TURNS.get(event.type, ""))
        if isinstance(turn, dict):
            found.append(
                Said(
                    by=short(str(turn.get("speakerId") or turn.get("from"))),
                    content=turn.get("content"),
                    to=None if turn.get("to") is None else short(str(turn["to"])),
                    role=str(turn.get("role")),
                    index=int(turn.get("turnIndex") or 0),
                )
            )
    return found


def short(name: str) -> str:
    """``ada`` for ``host:ada``; people keep their whole name."""
    return name.removeprefix("host:")
