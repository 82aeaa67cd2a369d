"""Interrupts: one suspension of a node until somebody answers.

A suspension is recorded before anybody is asked. An answer, what it means, and the node's going on
are one decision, so that a crash cannot come between them.
"""

from typing import Any

from msgspec import UNSET

from moot.core.conversations import decide, turns
from moot.core.councils.decide import taken
from moot.core.errors import (
    BadRequest,
    Conflict,
    CorrelationMismatch,
    Forbidden,
    InterruptAlreadyResolved,
    InterruptCancelled,
    InterruptGone,
    InterruptNotFound,
    MootError,
    RunPaused,
)
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.interrupts import approvals, clarifications, escalations
from moot.core.json import schema
from moot.core.runs.answers import Answer, completed, ended, failed
from moot.core.runs.nodes import finish
from moot.core.runs.readiness import PortProblem, call_of, same
from moot.core.state.conversation import Interrupt
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus, Status
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import Failed, GateSpec, NodeError, raised
from moot.core.workflows.supervisor_orders import order_of

AUTH_REQUIRED = "openwop-interrupt-auth-required"


def begin(run: Run, flow: Flow, node_id: str, at: int, sealed: dict[str, Any]) -> list[NewEvent]:
    """A gate has started: ask, and wait. A gate that cannot ask fails."""
    node, state = flow.nodes[node_id], run.nodes[node_id]
    if not run.going or state.status is not NodeStatus.RUNNING:
        return []
    assert node.type.gate is not None
    try:
        spec = node.type.gate(call_of(run, node, at, sealed, state.attempt))
    except PortProblem as problem:
        return finish(run, flow, node_id, state.attempt, Failed(problem.error), at)
    except MootError as refusal:
        error = NodeError(
            code=refusal.code, message=refusal.message, details=refusal.details, retryable=False
        )
        return finish(run, flow, node_id, state.attempt, Failed(error), at)
    except Exception as error:  # whatever a node type raises is the node's problem
        return finish(run, flow, node_id, state.attempt, Failed(raised(error)), at)
    if mistake := node.type.check and node.type.check(node.definition.config):
        # taken when the run began, and refused today: nobody could ever answer
        refused = NodeError(code=BadRequest.code, message=mistake, retryable=False)
        return finish(run, flow, node_id, state.attempt, Failed(refused), at)
    events = request(run, flow, node, spec, at)
    if spec.conversation is not None and spec.conversation.mock_turns is not None:
        events += decide.by_itself(run, flow, node, spec.conversation, at)
    return events


def request(
    run: Run, flow: Flow, node: FlowNode, spec: GateSpec, at: int, number: int = 0
) -> list[NewEvent]:
    """The node waits from here on. ``number`` tells questions of one attempt apart."""
    state = run.nodes[node.id]
    place = (run.run_id, node.id, str(state.attempt), *([str(number)] if number else []))
    name = derived_id("int_", *place)
    asked: dict[str, Any] = {
        "kind": spec.kind,
        "key": ":".join(place),
        "data": spec.data,
    }
    waits: dict[str, Any] = {
        "nodeId": node.id,
        "interruptId": name,
        "kind": spec.kind,
        "key": asked["key"],
    }
    if spec.resume_schema is not None:
        asked["resumeSchema"] = spec.resume_schema
    if spec.timeout_ms is not None:
        asked["timeoutMs"] = spec.timeout_ms
        waits["dueAt"] = iso((at + spec.timeout_ms) * 1000)
    if spec.profile is not None:
        waits["profile"] = spec.profile
    if spec.escalation is not None:
        waits["escalationKind"] = spec.escalation
    if spec.conversation is not None:
        waits["reason"] = "conversation-input"
    if spec.kind == "low-confidence":
        waits["reason"] = "low-confidence"
        waits |= {key: spec.data[key] for key in ("agentId", "threshold", "observed")}
    return [
        NewEvent("interrupt.requested", asked, node.id, cause=state.started_seq),
        NewEvent("node.suspended", waits, node.id),
        *_announced(run, flow, node, spec, name, at),
    ]


def _announced(
    run: Run, flow: Flow, node: FlowNode, spec: GateSpec, name: str, at: int
) -> list[NewEvent]:
    """What else each kind says when it begins to wait."""
    if spec.kind == "approval":
        return [approvals.requested(node, spec, name)]
    if spec.kind == "clarification":
        payload = {"nodeId": node.id, "interruptId": name, "questions": spec.data["questions"]}
        return [NewEvent("clarification.requested", payload, node.id)]
    if spec.conversation is not None:
        return decide.opened(run, flow, node, spec.conversation, at)
    return []


def answer(run: Run, flow: Flow, given: Answer) -> list[NewEvent]:
    """What an answer causes. Exactly one ends the wait; who comes later learns who did."""
    found = _open_interrupt(run, given)
    node = flow.nodes[given.node_id]
    if given.interrupt_id is not None and found.profile == AUTH_REQUIRED:
        raise Forbidden("This gate takes answers with a key only, not by link.")
    if found.resume_schema is not None and (
        problems := schema.problems(found.resume_schema, given.value)
    ):
        raise BadRequest(f"The answer does not fit: {problems[0]}", fields=problems)
    if found.kind.startswith("conversation."):
        events = decide.talk(run, flow, node, given)
        return [*taken(run, node, events, given.at), *events]
    return ANSWERS.get(found.kind, _custom)(run, flow, node, found, given)


