"""The loop of a supervisor and its dispatch node: one decision, what it causes, and again.

Every decision is recorded before anything follows from it.
"""

from typing import Any

from msgspec import Struct

from moot.core.children import handoff, peer_requests, tree_limit
from moot.core.children.decide import next_child, secrets
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.interrupts import decide, escalations
from moot.core.runs import finish as ending
from moot.core.runs.advance import failed
from moot.core.runs.child_outputs import Seen
from moot.core.runs.nodes import at_work
from moot.core.runs.readiness import PortProblem
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.supervisors.join import Join, join_of
from moot.core.supervisors.workers import completed, failed_node, given_up
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow, FlowNode
from moot.core.workflows.node_types import ConversationSpec, Decided, GateSpec, NodeError
from moot.core.workflows.peer_ids import is_away
from moot.core.workflows.supervisor_orders import ROUTINGS, order_of
from moot.core.workflows.turn_inputs import next_iteration


class WorkerRefused(Struct, frozen=True):
    """A worker that a dispatch node wants cannot be started."""

    node_id: str
    worker: str
    error: NodeError
    at: int
    #: the children that live on as far as the run knows
    seen: dict[str, Seen] = {}


#: decisions of one run, unless it is told otherwise
MOST_TURNS = 1000

# -- the supervisor ------------------------------------------------------------------------------


def finish(
    run: Run, flow: Flow, node_id: str, attempt: int, outcome: Decided, at: int
) -> list[NewEvent]:
    """What a supervisor has decided; what cannot be a decision fails its node."""
    state = at_work(run, node_id, attempt)
    if state is None:
        return []
    try:
        return _decided(run, flow, flow.nodes[node_id], state, outcome, at)
    except BadRequest as refusal:
        return failed_node(flow.nodes[node_id], state, refusal.code, refusal.message)


def _decided(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, outcome: Decided, at: int
) -> list[NewEvent]:
    """One turn of the supervisor. Raises BadRequest when the decision cannot be one."""
    decision, routing = order_of(outcome.decision)
    known = run.orchestrator
    if known is not None and known.agent_id != outcome.agent_id:
        raise BadRequest(
            f"The supervisor of this run is {known.agent_id}; {outcome.agent_id} cannot decide.",
            agentId=outcome.agent_id,
        )
    if known is not None and known.over:
        raise BadRequest("The supervisor has ended its work; it decides nothing more.")
    usual = outcome.threshold
    if escalations.is_unsure(run, outcome.confidence, usual) and not outcome.ratified:
        assert outcome.confidence is not None
        spec = escalations.held(run, outcome.agent_id, outcome.confidence, decision, usual)
        return decide.request(run, flow, node, spec, at)
    turn = next_iteration(run)
    breach = _too_many(run, node, turn, at)
    if breach:
        return breach
    payload = {"agentId": outcome.agent_id, "decision": decision, "iteration": turn}
    hints = {"routing": routing} if routing else None
    event = NewEvent(
        "runOrchestrator.decided", payload, node.id, cause=state.started_seq, hints=hints
    )
    return [event, completed(node, state, {"decision": decision, "iteration": turn}, at)]


def _too_many(run: Run, node: FlowNode, turn: int, at: int) -> list[NewEvent]:
    """A turn counts once, however often a person gives its decision back."""
    most = run.limits.get("loopIterations", MOST_TURNS)
    own = node.definition.config.get("iterationCap", most)
    limit = min(own, most)
    if turn <= limit:
        return []
    bound = "orchestrator-iterations" if own < most else "loop-iterations"
    return _breach(run, node, (bound, limit), turn, at)


def _breach(
    run: Run, node: FlowNode, cap: tuple[str, int], observed: int, at: int
) -> list[NewEvent]:
    """The published kinds know loops only; which bound of a loop it was is said beside."""
    bound, limit = cap
    said = {"kind": "loop-iterations", "limit": limit, "observed": observed, "nodeId": node.id}
    may = (
        f"hand work to {limit} workers" if bound == "dispatch-iterations" else f"take {limit} turns"
    )
    error = {
        "code": "loop_limit_exceeded",
        "message": f"The supervisor may {may} and wanted one more.",
        "details": {"iteration": observed, "bound": bound},
    }
    return ending.breach(run, {**said, "bound": bound}, error, at)


