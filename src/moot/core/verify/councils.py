"""Verify reports of members at work: invocations, tool requests and usage.

The report is a fact. The invitation that it belongs to follows from the state.
"""

from typing import Any

from moot.core.events import Event, NewEvent, event_id, new_event, payload_fields
from moot.core.ids import logical_invocation_id
from moot.core.payloads.agents import InvocationStarted, ModelRetried, ToolReturned
from moot.core.payloads.councils import MemberHeard, ToolAsked
from moot.core.payloads.memory import EffectAbandoned, EffectFinished, EffectStarted
from moot.core.runs import standing_agents
from moot.core.state import agents, usage
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Invitation
from moot.core.state.run import HANDLED_TYPES
from moot.core.verify.conversations import open_conversation
from moot.core.verify.nodes import ImpossibleEvent, VerificationStep


def decide_member_report(step: VerificationStep) -> list[NewEvent]:
    """Return the report of a member at work, or raise when no invitation fits it."""
    event, payload = step.event, payload_fields(step.event)
    conversation = open_conversation(step)
    if (
        event.type in HANDLED_TYPES
        and event.type not in _REPORT_CHECKS
        and not isinstance(event.payload, agents.AGENT_EVENTS)
    ):
        raise ImpossibleEvent("impossible", "what a member at work tells", event.type)
    invitations: dict[str, Any] = {}
    if conversation.floor is not None:
        is_abandoned = event.type == EffectAbandoned.event_type
        invitations = dict(conversation.floor.unpaid if is_abandoned else conversation.floor.wakes)
    candidates = [
        (name, invitation)
        for name, invitation in invitations.items()
        if event.causation_id == event_id(step.run.run_id, _cause_sequence(event, invitation))
        and payload.get("agentId", invitation.agent) == invitation.agent
        and payload.get(usage.CHARGED_TO)
        in (None, *standing_agents.budget_owners(step.run, invitation.agent))
    ]
    check = _REPORT_CHECKS.get(
        event.type, _is_from_member if isinstance(event.payload, agents.AGENT_EVENTS) else None
    )
    for name, invitation in candidates:
        if check is None or check(step, conversation, name, invitation):
            cause = _cause_sequence(event, invitation)
            return [new_event(event.type, payload, step.own_node.id, cause=cause, hints=step.hints)]
    raise ImpossibleEvent("impossible", "a member that has the floor", payload)


def _cause_sequence(event: Event, invitation: Invitation) -> int:
    """Return the cause: the call for a tool's result, else the invitation."""
    if event.type == ToolReturned.event_type:
        return invitation.calls.get(str(payload_fields(event).get("callId")), -1)
    return invitation.seq


def _is_from_member(
    step: VerificationStep, conversation: Conversation, name: str, invitation: Invitation
) -> bool:
    return step.hints == {"wake": name}


def _is_invocation_start(
    step: VerificationStep, conversation: Conversation, name: str, invitation: Invitation
) -> bool:
    """Check that the invocation is the first one of the invitation it names."""
    suffix = f":{step.own_node.id}:{name}"
    is_named = str(payload_fields(step.event).get("invocationId")).endswith(suffix)
    is_started = InvocationStarted.event_type in invitation.said
    return not is_started and _is_from_member(step, conversation, name, invitation) and is_named


def _is_tool_request(
    step: VerificationStep, conversation: Conversation, name: str, invitation: Invitation
) -> bool:
    payload, floor = payload_fields(step.event), conversation.floor
    fresh = floor is not None and payload.get("askId") not in floor.asks
    return fresh and payload.get("wakeId") == name and str(payload["askId"]).startswith(f"{name}.")


def _is_call(
    step: VerificationStep, conversation: Conversation, name: str, invitation: Invitation
) -> bool:
    """Check that the call's id fits the invitation, and its end follows its start."""
    payload, run, event = payload_fields(step.event), step.run, step.event
    call = event.payload
    assert isinstance(call, EffectStarted | EffectFinished | EffectAbandoned)
    if usage.invitation_of_call(call) != name or call.attempt != 1:
        return False
    if event.type != EffectStarted.event_type and (
        step.own_node.id, payload["ordinal"]
    ) not in step.effects.started:  # fmt: skip
        return False
    if event.sequence < run.inherited:
        return True
    key = (run.tenant, run.run_id, step.own_node.id, payload["ordinal"], payload["providerKey"])
    return bool(payload["invocationId"] == logical_invocation_id(*key))


def _names_invitation(
    step: VerificationStep, conversation: Conversation, name: str, invitation: Invitation
) -> bool:
    """Check that the report names the invitation."""
    payload = payload_fields(step.event)
    invitation_id = payload.get("wakeId", str(payload.get("invocationId", "")).rpartition(":")[2])
    return bool(invitation_id == name and type(payload.get("silentMs", 0)) is int)


_REPORT_CHECKS = {
    InvocationStarted.event_type: _is_invocation_start,
    ToolAsked.event_type: _is_tool_request,
    EffectStarted.event_type: _is_call,
    EffectFinished.event_type: _is_call,
    EffectAbandoned.event_type: _is_call,
    MemberHeard.event_type: _names_invitation,
    ModelRetried.event_type: _names_invitation,
}
