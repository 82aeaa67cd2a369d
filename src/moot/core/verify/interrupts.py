"""What the log tells of answers: who answered is a fact, what the answer led to is not."""

from collections.abc import Callable
from typing import Any

from moot.core.events import NewEvent
from moot.core.interrupts import approvals
from moot.core.json import schema
from moot.core.runs.answers import completed, ended
from moot.core.state.conversation import Interrupt
from moot.core.verify.nodes import Impossible, Seen
from moot.core.workflows.node_types import Kind


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
    if found.resume_schema is not None and (wrong := schema.problems(found.resume_schema, value)):
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