# -- the dispatch node ---------------------------------------------------------------------------


def dispatch(
    run: Run, flow: Flow, node_id: str, at: int, sealed: dict[str, Any] | None = None
) -> list[NewEvent]:
    """The next step of a dispatch node: carry out the decision, or begin one more child."""
    state, node = run.nodes.get(node_id), flow.nodes[node_id]
    if not run.going or state is None or state.status is not NodeStatus.RUNNING:
        return []
    order = run.orchestrator
    if order is None or not order.decision:
        return failed_node(
            node, state, "no_pending_decision", "No supervisor has decided anything."
        )
    if escalations.is_weak(run) and not order.ratified and not state.children:
        if not state.answer:
            event, spec = escalations.escalated(run, node)
            return [event, *decide.request(run, flow, node, spec, at)]
        changed = _as_answered(run, flow, node, state, at)
        if changed:
            return changed
    match order.decision.get("kind"):
        case "terminate":
            return _terminate(run, flow, node, state, at)
        case "ask-user" if state.answer:
            done = completed(node, state, {"answer": state.answer[0]}, at)
            done.hints = {"answer": state.answer[0]}
            return [done]
        case "ask-user":
            return decide.request(run, flow, node, _question(run, node), at)
        case _:
            return _next_worker(run, flow, node, at, sealed or {})


def _as_answered(run: Run, flow: Flow, node: FlowNode, state: NodeState, at: int) -> list[NewEvent]:
    """What a person has made of a weak decision; nothing when it is carried out as it is."""
    assert run.orchestrator is not None
    order = run.orchestrator
    value = state.answer[0]
    action = value.get("action") if isinstance(value, dict) else None
    if action == "reject":
        back = completed(node, state, {"rejected": True}, at)
        back.hints = {"rejected": True, "answer": value}
        return [back]
    if action != "edit-accept":
        return []
    decision, routing = order_of(value.get("editedArtifactData"))  # checked when it was answered
    decision.pop("confidence", None)  # a person has said it
    payload = {"agentId": order.agent_id, "decision": decision, "iteration": order.iteration}
    hints = {"dispatch": node.id, **({"routing": routing} if routing else {})}
    decides = next(key for key, each in flow.nodes.items() if each.type.type_id == SUPERVISOR)
    return [NewEvent("runOrchestrator.decided", payload, decides, hints=hints)]


def _terminate(run: Run, flow: Flow, node: FlowNode, state: NodeState, at: int) -> list[NewEvent]:
    """The run is over, unless the workflow has something for afterwards."""
    assert run.orchestrator is not None
    decision = run.orchestrator.decision
    kept = ("reason", "successCriteria")
    outputs: dict[str, Any] = {key: decision[key] for key in kept if key in decision}
    done = completed(node, state, outputs, at)
    if node.targets:
        return [done]
    payload = {"outputs": outputs, "durationMs": max(0, at - run.started_at)}
    end = NewEvent("run.completed", payload, cause=run.orchestrator.decided_seq)
    return [done, *ending.stop_active(run, "terminated", [done]), end]


def _question(run: Run, node: FlowNode) -> GateSpec:
    """A question of the supervisor to a person, as the config or the decision routes it."""
    assert run.orchestrator is not None
    order = run.orchestrator
    prompt = order.decision["prompt"]
    routing = order.routing or node.definition.config.get("askUserRouting", "auto")
    word = next((raw for raw, way in ROUTINGS.items() if way == order.routing), None)
    if routing == "approval":
        data: dict[str, Any] = {
            "artifactId": derived_id("art_", run.run_id, str(order.decided_seq)),
            "artifactType": "question",
            "title": prompt,
            "actions": ["accept", "reject"],
        }
        return GateSpec(kind="approval", data=data, escalation=word)
    if routing == "clarification":
        data = {"questions": [{"id": "answer", "question": prompt}]}
        return GateSpec(kind="clarification", data=data, escalation=word)
    attempt = run.nodes[node.id].attempt
    data = {
        "conversationId": f"{run.run_id}:{node.id}:{attempt}",
        "prompt": prompt,
        "turnIndex": 1,
    }
    spec = ConversationSpec(opening=prompt, owner=order.agent_id)
    return GateSpec(kind="conversation.exchange", data=data, conversation=spec)


