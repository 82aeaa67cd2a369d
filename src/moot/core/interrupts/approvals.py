"""Approvals: one answer or a quorum of them, by whoever is eligible, recorded with their names."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from moot.core.errors import BadRequest, Forbidden, NotYourName
from moot.core.events import NewEvent, iso
from moot.core.runs import child_outputs
from moot.core.runs.answers import Answer, completed, ended, failed
from moot.core.speaker import Speaker
from moot.core.state.conversation import Interrupt
from moot.core.state.run import Run
from moot.core.text.names import is_person
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import GateSpec, Kind, NodeError
from moot.core.workflows.supervisor_orders import order_of

ACTIONS = ("accept", "reject", "refine", "edit-accept", "ask")

#: of one gate, the oldest make room
MOST_QUESTIONS = 100

#: what older callers send instead of an action
LEGACY = {"approved": "accept", "rejected": "reject"}


def requested(node: FlowNode, spec: GateSpec, name: str) -> NewEvent:
    """The older request event, whose list of actions knows ``edit`` only."""
    data = spec.data
    payload: dict[str, Any] = {
        "nodeId": node.id,
        "interruptId": name,
        "artifactId": data["artifactId"],
        "artifactType": data["artifactType"],
        "title": data["title"],
        "actions": ["edit" if action == "edit-accept" else action for action in data["actions"]],
    }
    for key in ("approversList", "requiredApprovals"):
        if key in data:
            payload[key] = data[key]
    return NewEvent("approval.requested", payload, node.id)


def answer(run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer) -> list[NewEvent]:
    value = _answer_of(given.value, found.data["actions"])
    if value["action"] == "edit-accept":
        _check_edit(flow, node, value["editedArtifactData"])
    if given.interrupt_id is not None and _needed(found) > 1:
        raise Forbidden("A vote of several is given with a key, not by link.")
    by = _voter(value, given.who)
    overrides = _overrides(value, given.who)
    if not overrides:
        _check_eligible(found.data, by, given.who)
    if value["action"] == "ask":
        return [_question(node, found, value, given)]
    events: list[NewEvent] = []
    if overrides:
        payload = {"gateId": node.id, "principal": _own(given.who), "reason": value["reason"]}
        events.append(NewEvent("approval.overridden", payload, node.id, cause=found.seq))
    if value["action"] != "refine":
        said, reached = _vote(node, found, (by, given.who.principal), value, overrides)
        events += said
        if reached is None:
            return events
        value = reached
    over = ended(node, found, given, value, [received(node.id, value, by, given.at)])
    if node.type.kind is not Kind.GATE:
        return [*events, *over]  # the node goes on by itself, with the answer
    return [*events, *over, approved(run, flow, node, value, given.at)]


def _needed(found: Interrupt) -> int:
    return int(found.data.get("requiredApprovals", 1))


def _vote(
    node: FlowNode,
    found: Interrupt,
    who: tuple[str, str],
    value: dict[str, Any],
    overrides: bool,
) -> tuple[list[NewEvent], dict[str, Any] | None]:
    """What a vote records, and the answer all votes come to, if they do."""
    by, action = who[0], value["action"]
    if found.votes.get(by) == action and not overrides:
        return [], None  # said already
    votes = {**found.votes, by: action}
    reached = outcome_of(found.data, votes)
    if overrides and found.data.get("overrideBypassesQuorum") is True:
        reached = action
    events = [_voted(node.id, who, value, found, votes)] if _needed(found) > 1 else []
    if reached is None:
        return events, None
    value = {**value, "action": reached if reached == "reject" else action}
    edits = {name: edit for name, edit in found.edits.items() if name != by}
    if value["action"] == "accept" and edits:
        value |= {"action": "edit-accept", "editedArtifactData": [*edits.values()][-1]}
    return events, value


def _answer_of(value: Any, actions: list[str]) -> dict[str, Any]:
    """The answer in today's form. Raises BadRequest when it is none, or not allowed here."""
    if not isinstance(value, dict):
        raise BadRequest(
            "An approval is answered with an object: {action, …}.", field="resumeValue"
        )
    answer = dict(value)
    older = answer.get("decision")
    if "action" not in answer and isinstance(older, str) and older in LEGACY:
        answer["action"] = LEGACY[answer.pop("decision")]
        if answer["action"] == "reject" and answer.get("feedback"):
            answer["action"] = "refine"
            answer["refineFeedback"] = {"scope": "whole", "text": answer["feedback"]}
    action = "edit-accept" if answer.get("action") == "edit" else answer.get("action")
    if action not in actions:
        raise BadRequest(
            f"This gate takes {', '.join(actions)}.", field="action", allowed=list(actions)
        )
    answer["action"] = action
    _check_parts(answer)
    return answer


def _check_edit(flow: Flow, node: FlowNode, edited: Any) -> None:
    """What the node could not go on with is refused while somebody can still mend it."""
    if node.type.dispatches:
        order_of(edited)
    elif node.type.kind is Kind.CHILD:
        child_outputs.check_edit(flow, node, edited)


class _Feedback(Struct, rename="camel"):
    """What is to be refined; the protocol says the types."""

    scope: Literal["whole", "section", "items"]
    section_path: str = ""
    item_ids: list[str] = []
    tags: list[str] = []
    text: str = ""


