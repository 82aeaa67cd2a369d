"""Rebuild the command behind a recorded fact and decide it again.

A fact cannot be derived, but its consequences can: the principal of an answer is a fact, the events
that the answer leads to are not.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from moot.core.agents import refusals
from moot.core.agents.decide import ONCE_EVENTS, attribute_agents, emit_agent_events
from moot.core.children import peer_requests
from moot.core.commands import CancelRun, PauseRun, ResumeRun, TimePassed, decide
from moot.core.events import Event, NewEvent, millis, new_event, payload_fields, set_fields
from moot.core.ids import logical_invocation_id
from moot.core.payloads.agents import AgentReasoned, ModelRetried, ReasoningDelta
from moot.core.payloads.memory import EffectFinished
from moot.core.payloads.nodes import (
    ChannelWritten,
    NodeCancelled,
    NodeCompleted,
    NodeStarted,
    VariableChanged,
)
from moot.core.payloads.runs import (
    CapBreached,
    PauseBegan,
    PauseRequested,
    RefusalDiverged,
    ReplayDiverged,
    RunCancelled,
    RunFailed,
    RunResumed,
)
from moot.core.payloads.supervisors import ChildForked, PeerAskedAnew, RemoteChildStopped
from moot.core.pending import run_deadline
from moot.core.replay.compare import is_alike
from moot.core.replay.masks import MaskRules
from moot.core.runs import standing_agents
from moot.core.runs.nodes import Emit
from moot.core.runs.standing_agents import node_agent
from moot.core.state.node import NodeState
from moot.core.state.run import HANDLED_TYPES, Run
from moot.core.state.status import NodeStatus
from moot.core.state.usage import CHARGED_TO
from moot.core.time_passed import decide_node_due
from moot.core.verify import children, conversations, councils, nodes
from moot.core.verify.interrupts import ANSWER_DECIDERS, decide_question_back
from moot.core.verify.nodes import ImpossibleEvent, RecordedEffects, VerificationStep
from moot.core.workflows.channels import ChannelRule, check_write
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import NodeKind

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

#: events that time causes without changing the state
TIME_EVENTS = (CapBreached.event_type,)


def is_supervisor_turn(flow: Flow, event: Event) -> bool:
    """Return whether the event begins a supervisor's turn."""
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if node is None or node.type.type_id != SUPERVISOR or event.type != NodeStarted.event_type:
        return False
    again = event.hints is not UNSET and "again" in event.hints
    return again or payload_fields(event).get("attempt") == 1


def decide_recorded_command(
    run: Run,
    flow: Flow,
    log: Sequence[Event],
    first: int,
    masks: MaskRules,
    effects: RecordedEffects,
) -> list[NewEvent]:
    """Return the events of the command behind the event.

    Raise ImpossibleEvent when there is no such command, or the error that refuses the command.
    """
    event = log[first]
    node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
    if event.node_id is not UNSET and node is None:
        raise ImpossibleEvent("node", "a node of the workflow", event.node_id)
    step = VerificationStep(run, flow, node, log, first, millis(event.timestamp), masks, effects)
    operator = OPERATOR_DECIDERS.get(event.type)
    if operator is not None:
        return operator(step)
    events = (
        _decide_time_passed(step)
        if event.type in HANDLED_TYPES or event.type in TIME_EVENTS
        else []
    )
    if events:
        return events
    if run.replayed and event.type in (RunFailed.event_type, CapBreached.event_type):
        return [step.as_recorded()]  # a limit of the source; the fork may have copied part of it
    if node is None:
        raise ImpossibleEvent("type", "something that nobody's node says", event.type)
    events = _decide_node_event(step, node, event)
    for new in events:
        if new.type == NodeCompleted.event_type and (
            agent := node_agent(run, flow, new.node_id or "")
        ):
            set_fields(new, {**payload_fields(new), "agent": agent})
    return events