def _next_worker(
    run: Run, flow: Flow, node: FlowNode, at: int, sealed: dict[str, Any]
) -> list[NewEvent]:
    assert run.orchestrator is not None
    state = run.nodes[node.id]
    workers = run.orchestrator.decision["nextWorkerIds"]
    policy = node.definition.config.get("fanOutPolicy", "sequential")
    if policy == "reject" and len(workers) > 1:
        message = "This dispatch node hands work to one worker at a time."
        return failed_node(node, state, "fan_out_unsupported", message)
    join = join_of(node.definition.config, workers)
    if join is not None and join.mode == "quorum" and join.quorum > len(workers):
        message = f"A quorum of {join.quorum} cannot come of {len(workers)} workers."
        return failed_node(node, state, "validation_error", message)
    number = state.children
    if number >= len(workers):
        return []
    away = is_away(workers[number])
    share = tree_limit.share(run, flow, node.id, len(workers) - number, away)
    problem = _not_allowed(run, node, state, share, at)
    if problem:
        return problem
    events: list[NewEvent] = []
    if join is not None and not number:
        events.append(_fan_out(run, node, workers, join))
    first = run.next_sequence + len(events)
    if away:
        return [*events, *_ask(run, node, at, sealed, first, share)]
    child = peer_requests.child_id(run, node.id, str(state.started_seq), str(number))
    hints = {"worker": number, "tree": share}
    return [*events, *handoff.begun(run, node.id, workers[number], child, first, hints)]


def _ask(
    run: Run, node: FlowNode, at: int, sealed: dict[str, Any], first: int, share: int
) -> list[NewEvent]:
    """Hand the work to a worker on another host: it is asked once this is on disk."""
    assert run.orchestrator is not None
    state = run.nodes[node.id]
    worker = run.orchestrator.decision["nextWorkerIds"][state.children]
    try:
        spec = next_child(run, node, at, sealed, state.children)
    except PortProblem as problem:
        return _turned_away(run, node, state, worker, problem.error, first)
    assert spec is not None
    if hidden := secrets(node, spec, sealed):
        error = peer_requests.withheld(hidden)
        return _turned_away(run, node, state, worker, error, first)
    decided = run.orchestrator.decided_seq
    began = handoff.step(run, node.id, "dispatch.began", worker, decided)
    return [began, peer_requests.asked(run, node, state, spec, share, state.children)]


def _not_allowed(run: Run, node: FlowNode, state: NodeState, share: int, at: int) -> list[NewEvent]:
    assert run.orchestrator is not None
    cap = node.definition.config.get("iterationCap")
    if cap and run.orchestrator.dispatched >= cap:
        bound = ("dispatch-iterations", cap)
        return _breach(run, node, bound, run.orchestrator.dispatched + 1, at)
    error = tree_limit.refusal(run, share)
    return [failed(node, error, state.attempt, state.started_seq)] if error is not None else []


def _fan_out(run: Run, node: FlowNode, workers: list[str], join: Join) -> NewEvent:
    assert run.orchestrator is not None
    payload: dict[str, Any] = {"fanOutPolicy": "parallel", "childCount": len(workers)}
    if node.definition.config.get("maxConcurrency"):
        payload["maxConcurrency"] = node.definition.config["maxConcurrency"]
    payload["joinMode"] = join.mode
    cause = run.orchestrator.decided_seq
    return NewEvent("core.dispatch.fanOut", payload, node.id, cause=cause)


def refused(run: Run, flow: Flow, told: WorkerRefused) -> list[NewEvent]:
    """A worker that cannot be started fails the node at once, when it is its turn."""
    planned = dispatch(run, flow, told.node_id, told.at, {})
    if not any(new.type in ("node.dispatched", "moot.peer.asked") for new in planned):
        return planned  # something else comes first
    state, node = run.nodes[told.node_id], flow.nodes[told.node_id]
    first = run.next_sequence
    return _turned_away(run, node, state, told.worker, told.error, first, told.seen)


def _turned_away(
    run: Run,
    node: FlowNode,
    state: NodeState,
    worker: str,
    error: NodeError,
    first: int,
    seen: dict[str, Seen] | None = None,
) -> list[NewEvent]:
    told = handoff.refused(run, node.id, worker, error.as_payload(), first)
    return [*told, *given_up(run, node, state, seen or {}), failed(node, error, state.attempt)]