def _check_parts(answer: dict[str, Any]) -> None:
    for key in ("comment", "feedback"):
        if not isinstance(answer.get(key, ""), str):
            raise BadRequest(f"{key} must be a text.", field=key)
    if answer["action"] == "refine" or "refineFeedback" in answer:
        try:
            msgspec.convert(answer.get("refineFeedback"), _Feedback)
        except msgspec.ValidationError as error:
            raise BadRequest(
                "To refine, say what: refineFeedback {scope: whole|section|items, text}."
                f" ({error})",
                field="refineFeedback",
            ) from None
    if answer["action"] == "edit-accept" and "editedArtifactData" not in answer:
        raise BadRequest(
            "To accept an edit, send it: editedArtifactData.", field="editedArtifactData"
        )
    if answer["action"] == "ask" and not isinstance(
        answer.get("question", answer.get("comment")), str
    ):
        raise BadRequest("To ask, send the question.", field="question")


def _check_eligible(data: dict[str, Any], by: str, who: Speaker) -> None:
    """The host decides who may approve, before the engine sees the value."""
    groups = [f"group:{name}" for name in data.get("approverGroupRefs", [])]
    roles = [f"role:{name}" for name in data.get("approverRoleRefs", [])]
    listed = [*data.get("approversList", []), *groups, *roles]
    if not listed and not who.speaks_for_people:
        raise Forbidden("This gate waits for a person; it names no agent that may pass it.")
    if listed and not {by, who.principal, *who.names}.intersection(listed):
        way_out = " Override it: {override: true, reason}." if who.admin else ""
        raise Forbidden(
            f"You are not among the approvers of this gate.{way_out}", approversList=listed
        )


def _overrides(value: dict[str, Any], who: Speaker) -> bool:
    """An administrator may set aside who is to approve, and says why."""
    if value.get("override") is not True:
        return False
    if not who.admin:
        raise Forbidden("Only an administrator's key overrides a gate.")
    if not isinstance(value.get("reason"), str) or not value["reason"]:
        raise BadRequest("To override, say why: reason.", field="reason")
    return True


def received(node_id: str, answer: dict[str, Any], by: str, at: int) -> NewEvent:
    payload: dict[str, Any] = {
        "nodeId": node_id,
        "action": answer["action"],
        "decidedBy": by,
        "decidedAt": iso(at * 1000),
    }
    for key in ("comment", "feedback", "refineFeedback", "editedArtifactData"):
        if key in answer:
            payload[key] = answer[key]
    return NewEvent("approval.received", payload, node_id)


def _voter(value: dict[str, Any], who: Speaker) -> str:
    """Whose vote it is: a person's, whatever key it came by. Only an administrator's key may vote
    in another's name."""
    named = value.get("voter")
    if not isinstance(named, str) or not named:
        return _own(who)
    if not who.admin and named != _own(who):
        raise NotYourName(named, [_own(who)])
    return named


def _own(who: Speaker) -> str:
    """The person a key is bound to, else the key itself: one key has one vote."""
    return next((name for name in who.names if is_person(name)), who.principal)


def outcome_of(data: dict[str, Any], votes: dict[str, str]) -> str | None:
    """What the votes so far come to: accept, reject, or nothing yet."""
    needed = int(data.get("requiredApprovals", 1))
    accepts = sum(action in ("accept", "edit-accept") for action in votes.values())
    rejects = sum(action == "reject" for action in votes.values())
    veto = 1 if data.get("rejectionPolicy", "single-veto") == "single-veto" else needed // 2 + 1
    if rejects >= veto:
        return "reject"
    return "accept" if accepts >= needed else None


def _voted(
    node_id: str,
    who: tuple[str, str],
    value: dict[str, Any],
    found: Interrupt,
    votes: dict[str, str],
) -> NewEvent:
    """One vote of a quorum, recorded with its name and the key it came by."""
    by, via = who
    if value["action"] == "reject":
        payload: dict[str, Any] = {"gateId": node_id, "principal": by, "via": via}
        if isinstance(value.get("comment"), str):
            payload["reason"] = value["comment"]
        return NewEvent("moot.approval.rejected", payload, node_id, cause=found.seq)
    granted = sum(action in ("accept", "edit-accept") for action in votes.values())
    progress = {"granted": granted, "required": int(found.data.get("requiredApprovals", 1))}
    payload = {"gateId": node_id, "principal": by, "via": via, "quorumProgress": progress}
    for key in ("comment", "editedArtifactData"):
        if key in value:
            payload[key] = value[key]
    return NewEvent("moot.approval.granted", payload, node_id, cause=found.seq)


def _question(node: FlowNode, found: Interrupt, value: dict[str, Any], given: Answer) -> NewEvent:
    """A question does not end the wait; it is kept beside the gate."""
    entry = {
        "question": value.get("question", value.get("comment")),
        "askedBy": given.who.principal,
        "timestamp": iso(given.at * 1000),
    }
    payload = {
        "channel": f"_askExchanges:{node.id}",
        "value": entry,
        "reducer": "append",
        "writtenAt": iso(given.at * 1000),
        "nodeId": node.id,
    }
    hints = {"maxSize": MOST_QUESTIONS}
    return NewEvent("channel.written", payload, node.id, cause=found.seq, hints=hints)


def approved(run: Run, flow: Flow, node: FlowNode, value: dict[str, Any], at: int) -> NewEvent:
    """What is no acceptance ends the node badly unless an edge takes it."""
    action = value["action"]
    if action in ("reject", "refine") and not _has_port(flow, node, action):
        message = value.get("comment") or value.get("feedback") or "The approval was rejected."
        error = NodeError(code="approval_rejected", message=str(message), retryable=False)
        return failed(run, node, error)
    outputs = {"action": action, action: value}
    for key in ("editedArtifactData", "refineFeedback", "comment"):
        if key in value:
            outputs[key] = value[key]
    return completed(run, node, outputs, at)


def _has_port(flow: Flow, node: FlowNode, port: str) -> bool:
    return any(
        edge.source_node_id == node.id and edge.source_output == port
        for target in node.targets
        for edge in flow.nodes[target].incoming
    )