def _decide_node_event(step: VerificationStep, node: FlowNode, event: Event) -> list[NewEvent]:
    state = step.run.nodes.get(node.id)
    if state is None or node.id not in step.run.active:
        raise ImpossibleEvent("impossible", "a node at work", event.type)
    answers = ANSWER_DECIDERS.get(event.type) or conversations.CONVERSATION_DECIDERS.get(event.type)
    if answers is not None:
        return answers(step)
    if state.status is NodeStatus.SUSPENDED:
        return _decide_suspended_node(step, node, event)
    if node.type.kind is NodeKind.CHILD:
        return children.decide_child_event(step, state)
    if event.type == NodeStarted.event_type and step.run.replayed:
        return [step.as_recorded()]  # the attempt restarts after a pause that the replay leaves out
    if state.status is not NodeStatus.RUNNING:
        raise ImpossibleEvent("impossible", f"nothing of a node that is {state.status}", event.type)
    if event.type in nodes.OUTCOME_EVENTS:
        return nodes.decide_outcome(step, state)
    if node.type.kind is NodeKind.ACTIVITY and isinstance(event.payload, ONCE_EVENTS):
        return _decide_agent_event(step, state, node)
    if node.type.kind is NodeKind.ACTIVITY or (
        node.type.kind is NodeKind.INSTANT and step.is_masked
    ):
        return [_node_report(step, node, event)]
    raise ImpossibleEvent("impossible", "what follows from the state", event.type)


def _decide_suspended_node(step: VerificationStep, node: FlowNode, event: Event) -> list[NewEvent]:
    """Decide an event of a waiting node: a question back, or the work of an invited member."""
    if event.type == ChannelWritten.event_type:
        return decide_question_back(step)
    conversation = step.run.conversations.get(node.id)
    if conversation is None or conversation.floor is None:
        raise ImpossibleEvent("impossible", "nothing of a node that is suspended", event.type)
    return councils.decide_member_report(step)


def _decide_agent_event(step: VerificationStep, state: NodeState, node: FlowNode) -> list[NewEvent]:
    """Decide an agent's report, with the question that an unsure decision leads to."""
    event = step.event
    counted = AgentReasoned.event_type if event.type == ReasoningDelta.event_type else event.type
    nth = state.said.get(counted, 0)
    new = new_event(event.type, payload_fields(event), node.id, nth=nth)
    return emit_agent_events(
        step.run, step.flow, Emit(node.id, state.attempt, (new,), step.at, required=True)
    )


def _node_report(step: VerificationStep, node: FlowNode, event: Event) -> NewEvent:
    """Return the report of an active node, or raise when the node cannot have sent it."""
    cause: int | None = step.run.nodes[node.id].started_seq
    payload = payload_fields(event)
    if event.type == VariableChanged.event_type:
        _check_variable(step, payload)
    elif event.type == ChannelWritten.event_type:
        _check_write(step, node, event)
        cause = None if step.is_caused_by_previous() else cause
    elif event.type.startswith("moot.effect."):
        _check_effect(step, node, event)
    elif event.type in HANDLED_TYPES and event.type != ModelRetried.event_type:
        raise ImpossibleEvent("impossible", "a report of a node at work", event.type)
    elif event.type == CapBreached.event_type:  # a limit of model calls explains the coming failure
        cause = None if step.is_caused_by_previous() else cause
    if payload.get("nodeId", node.id) != node.id:
        raise ImpossibleEvent("payload", {"nodeId": node.id}, {"nodeId": payload["nodeId"]})
    return new_event(event.type, payload, node.id, cause=cause, hints=step.hints)


def _check_variable(step: VerificationStep, payload: Mapping[str, object]) -> None:
    """Raise unless the recorded previous value is the variable's value."""
    name, variables = payload.get("name"), step.run.variables
    if not isinstance(name, str) or name in step.flow.channels:
        raise ImpossibleEvent("payload", "the name of a variable", name)
    expected = {"previous": variables[name]} if name in variables else {}
    recorded = {"previous": payload["previous"]} if "previous" in payload else {}
    if not is_alike(expected, recorded, None):
        raise ImpossibleEvent("payload", expected, recorded)


def _check_write(step: VerificationStep, node: FlowNode, event: Event) -> None:
    """Raise unless the write uses the channel's rule and the channel accepts the value."""
    payload, name = payload_fields(event), payload_fields(event).get("channel", "")
    declared = step.flow.channels.get(name)
    rule_hints = {key: value for key, value in (step.hints or {}).items() if key != "turn"}
    if declared is not None:
        expected = (declared.recorded, declared.hints() or {})
        if (payload.get("reducer"), rule_hints) != expected:
            raise ImpossibleEvent("payload", expected, (payload.get("reducer"), rule_hints))
    rule = declared or ChannelRule(
        str(rule_hints.get("reducer") or payload.get("reducer", "replace"))
    )
    is_masked = step.masks.covers_channel(step.run, name, payload.get("value"))
    if rule.reducer != "message" and not is_masked:
        current = step.run.channels.get(name)
        if problem := check_write(rule, current, _without_timestamp(rule, payload.get("value"))):
            raise ImpossibleEvent("payload", problem, payload.get("value"))