def _open_interrupt(run: Run, given: Answer) -> Interrupt:
    found = run.interrupts.get(given.node_id)
    if found is None or given.interrupt_id not in (None, found.interrupt_id):
        raise too_late(run, given.node_id)
    refuse_paused(run)
    if run.replayed:
        raise Conflict("A replay only says again what was recorded.", runId=run.run_id)
    if found.due is not None and given.at >= found.due:
        raise InterruptAlreadyResolved(
            "It ran out of time.", runId=run.run_id, nodeId=given.node_id, reason="timeout"
        )
    return found


def refuse_paused(run: Run) -> None:
    if run.status is Status.PAUSED:
        raise RunPaused(run.run_id)


def too_late(run: Run, node_id: str) -> MootError:
    winner = run.answered.get(node_id)
    if winner is not None:
        details = {"resolvedAt": iso(winner.at * 1000)}
        if winner.by:
            details["resolvedBy"] = winner.by
        if winner.action is not None:
            details["action"] = winner.action
        happened = f"Already answered by {winner.by}." if winner.by else "It ran out of time."
        return InterruptAlreadyResolved(happened, runId=run.run_id, nodeId=node_id, **details)
    state = run.nodes.get(node_id)
    if run.status is Status.CANCELLED and state is not None:
        if run.with_parent:
            return InterruptGone("The run was cancelled with its parent.", runId=run.run_id)
        return InterruptCancelled("The run was cancelled while it waited.", runId=run.run_id)
    if run.terminal and state is not None:
        return InterruptAlreadyResolved(
            "The run has ended.", runId=run.run_id, nodeId=node_id, runStatus=run.status.value
        )
    return InterruptNotFound(run.run_id, node_id)


def _external(
    run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer
) -> list[NewEvent]:
    wanted = found.data["correlation"]
    if not isinstance(given.value, dict):
        raise BadRequest("An external event is an object.", field="resumeValue")
    wrong = [key for key, value in wanted.items() if not same(given.value.get(key, UNSET), value)]
    if wrong:
        raise CorrelationMismatch(
            f"The event does not match in {', '.join(wrong)}.", mismatched=wrong
        )
    outputs = {"event": given.value, **given.value}
    return [
        *ended(node, found, given, given.value, []),
        completed(run, node, outputs, given.at),
    ]


def _custom(
    run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer
) -> list[NewEvent]:
    outputs = given.value if isinstance(given.value, dict) else {"value": given.value}
    return [
        *ended(node, found, given, given.value, []),
        completed(run, node, outputs, given.at),
    ]


def _ratified(
    run: Run, flow: Flow, node: FlowNode, found: Interrupt, given: Answer
) -> list[NewEvent]:
    """The node goes on with what a person has made of its decision; of a supervisor, what is none
    is refused."""
    if not given.who.speaks_for_people:  # else whoever was not sure would be asked by itself
        raise Forbidden("This waits for a person; no agent passes it.")
    decision = escalations.ratified(given.value, found.data.get("decision"))
    if decision is not None and node.type.type_id == SUPERVISOR:
        order_of(decision)
    value: dict[str, Any] = {"action": "reject"}
    if decision is not None:  # it stays the decision of who wanted to take it
        value = {"action": "accept", "decision": decision, "agentId": found.data.get("agentId")}
    return ended(node, found, given, value, [])


ANSWERS = {
    "approval": approvals.answer,
    "clarification": clarifications.answer,
    "low-confidence": _ratified,
    "external-event": _external,
}


def expired(run: Run, flow: Flow, node: FlowNode, found: Interrupt, at: int) -> list[NewEvent]:
    """Nobody answered in time. Nothing is ever approved by waiting."""
    resolved = {
        "nodeId": node.id,
        "interruptId": found.interrupt_id,
        "kind": found.kind,
        "resolvedAt": iso(at * 1000),
        "outcome": "rejected",
        "reason": "timeout",
    }
    events = []
    talk = run.conversations.get(node.id)
    if found.kind.startswith("conversation.") and talk is not None and talk.open:
        turn = turns.system_turn(talk, "The conversation timed out.", at)
        events.append(turns.closed(talk, node, turn, None))
        events += turns.own_echo(run, flow, node, turn, at)
    events.append(NewEvent("interrupt.resolved", resolved, node.id, cause=found.seq))
    if found.kind == "approval":
        payload = {"nodeId": node.id, "action": "timeout", "decidedAt": iso(at * 1000)}
        events.append(NewEvent("approval.received", payload, node.id))
    if found.kind == "approval" and node.type.attests:  # it goes on without what it asked about
        resumed = {"nodeId": node.id, "interruptId": found.interrupt_id}
        value = {"action": "timeout"}
        return [*events, NewEvent("node.resumed", {**resumed, "resumeValue": value}, node.id)]
    if node.definition.config.get("onTimeout") == "complete" and found.kind != "approval":
        events.append(completed(run, node, {"outcome": None, "timedOut": True}, at))
    else:
        error = NodeError(
            code="interrupt_timeout", message="Nobody answered in time.", retryable=False
        )
        events.append(failed(run, node, error))
    return events
