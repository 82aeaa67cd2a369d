"""What the log tells of nodes: their ends, and the answers they got.

Each is taken as the command it must have been, and decided once more.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, Struct, field

from moot.core import approvals, orchestration, schemas
from moot.core.advance import failed
from moot.core.conversation import Speaker
from moot.core.events import Event, NewEvent
from moot.core.flow import Flow, FlowNode
from moot.core.node_state import NodeState
from moot.core.nodework import failure
from moot.core.outcomes import Decided, Failed, Kind, NodeError
from moot.core.resolving import Answer, completed, ended
from moot.core.run import Run
from moot.core.waiting import Interrupt


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
    veiled: bool
    kept: Kept

    @property
    def event(self) -> Event:
        return self.log[self.first]

    @property
    def rest(self) -> Sequence[Event]:
        """From the event on, as far as one decision goes."""
        return self.log[self.first : self.first + 2 * len(self.flow.nodes) + 100]

    @property
    def hints(self) -> dict[str, Any] | None:
        return None if self.event.hints is UNSET else self.event.hints

    @property
    def its(self) -> FlowNode:
        assert self.node is not None
        return self.node

    def fits(self, events: list[NewEvent]) -> bool:
        """Whether the log goes on with events of these types and nodes."""
        return len(self.rest) >= len(events) and all(
            (new.type, new.node_id) == (was.type, None if was.node_id is UNSET else was.node_id)
            for new, was in zip(events, self.rest, strict=False)
        )

    @property
    def timeless(self) -> bool:
        """Said again: the time it took has passed elsewhere."""
        return self.first < self.run.inherited

    @property
    def edited(self) -> bool:
        """Whether whoever forked the run has said this."""
        fork = self.run.forked_from or {}
        return self.first == self.run.inherited and "edit" in fork

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


# -- ends of nodes ---------------------------------------------------------------------------------

OUTCOMES = ("node.completed", "node.failed", "node.retried", "runOrchestrator.decided")


def outcome(seen: Seen, state: NodeState) -> list[NewEvent]:
    """The end of an attempt: what it gave is a fact, whether it is tried again is not."""
    event, node = seen.event, seen.its
    free = seen.veiled or seen.edited or (seen.timeless and node.type.kind is not Kind.INSTANT)
    if node.type.kind not in (Kind.ACTIVITY, Kind.CHILD) and not free:
        raise Impossible("impossible", "what follows from the state", event.type)
    if event.type == "runOrchestrator.decided":
        said = event.payload
        decided = Decided(agent_id=said["agentId"], decision=said["decision"], ratified=True)
        return orchestration.finish(seen.run, seen.flow, node.id, state.attempt, decided, seen.at)
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


# -- answers ---------------------------------------------------------------------------------------


def _asked(seen: Seen) -> Interrupt:
    found = seen.run.interrupts.get(seen.its.id)
    if found is None:
        raise Impossible("impossible", "an open question", seen.event.type)
    return found


def _resolved(seen: Seen) -> list[NewEvent]:
    """Who answered what is a fact; what the answer means is not."""
    found, said = _asked(seen), seen.event.payload
    value = said.get("resumeValue")
    if "resumeValue" not in said or "resolvedBy" not in said:
        raise Impossible("payload", "an answer and whose it is", said)
    if found.resume_schema is not None and (wrong := schemas.problems(found.resume_schema, value)):
        raise Impossible("payload", wrong[0], value)
    meant, after = _meaning(seen, found, value)
    return [*ended(seen.its, found, seen.by(said["resolvedBy"]), value, meant), *after]


def _meaning(seen: Seen, found: Interrupt, value: Any) -> tuple[list[NewEvent], list[NewEvent]]:
    """What each kind of question says when it is answered, and how its node goes on."""
    run, node, at = seen.run, seen.its, seen.at
    match found.kind:
        case "approval":
            after = [approvals.approved(run, seen.flow, node, value, at)]
            gate = node.type.kind is Kind.GATE
            return [_received(seen, found, value)], after if gate else []
        case "clarification":
            answers = value["answers"]
            by = seen.event.payload["resolvedBy"]
            payload = {"nodeId": node.id, "answers": answers, "answeredBy": by}
            said = [NewEvent("clarification.resolved", payload, node.id)]
            return said, [completed(run, node, {"answers": answers, **answers}, at)]
        case "low-confidence":
            return [], []
        case "external-event":
            return [], [completed(run, node, {"event": value, **value}, at)]
        case kind if kind.startswith("conversation."):
            raise Impossible("impossible", "a conversation that is closed first", kind)
        case _:
            outputs = value if isinstance(value, dict) else {"value": value}
            return [], [completed(run, node, outputs, at)]


def _received(seen: Seen, found: Interrupt, value: Any) -> NewEvent:
    """A quorum must have come to it, unless somebody set that aside."""
    action = value["action"]
    reached = approvals.outcome_of(found.data, found.votes)
    free = int(found.data.get("requiredApprovals", 1)) <= 1 or action == "refine"
    overridden = seen.its.id in seen.kept.overridden
    accepted = "accept" if action in ("accept", "edit-accept") else action
    if not free and not overridden and reached != accepted:
        raise Impossible("impossible", {"action": reached}, {"action": action})
    if action not in found.data["actions"]:
        raise Impossible("payload", found.data["actions"], action)
    by = next((e.payload.get("decidedBy") for e in seen.rest if e.type == "approval.received"), "")
    return approvals.received(seen.its.id, value, str(by), seen.at)


def _voted(seen: Seen) -> list[NewEvent]:
    found, event = _asked(seen), seen.event
    said = event.payload
    if said.get("gateId") != seen.its.id:
        raise Impossible("payload", {"gateId": seen.its.id}, said)
    if event.type == "moot.approval.granted":
        votes = {**found.votes, said["principal"]: "accept"}
        granted = sum(action in ("accept", "edit-accept") for action in votes.values())
        if said["quorumProgress"]["granted"] != granted:
            raise Impossible("payload", {"granted": granted}, said["quorumProgress"])
    return [NewEvent(event.type, said, seen.its.id, cause=found.seq)]


def asked_back(seen: Seen) -> list[NewEvent]:
    """A question that somebody asks instead of answering is kept beside the gate."""
    found, said = seen.run.interrupts.get(seen.its.id), seen.event.payload
    if found is None or said.get("channel") != f"_askExchanges:{seen.its.id}":
        raise Impossible("impossible", "a channel that the node may write to", said)
    return [NewEvent("channel.written", said, seen.its.id, cause=found.seq, hints=seen.hints)]


ANSWERS: dict[str, Callable[[Seen], list[NewEvent]]] = {
    "interrupt.resolved": _resolved,
    "approval.overridden": _voted,
    "moot.approval.granted": _voted,
    "moot.approval.rejected": _voted,
}