def _without_timestamp(rule: ChannelRule, value: Any) -> Any:
    """Return the written value without the timestamp beside it."""
    if rule.ttl_ms and isinstance(value, dict) and set(value) == {"value", "_ts"}:
        return value["value"]
    return value


def _check_effect(step: VerificationStep, node: FlowNode, event: Event) -> None:
    """Raise unless the effect's id fits its place, and its end follows its start."""
    payload, run = payload_fields(event), step.run
    earlier = run.attempts.get(node.id, 0)
    place = f"{node.id}#{earlier}" if earlier else node.id
    if event.sequence >= run.inherited:
        name = logical_invocation_id(
            run.tenant, run.run_id, place, payload["ordinal"], payload["providerKey"]
        )
        if payload["invocationId"] != name:
            raise ImpossibleEvent("payload", {"invocationId": name}, payload)
    if payload.get("attempt") != run.nodes[node.id].attempt:
        raise ImpossibleEvent("payload", {"attempt": run.nodes[node.id].attempt}, payload)
    if payload.get(CHARGED_TO) not in (
        None,
        *standing_agents.budget_owners(run, standing_agents.node_handle(node)),
    ):
        raise ImpossibleEvent("impossible", "whoever's work it is", payload)
    effect = (node.id, payload["ordinal"])
    if event.type == EffectFinished.event_type and effect not in step.effects.started:
        raise ImpossibleEvent("impossible", "an effect that was begun", payload)


def _decide_time_passed(step: VerificationStep) -> list[NewEvent]:
    """Decide the events of passing time, at the recorded time or an earlier due time."""
    run, flow, event = step.run, step.flow, step.event
    for at in sorted(_due_times(step), reverse=True):
        events = decide(run, flow, TimePassed(at, children.abandoned_children(step)))
        if events and step.fits(events):
            return nodes.shift_clocks(nodes.copy_observed(events, event), step.at - at)
    if (
        step.is_copied and event.node_id in run.active
    ):  # no time passes in copies: each node counts alone
        late = max(step.at, *(run.nodes[key].due or 0 for key in run.active))
        given_up = children.abandoned_children(step)
        events = decide_node_due(run, flow, str(event.node_id), late, [], given_up)
        events = attribute_agents(run, flow, events)
        if events and step.fits(events):
            return events
    return []


def _due_times(step: VerificationStep) -> set[int]:
    run, moments = step.run, {step.at}
    for node_id in run.active:
        due, limit = run.nodes[node_id].due, step.flow.nodes[node_id].timeout_ms
        if due is not None and due <= step.at:
            moments.add(due)
        if limit:
            state = run.nodes[node_id]
            moments.add(min(step.at, state.started_at + state.paused_ms + limit))
        conversation = run.conversations.get(node_id)
        invitations = (
            conversation.floor.wakes
            if conversation is not None and conversation.floor is not None
            else {}
        )
        moments |= {
            invitation.due for invitation in invitations.values() if invitation.due <= step.at
        }
    if step.is_copied:
        moments.add(run_deadline(run) or step.at)
    return moments


# -- operators -----------------------------------------------------------------------------------


def _decide_cancel(step: VerificationStep) -> list[NewEvent]:
    end = next((e for e in step.rest if e.type == RunCancelled.event_type), None)
    if step.run.replayed and (end is None or step.node is not None):
        return [step.as_recorded()]  # the fork may have copied part of a cancel
    if end is None:
        raise ImpossibleEvent("missing", RunCancelled.event_type, step.event.type)
    payload = payload_fields(end)
    command = CancelRun(
        step.at, payload.get("reason"), payload.get("cancelledBy"), payload.get("parentRunId")
    )
    return decide(step.run, step.flow, command)


def _decide_pause(step: VerificationStep) -> list[NewEvent]:
    payload = payload_fields(step.event)
    policy = payload.get("drainPolicy", "")
    if policy not in ("immediate", "drain-current-node"):
        raise ImpossibleEvent("payload", "a drain policy", policy)
    command = PauseRun(step.at, policy, payload.get("reason"), payload.get("pausedBy"))
    return decide(step.run, step.flow, command)


