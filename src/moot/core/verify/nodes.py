"""What the log tells of nodes: their ends.

Each is taken as the command it must have been, and decided once more.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct, field

from moot.core.events import Event, NewEvent
from moot.core.replay.masks import Veil
from moot.core.runs.advance import failed
from moot.core.runs.answers import Answer
from moot.core.runs.nodes import failure
from moot.core.speaker import Speaker
from moot.core.state import lineage
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.supervisors import decide
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Decided, Failed, Kind, NodeError


class Impossible(Exception):
    """No command could have led to this."""

    def __init__(self, kind: str, expected: Any, found: Any) -> None:
        super().__init__(kind)
        self.kind, self.expected, self.found = kind, expected, found


class Kept(Struct):
    """What was said before and is in no state: effects that were begun, gates set aside."""

    begun: set[tuple[str, Any]] = field(default_factory=set)
    overridden: set[str] = field(default_factory=set)

    def hear(self, event: Event) -> None:
        if event.type == "moot.effect.started":
            self.begun.add((str(event.node_id), event.payload.get("ordinal")))
        elif event.type == "approval.overridden":
            self.overridden.add(str(event.node_id))


class Seen(Struct):
    """One event and all there is to judge it by."""

    run: Run
    flow: Flow
    node: FlowNode | None
    log: Sequence[Event]
    first: int
    at: int
    veil: Veil
    kept: Kept

    @property
    def event(self) -> Event:
        return self.log[self.first]

    @property
    def rest(self) -> Sequence[Event]:
        """From the event on, as far as one decision goes: everything that happened at its time."""
        until = self.first + 1
        while until < len(self.log) and self.log[until].timestamp == self.event.timestamp:
            until += 1
        return self.log[self.first : until]

    @property
    def hints(self) -> dict[str, Any] | None:
        return None if self.event.hints is UNSET else self.event.hints

    @property
    def veiled(self) -> bool:
        """Whether the node may have seen a secret."""
        return self.veil.covers(self.run, self.node)

    @property
    def its(self) -> FlowNode:
        assert self.node is not None
        return self.node

    def fits(self, events: list[NewEvent]) -> bool:
        """Whether the log goes on with events of these types, nodes and failures."""
        return len(self.rest) >= len(events) and all(
            (new.type, new.node_id) == (was.type, None if was.node_id is UNSET else was.node_id)
            and _code(new.payload) == _code(was.payload)
            for new, was in zip(events, self.rest, strict=False)
        )

    @property
    def timeless(self) -> bool:
        """Said again: the time it took has passed elsewhere."""
        return self.first < self.run.inherited

    @property
    def edited(self) -> bool:
        """Whether whoever forked the run has said this."""
        return lineage.edited(self.run, self.event)

    def as_told(self) -> NewEvent:
        """A fact that leads to nothing else."""
        cause = self.event.causation_id
        place = "" if cause is UNSET else cause.rpartition(".")[2]
        return NewEvent(
            self.event.type,
            self.event.payload,
            None if self.node is None else self.node.id,
            cause=int(place) if place.isdigit() else None,
            hints=self.hints,
        )

    def caused_by_before(self) -> bool:
        return self.event.causation_id == f"{self.run.run_id}.{self.first - 1}"

    def by(self, principal: Any) -> Answer:
        who = Speaker(str(principal), admin=True)
        return Answer(node_id=self.its.id, value=None, who=who, at=self.at)


def _code(payload: dict[str, Any]) -> Any:
    error = payload.get("error", payload.get("lastError"))
    return error.get("code") if isinstance(error, dict) else None


# -- ends of nodes ---------------------------------------------------------------------------------

HELD = "interrupt.requested"
OUTCOMES = ("node.completed", "node.failed", "node.retried", "runOrchestrator.decided", HELD)


def outcome(seen: Seen, state: NodeState) -> list[NewEvent]:
    """The end of an attempt: what it gave is a fact, whether it is tried again is not."""
    event, node = seen.event, seen.its
    free = seen.veiled or seen.edited or (seen.timeless and node.type.kind is not Kind.INSTANT)
    if node.type.kind not in (Kind.ACTIVITY, Kind.CHILD) and not free:
        raise Impossible("impossible", "what follows from the state", event.type)
    if event.type == HELD and node.type.type_id != SUPERVISOR:
        raise Impossible("impossible", "a report of a node at work", event.type)
    if event.type in ("runOrchestrator.decided", HELD):
        decided = _decided(event)
        return decide.finish(seen.run, seen.flow, node.id, state.attempt, decided, seen.at)
    if event.type == "node.completed":
        payload = {
            "nodeId": node.id,
            "outputs": event.payload["outputs"],
            "durationMs": max(0, seen.at - state.started_at),
        }
        done = NewEvent("node.completed", payload, node.id, cause=state.started_seq)
        done.hints = seen.hints
        return [done]
    return _failure(seen, state)


def _decided(event: Event) -> Decided:
    """A supervisor's decision, or the question that one it is not sure of leads to."""
    if event.type != HELD:
        said = event.payload
        return Decided(agent_id=said["agentId"], decision=said["decision"], ratified=True)
    said = event.payload["data"]
    return Decided(
        agent_id=said["agentId"],
        decision=said["decision"],
        confidence=said["observed"],
        threshold=said["threshold"],
    )


def _failure(seen: Seen, state: NodeState) -> list[NewEvent]:
    event, node = seen.event, seen.its
    said = event.payload.get("error" if event.type == "node.failed" else "lastError")
    error = error_of(said)
    if seen.run.replayed and error.code == "replay_source_missing":
        made = failed(node, error, state.attempt, state.started_seq)
        made.hints = seen.hints
        return [made]
    found = failure(seen.run, node, state, Failed(error), seen.at)
    found[-1].hints = seen.hints
    if found[-1].type == event.type and seen.first and seen.caused_by_before():
        found[-1].cause = None  # something that the node said explains it
    return found


def error_of(said: Any) -> NodeError:
    if not isinstance(said, dict) or not isinstance(said.get("code"), str):
        raise Impossible("payload", "an error", said)
    return NodeError(
        code=said["code"],
        message=said.get("message", ""),
        details=said.get("details", {}),
        retryable=said.get("retryable", True),
    )
