"""Read handoffs and turns from the events of a run."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct, to_builtins

from moot.client.http.frames import Event
from moot.core.events import decode_payload
from moot.core.payloads.base import OpaquePayload, Payload
from moot.core.payloads.supervisors import HandoffStepped, SupervisorDecided
from moot.core.sentences.turns import spoken_turn

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
    for payload in map(_payload, events):
        if isinstance(payload, SupervisorDecided):
            workers = payload.decision.next_worker_ids
            handoffs += [Handoff(worker=name, states=["pending"]) for name in workers]
        elif isinstance(payload, HandoffStepped):
            _apply_step(handoffs, payload)
    return handoffs


def _payload(event: Event) -> Payload | OpaquePayload:
    return decode_payload(event.type, Raw(msgspec.json.encode(event.payload)))


def _apply_step(handoffs: list[Handoff], step: HandoffStepped) -> None:
    child = step.child_run_id
    matches = [one for one in handoffs if one.worker == step.worker_id]
    if step.phase == "dispatch.began":
        matches = [one for one in matches if one.states == ["pending"]]
    elif child is not None:
        of_child = [one for one in matches if one.child == child]
        matches = of_child or [one for one in matches if not one.child]
    if not matches or step.phase not in STATES:
        return
    handoff = matches[0] if step.phase == "dispatch.began" else matches[-1]
    handoff.states.append(STATES[step.phase])
    handoff.child = child or handoff.child
    handoff.error = handoff.error if step.error is None else to_builtins(step.error)
    handoff.harvested = list(step.harvested_keys or handoff.harvested)


def collect_turns(events: Sequence[Event]) -> list[Said]:
    return [
        Said(
            by=short_name(turn.speaker),
            content=turn.content,
            to=None if turn.to is None else short_name(turn.to),
            role=turn.role,
            index=turn.index or 0,
        )
        for turn in map(spoken_turn, map(_payload, events))
        if turn is not None
    ]


def short_name(name: str) -> str:
    """Return ``ada`` for ``host:ada``; names of people stay complete."""
    return name.removeprefix("host:")