def _decide_resume(step: VerificationStep) -> list[NewEvent]:
    payload = payload_fields(step.event)
    return decide(
        step.run, step.flow, ResumeRun(step.at, payload.get("reason"), payload.get("resumedBy"))
    )


def _decide_set_variable(step: VerificationStep) -> list[NewEvent]:
    if step.node is not None:
        return []
    _check_variable(step, payload_fields(step.event))
    return [new_event(VariableChanged.event_type, payload_fields(step.event))]


def _decide_variable(step: VerificationStep) -> list[NewEvent]:
    if step.node is None:
        return _decide_set_variable(step)
    events = _decide_time_passed(step)
    return events or _decide_node_event(step, step.node, step.event)


def _decide_answered(step: VerificationStep) -> list[NewEvent]:
    """Decide the end of an invitation: silence follows from time, other ends from the member."""
    if step.node is None or step.own_node.id not in step.run.active:
        raise ImpossibleEvent("impossible", "a conversation that goes on", step.event.type)
    if payload_fields(step.event).get("outcome") != "silent":
        return conversations.decide_answered(step)
    return conversations.decide_silent(step) if step.is_copied else _decide_time_passed(step)


def _decide_child_forked(step: VerificationStep) -> list[NewEvent]:
    """Check that the run is at its fork and the child lives. A replay copies the event."""
    run, payload = step.run, payload_fields(step.event)
    if not run.replayed and (run.next_sequence < run.inherited or run.forked_from is None):
        raise ImpossibleEvent("impossible", "a branch at its fork", step.event.type)
    if run.children.get(payload["childRunId"], "") is not None:
        raise ImpossibleEvent("impossible", "a living child", payload)
    copied = step.event.known_hints.given
    if copied.get(payload["childRunId"], 0) < 1:
        raise ImpossibleEvent("hints", "how much of the child was said again", copied)
    return [new_event(ChildForked.event_type, payload, payload["nodeId"], hints=step.hints)]


def _decide_asked_anew(step: VerificationStep) -> list[NewEvent]:
    """Decide a branch's new request for a remote child that its source had requested."""
    run, payload = step.run, payload_fields(step.event)
    former = payload["formerAskId"]
    if run.forked_from is None or former not in peer_requests.inherited_requests(run):
        raise ImpossibleEvent("impossible", "a child that the source had asked for", former)
    request = peer_requests.fork_request_event(run, former, step.log[run.abroad[former].asked_seq])
    if run.next_sequence < run.inherited:  # the source was a branch: the names are its own
        names = {name: payload[name] for name in ("askId", "parentRunId")}
        set_fields(request, {**payload_fields(request), **names})
    return [request]


def _decide_diverged(step: VerificationStep) -> list[NewEvent]:
    if not step.run.replayed:
        raise ImpossibleEvent("impossible", "a replay", step.event.type)
    return [new_event(ReplayDiverged.event_type, payload_fields(step.event))]


def _decide_refusal(step: VerificationStep) -> list[NewEvent]:
    """Decide the end of a replay whose model refused where the source's did not, or vice versa."""
    payload = payload_fields(step.event)
    if (
        not step.run.replayed
        or step.run.forked_from is None
        or payload["sourceRunId"] != step.run.forked_from.source_run_id
    ):
        raise ImpossibleEvent("impossible", "a replay of this source", step.event.type)
    diverged = step.event.payload
    assert isinstance(diverged, RefusalDiverged)
    return refusals.divergence_events(step.run, diverged, step.at)


OPERATOR_DECIDERS: dict[str, Callable[[VerificationStep], list[NewEvent]]] = {
    RunCancelled.event_type: _decide_cancel,
    NodeCancelled.event_type: _decide_cancel,
    PauseBegan.event_type: _decide_pause,
    PauseRequested.event_type: _decide_pause,
    RunResumed.event_type: _decide_resume,
    VariableChanged.event_type: _decide_variable,
    conversations.PARTICIPATION_ANSWERED: _decide_answered,
    RemoteChildStopped.event_type: children.decide_peer_stopped,
    ChildForked.event_type: _decide_child_forked,
    PeerAskedAnew.event_type: _decide_asked_anew,
    ReplayDiverged.event_type: _decide_diverged,
    RefusalDiverged.event_type: _decide_refusal,
}
