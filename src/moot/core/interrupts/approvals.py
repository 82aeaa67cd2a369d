"""Answer approvals: check who may vote, count the votes, finish the gate."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct

from moot.core.errors import BadRequest, Forbidden, NotYourName
from moot.core.events import NewEvent, iso
from moot.core.payloads.interrupts import (
    ApprovalGranted,
    ApprovalOverridden,
    ApprovalReceived,
    ApprovalRejected,
    ApprovalRequested,
)
from moot.core.payloads.nodes import ChannelWritten
from moot.core.runs import child_outputs
from moot.core.runs.answers import (
    GateAnswer,
    end_interrupt,
    gate_completed_event,
    gate_failed_event,
)
from moot.core.speaker import Speaker
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.text.names import is_person
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import GateSpec, NodeError, NodeKind
from moot.core.workflows.supervisor_decisions import parse_decision

ACTIONS = ("accept", "reject", "refine", "edit-accept", "ask")

#: questions that one gate keeps; the oldest are dropped
MOST_QUESTIONS = 100

#: decisions of older callers -> actions
LEGACY = {"approved": "accept", "rejected": "reject"}


def approval_requested_event(node: FlowNode, spec: GateSpec, interrupt_id: str) -> NewEvent:
    """Return the older request event, whose actions have ``edit`` for ``edit-accept``."""
    data = spec.data
    payload = ApprovalRequested(
        node_id=node.id,
        interrupt_id=interrupt_id,
        artifact_id=data["artifactId"],
        artifact_type=data["artifactType"],
        title=data["title"],
        actions=["edit" if action == "edit-accept" else action for action in data["actions"]],
        approvers_list=data.get("approversList"),
        required_approvals=data.get("requiredApprovals"),
    )
    return NewEvent(payload, node.id)


def answer_approval(
    run: Run, flow: Flow, node: FlowNode, interrupt: Interrupt, answer: GateAnswer
) -> list[NewEvent]:
    value = _parse_answer(answer.value, interrupt.data["actions"])
    if value["action"] == "edit-accept":
        _check_edit(flow, node, value["editedArtifactData"])
    if answer.interrupt_id is not None and _required_votes(interrupt) > 1:
        raise Forbidden("A vote of several is given with a key, not by link.")
    voter = _voter(value, answer.who)
    is_override = _is_override(value, answer.who)
    if not is_override:
        _check_eligible(interrupt.data, voter, answer.who)
    if value["action"] == "ask":
        return [_question_event(node, interrupt, value, answer)]
    events: list[NewEvent] = []
    if is_override:
        payload = ApprovalOverridden(
            gate_id=node.id, principal=_voter_of_key(answer.who), reason=value["reason"]
        )
        events.append(NewEvent(payload, node.id, cause=interrupt.seq))
    if value["action"] != "refine":
        vote_events, result = _cast_vote(
            node, interrupt, (voter, answer.who.principal), value, is_override
        )
        events += vote_events
        if result is None:
            return events
        value = result
    end_events = end_interrupt(
        node, interrupt, answer, value, [approval_received_event(node.id, value, voter, answer.at)]
    )
    if node.type.kind is not NodeKind.GATE:
        return [*events, *end_events]  # the node itself continues with the answer
    return [*events, *end_events, finish_approval(run, flow, node, value, answer.at)]


def _required_votes(interrupt: Interrupt) -> int:
    return int(interrupt.data.get("requiredApprovals", 1))


def _cast_vote(
    node: FlowNode,
    interrupt: Interrupt,
    voter_and_key: tuple[str, str],
    value: dict[str, Any],
    is_override: bool,
) -> tuple[list[NewEvent], dict[str, Any] | None]:
    """Return the events of a vote, and the answer of the gate once the votes decide it."""
    voter, action = voter_and_key[0], value["action"]
    if interrupt.votes.get(voter) == action and not is_override:
        return [], None  # a repeated vote
    votes = {**interrupt.votes, voter: action}
    result = count_votes(interrupt.data, votes)
    if is_override and interrupt.data.get("overrideBypassesQuorum") is True:
        result = action
    events = (
        [_vote_event(node.id, voter_and_key, value, interrupt, votes)]
        if _required_votes(interrupt) > 1
        else []
    )
    if result is None:
        return events, None
    value = {**value, "action": result if result == "reject" else action}
    edits = {name: edit for name, edit in interrupt.edits.items() if name != voter}
    if value["action"] == "accept" and edits:
        value |= {"action": "edit-accept", "editedArtifactData": [*edits.values()][-1]}
    return events, value


def _parse_answer(value: Any, actions: list[str]) -> dict[str, Any]:
    """Return the answer in its current form. Raise BadRequest when the gate does not take it."""
    if not isinstance(value, dict):
        raise BadRequest(
            "An approval is answered with an object: {action, …}.", field="resumeValue"
        )
    answer = dict(value)
    legacy = answer.get("decision")
    if "action" not in answer and isinstance(legacy, str) and legacy in LEGACY:
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
    """Raise when the node could not continue with the edited artifact."""
    if node.type.dispatches:
        parse_decision(edited)
    elif node.type.kind is NodeKind.CHILD:
        child_outputs.check_edited_outputs(flow, node, edited)


class _RefineFeedback(Struct, rename="camel"):
    """The feedback of a refinement, with the types of the protocol."""

    scope: Literal["whole", "section", "items"]
    section_path: str = ""
    item_ids: list[str] = []
    tags: list[str] = []
    text: str = ""


def _check_parts(answer: Mapping[str, object]) -> None:
    for key in ("comment", "feedback"):
        if not isinstance(answer.get(key, ""), str):
            raise BadRequest(f"{key} must be a text.", field=key)
    if answer["action"] == "refine" or "refineFeedback" in answer:
        try:
            msgspec.convert(answer.get("refineFeedback"), _RefineFeedback)
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


def _check_eligible(data: dict[str, Any], voter: str, key_holder: Speaker) -> None:
    """Raise Forbidden when the voter may not approve. Agents must be on the list of approvers."""
    groups = [f"group:{name}" for name in data.get("approverGroupRefs", [])]
    roles = [f"role:{name}" for name in data.get("approverRoleRefs", [])]
    approvers = [*data.get("approversList", []), *groups, *roles]
    if not approvers and not key_holder.speaks_for_people:
        raise Forbidden("This gate waits for a person; it names no agent that may pass it.")
    if approvers and not {voter, key_holder.principal, *key_holder.names}.intersection(approvers):
        way_out = " Override it: {override: true, reason}." if key_holder.admin else ""
        raise Forbidden(
            f"You are not among the approvers of this gate.{way_out}", approversList=approvers
        )


def _is_override(value: Mapping[str, object], key_holder: Speaker) -> bool:
    """Return whether an administrator overrides the list of approvers. A reason is required."""
    if value.get("override") is not True:
        return False
    if not key_holder.admin:
        raise Forbidden("Only an administrator's key overrides a gate.")
    if not isinstance(value.get("reason"), str) or not value["reason"]:
        raise BadRequest("To override, say why: reason.", field="reason")
    return True


def approval_received_event(node_id: str, answer: dict[str, Any], voter: str, at: int) -> NewEvent:
    payload = ApprovalReceived(
        node_id=node_id,
        action=answer["action"],
        decided_by=voter,
        decided_at=iso(at * 1000),
        comment=answer.get("comment", UNSET),
        feedback=answer.get("feedback", UNSET),
        refine_feedback=answer.get("refineFeedback", UNSET),
        edited_artifact_data=answer.get("editedArtifactData", UNSET),
    )
    return NewEvent(payload, node_id)


def _voter(value: Mapping[str, object], key_holder: Speaker) -> str:
    """Return the person whose vote it is. Only an administrator may vote for another person."""
    named = value.get("voter")
    if not isinstance(named, str) or not named:
        return _voter_of_key(key_holder)
    if not key_holder.admin and named != _voter_of_key(key_holder):
        raise NotYourName(named, [_voter_of_key(key_holder)])
    return named


def _voter_of_key(key_holder: Speaker) -> str:
    """Return the person of a key, else the key itself, so that one key has one vote."""
    return next((name for name in key_holder.names if is_person(name)), key_holder.principal)


def count_votes(data: dict[str, Any], votes: dict[str, str]) -> str | None:
    """Return ``accept``, ``reject``, or None while the votes decide nothing."""
    accepts_needed = int(data.get("requiredApprovals", 1))
    accepts = sum(action in ("accept", "edit-accept") for action in votes.values())
    rejects = sum(action == "reject" for action in votes.values())
    rejects_needed = (
        1
        if data.get("rejectionPolicy", "single-veto") == "single-veto"
        else accepts_needed // 2 + 1
    )
    if rejects >= rejects_needed:
        return "reject"
    return "accept" if accepts >= accepts_needed else None


def _vote_event(
    node_id: str,
    voter_and_key: tuple[str, str],
    value: dict[str, Any],
    interrupt: Interrupt,
    votes: dict[str, str],
) -> NewEvent:
    """Return the event of one vote of a quorum, with its voter and key."""
    voter, principal = voter_and_key
    if value["action"] == "reject":
        reason = value.get("comment")
        rejected = ApprovalRejected(
            gate_id=node_id,
            principal=voter,
            via=principal,
            reason=reason if isinstance(reason, str) else None,
        )
        return NewEvent(rejected, node_id, cause=interrupt.seq)
    granted = sum(action in ("accept", "edit-accept") for action in votes.values())
    progress = {"granted": granted, "required": int(interrupt.data.get("requiredApprovals", 1))}
    payload = ApprovalGranted(
        gate_id=node_id,
        principal=voter,
        via=principal,
        quorum_progress=progress,
        comment=value.get("comment", UNSET),
        edited_artifact_data=value.get("editedArtifactData", UNSET),
    )
    return NewEvent(payload, node_id, cause=interrupt.seq)


def _question_event(
    node: FlowNode, interrupt: Interrupt, value: Mapping[str, object], answer: GateAnswer
) -> NewEvent:
    """Record a question about the artifact. The gate stays open."""
    entry = {
        "question": value.get("question", value.get("comment")),
        "askedBy": answer.who.principal,
        "timestamp": iso(answer.at * 1000),
    }
    payload = ChannelWritten(
        channel=f"_askExchanges:{node.id}",
        value=entry,
        reducer="append",
        written_at=iso(answer.at * 1000),
        node_id=node.id,
    )
    hints = {"maxSize": MOST_QUESTIONS}
    return NewEvent(payload, node.id, cause=interrupt.seq, hints=hints)


def finish_approval(
    run: Run, flow: Flow, node: FlowNode, value: dict[str, Any], at: int
) -> NewEvent:
    """Complete the node, or fail it when no edge takes a rejection or refinement."""
    action = value["action"]
    if action in ("reject", "refine") and not _has_port(flow, node, action):
        message = value.get("comment") or value.get("feedback") or "The approval was rejected."
        error = NodeError(code="approval_rejected", message=str(message), retryable=False)
        return gate_failed_event(run, node, error)
    outputs = {"action": action, action: value}
    for key in ("editedArtifactData", "refineFeedback", "comment"):
        if key in value:
            outputs[key] = value[key]
    return gate_completed_event(run, node, outputs, at)


def _has_port(flow: Flow, node: FlowNode, port: str) -> bool:
    return any(
        edge.source_node_id == node.id and edge.source_output == port
        for target in node.targets
        for edge in flow.nodes[target].incoming
    )
