"""What the log tells of answers: who answered is a fact, what the answer led to is not."""

from collections.abc import Callable
from typing import Any

from moot.core import approvals, conversation, schemas, talking
from moot.core.events import NewEvent
from moot.core.outcomes import Kind
from moot.core.resolving import completed, ended
from moot.core.told import Impossible, Seen
from moot.core.waiting import Conversation, Interrupt


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


def _talk(seen: Seen) -> Conversation:
    talk = seen.run.conversations.get(seen.its.id)
    said = seen.event.payload
    if talk is None or not talk.open:
        raise Impossible("impossible", "an open conversation", seen.event.type)
    if said.get("conversationId") != talk.conversation_id:
        raise Impossible("payload", {"conversationId": talk.conversation_id}, said)
    return talk


def _turn(seen: Seen, talk: Conversation, key: str) -> dict[str, Any]:
    """A turn that could be said: the next one, in a name that has a seat."""
    said = seen.event.payload
    turn: dict[str, Any] = said[key]
    if not said["turnIndex"] == turn["turnIndex"] == talk.turns + 1:
        raise Impossible("payload", {"turnIndex": talk.turns + 1}, said)
    speaker = turn.get("speakerId")
    if turn["role"] == "agent" and (
        turn["from"] != speaker or (talk.roster is not None and speaker not in talk.roster)
    ):
        raise Impossible("payload", {"roster": talk.roster}, turn)
    schema = talk.schema if turn["role"] != "system" else None
    if schema is not None and (wrong := schemas.problems(schema, turn["content"])):
        raise Impossible("payload", wrong[0], turn["content"])
    return turn


def _exchanged(seen: Seen) -> list[NewEvent]:
    talk = _talk(seen)
    turn = _turn(seen, talk, "turn")
    return talking.taken(seen.run, seen.flow, seen.its, talk, turn, seen.by(turn.get("via")))


def _closed(seen: Seen) -> list[NewEvent]:
    talk = _talk(seen)
    turn = _turn(seen, talk, "finalTurn")
    closed = conversation.closed(talk, seen.its, turn, seen.event.payload.get("outcome"))
    given = seen.by(turn.get("via"))
    return talking.closing(seen.run, seen.flow, seen.its, talk, closed, given)


def _steered(seen: Seen) -> list[NewEvent]:
    talk, event = _talk(seen), seen.event
    counted = {"moot.participant.joined": ("fromTurn", talk.turns + 1),
               "moot.participant.left": ("afterTurn", talk.turns)}  # fmt: skip
    if event.type in counted:
        key, expected = counted[event.type]
        if event.payload.get(key) != expected:
            raise Impossible("payload", {key: expected}, event.payload)
    return [NewEvent(event.type, event.payload, seen.its.id, cause=talk.last_seq)]


ANSWERS: dict[str, Callable[[Seen], list[NewEvent]]] = {
    "interrupt.resolved": _resolved,
    "approval.overridden": _voted,
    "moot.approval.granted": _voted,
    "moot.approval.rejected": _voted,
    "conversation.exchanged": _exchanged,
    "conversation.closed": _closed,
    "moot.thread.control": _steered,
    "moot.participant.joined": _steered,
    "moot.participant.left": _steered,
}
