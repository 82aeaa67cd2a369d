"""Read handoffs and turns from the events of a run."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from moot.client.http.frames import Event
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ConversationOpened,
)
from moot.core.payloads.supervisors import HandoffStepped, SupervisorDecided

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
    ConversationOpened.event_type: "initialTurn",
    ConversationExchanged.event_type: "turn",
    ConversationEnded.event_type: "finalTurn",
}


class Handoff(Struct, kw_only=True):
    """A handoff to a worker, from the decision to its end."""

    worker: str
    states: list[str]
    child: str | None = None
    error: dict[str, Any] | None = None
    #: keys of the worker's outputs that the run took over
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


def collect_handoffs(events: Sequence[Event]) -> list[Handoff]:
    """Return the handoffs in the order of their decisions."""
    handoffs: list[Handoff] = []
    for event in events:
        if event.type == SupervisorDecided.event_type:
            workers = _workers(event.payload)
            handoffs += [Handoff(worker=name, states=["pending"]) for name in workers]
        elif event.type == HandoffStepped.event_type:
            _apply_chain_event(handoffs, event.payload)
    return handoffs


def _workers(payload: dict[str, Any]) -> list[str]:
    decision = payload.get("decision")
    inner = decision if isinstance(decision, dict) else payload
    return [str(name) for name in inner.get("nextWorkerIds") or []]


def _apply_chain_event(handoffs: list[Handoff], payload: dict[str, Any]) -> None:
    phase, worker = str(payload.get("phase")), str(payload.get("workerId"))
    child = payload.get("childRunId")
    matches = [one for one in handoffs if one.worker == worker]
    if phase == "dispatch.began":
        matches = [one for one in matches if one.states == ["pending"]]
    elif child is not None:
        of_child = [one for one in matches if one.child == child]
        matches = of_child or [one for one in matches if not one.child]
    if not matches or phase not in STATES:
        return
    handoff = matches[0] if phase == "dispatch.began" else matches[-1]
    handoff.states.append(STATES[phase])
    handoff.child = str(child) if child is not None else handoff.child
    handoff.error = payload.get("error", handoff.error)
    handoff.harvested = list(payload.get("harvestedKeys", handoff.harvested))


def collect_turns(events: Sequence[Event]) -> list[Said]:
    turns = []
    for event in events:
        turn = event.payload.get(TURNS.get(event.type, ""))
        if isinstance(turn, dict):
            turns.append(
                Said(
                    by=short_name(str(turn.get("speakerId") or turn.get("from"))),
                    content=turn.get("content"),
                    to=None if turn.get("to") is None else short_name(str(turn["to"])),
                    role=str(turn.get("role")),
                    index=int(turn.get("turnIndex") or 0),
                )
            )
    return turns


def short_name(name: str) -> str:
    """Return ``ada`` for ``host:ada``; names of people stay complete."""
    return name.removeprefix("host:")
