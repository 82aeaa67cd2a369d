"""Carry out a supervisor's decisions through its dispatch node, turn by turn.

Every decision is recorded before anything follows from it.
"""

from collections.abc import Mapping

from msgspec import UNSET, Struct

from moot.core.children import handoff, peer_requests, tree_limit
from moot.core.children.decide import child_spec, secret_seeds
from moot.core.errors import BadRequest
from moot.core.events import NewEvent
from moot.core.ids import derived_id
from moot.core.interrupts import decide, escalations
from moot.core.payloads.base import RecordedError
from moot.core.payloads.nodes import NodeDispatched
from moot.core.payloads.runs import CapBreached, RunCompleted
from moot.core.payloads.supervisors import FannedOut, PeerAsked, SupervisorDecided
from moot.core.runs.advance import node_completed_event, node_failed_event
from moot.core.runs.child_outputs import ChildReport
from moot.core.runs.finish import cancel_active_nodes, fail_at_limit
from moot.core.runs.nodes import running_attempt
from moot.core.runs.readiness import PortProblem
from moot.core.state.node import NodeState
from moot.core.state.run import Run
from moot.core.state.status import NodeStatus
from moot.core.supervisors.worker_join import WorkerJoin, join_policy
from moot.core.supervisors.workers import fail_node, give_up_workers
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.node_types import ConversationSpec, Decided, GateSpec, NodeError
from moot.core.workflows.peer_ids import is_peer_id
from moot.core.workflows.supervisor_decisions import ROUTINGS, parse_decision
from moot.core.workflows.turn_inputs import next_iteration


class WorkerRefused(Struct, frozen=True):
    """A worker that a dispatch node asked for cannot be started."""

    node_id: str
    worker: str
    error: NodeError
    at: int
    #: the children that the run still counts as living
    seen: dict[str, ChildReport] = {}


#: how many decisions a run may take by default
MOST_TURNS = 1000

# -- the supervisor ------------------------------------------------------------------------------


def finish_supervisor(
    run: Run, flow: Flow, node_id: str, attempt: int, outcome: Decided, at: int
) -> list[NewEvent]:
    """Record a supervisor's decision; an invalid one fails its node."""
    state = running_attempt(run, node_id, attempt)
    if state is None:
        return []
    try:
        return _record_decision(run, flow, flow.nodes[node_id], state, outcome, at)
    except BadRequest as refusal:
        return fail_node(flow.nodes[node_id], state, refusal.code, refusal.message)


def _record_decision(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, outcome: Decided, at: int
) -> list[NewEvent]:
    """Take one turn of the supervisor. Raise BadRequest when the decision is invalid."""
    decision, routing = parse_decision(outcome.decision)
    previous = run.orchestrator
    if previous is not None and previous.agent_id != outcome.agent_id:
        raise BadRequest(
            f"The supervisor of this run is {previous.agent_id}; {outcome.agent_id} cannot decide.",
            agentId=outcome.agent_id,
        )
    if previous is not None and previous.over:
        raise BadRequest("The supervisor has ended its work; it decides nothing more.")
    threshold = outcome.threshold
    if escalations.is_unsure(run, outcome.confidence, threshold) and not outcome.ratified:
        assert outcome.confidence is not None
        spec = escalations.low_confidence_gate(
            run, outcome.agent_id, outcome.confidence, decision, threshold
        )
        return decide.request_interrupt(run, flow, node, spec, at)
    turn = next_iteration(run)
    breach = _check_turn_limit(run, node, turn, at)
    if breach:
        return breach
    payload = SupervisorDecided(agent_id=outcome.agent_id, decision=decision, iteration=turn)
    hints = {"routing": routing} if routing else None
    event = NewEvent(payload, node.id, cause=state.started_seq, hints=hints)
    return [event, node_completed_event(node, state, {"decision": decision, "iteration": turn}, at)]


def _check_turn_limit(run: Run, node: FlowNode, turn: int, at: int) -> list[NewEvent]:
    """Fail the run beyond its turn limit. A turn that a person sends back counts once."""
    most = MOST_TURNS if run.limits.loop_iterations is UNSET else run.limits.loop_iterations
    own = node.definition.config.get("iterationCap", most)
    limit = min(own, most)
    if turn <= limit:
        return []
    bound = "orchestrator-iterations" if own < most else "loop-iterations"
    return _fail_at_loop_limit(run, node, (bound, limit), turn, at)


def _fail_at_loop_limit(
    run: Run, node: FlowNode, cap: tuple[str, int], observed: int, at: int
) -> list[NewEvent]:
    """Fail the run. The protocol has one kind for loops; ``bound`` says which limit it was."""
    bound, limit = cap
    breach = CapBreached(
        kind="loop-iterations", limit=limit, observed=observed, node_id=node.id, bound=bound
    )
    allowance = (
        f"hand work to {limit} workers" if bound == "dispatch-iterations" else f"take {limit} turns"
    )
    error = RecordedError(
        code="loop_limit_exceeded",
        message=f"The supervisor may {allowance} and wanted one more.",
        details={"iteration": observed, "bound": bound},
    )
    return fail_at_limit(run, breach, error, at)


# -- the dispatch node ---------------------------------------------------------------------------


def dispatch_decision(
    run: Run, flow: Flow, node_id: str, at: int, sealed: Mapping[str, object] | None = None
) -> list[NewEvent]:
    """Take the next step of a dispatch node: carry out the decision or begin a child."""
    state, node = run.nodes.get(node_id), flow.nodes[node_id]
    if not run.going or state is None or state.status is not NodeStatus.RUNNING:
        return []
    order = run.orchestrator
    if order is None or not order.decision:
        return fail_node(node, state, "no_pending_decision", "No supervisor has decided anything.")
    if escalations.is_weak(run) and not order.ratified and not state.children:
        if not state.answer:
            event, spec = escalations.escalate_decision(run, node)
            return [event, *decide.request_interrupt(run, flow, node, spec, at)]
        events = _apply_review(run, flow, node, state, at)
        if events:
            return events
    match order.decision.get("kind"):
        case "terminate":
            return _terminate(run, flow, node, state, at)
        case "ask-user" if state.answer:
            done = node_completed_event(node, state, {"answer": state.answer[0]}, at)
            done.hints = {"answer": state.answer[0]}
            return [done]
        case "ask-user":
            return decide.request_interrupt(run, flow, node, _question(run, node), at)
        case _:
            return _next_worker(run, flow, node, at, sealed or {})


def _apply_review(
    run: Run, flow: Flow, node: FlowNode, state: NodeState, at: int
) -> list[NewEvent]:
    """Apply a person's answer to a weak decision; return nothing when it stays as it is."""
    assert run.orchestrator is not None
    order = run.orchestrator
    value = state.answer[0]
    action = value.get("action") if isinstance(value, dict) else None
    if action == "reject":
        back = node_completed_event(node, state, {"rejected": True}, at)
        back.hints = {"rejected": True, "answer": value}
        return [back]
    if action != "edit-accept":
        return []
    decision, routing = parse_decision(value.get("editedArtifactData"))  # checked with the answer
    decision.pop("confidence", None)  # a person has decided
    payload = SupervisorDecided(
        agent_id=order.agent_id, decision=decision, iteration=order.iteration
    )
    hints = {"dispatch": node.id, **({"routing": routing} if routing else {})}
    decides = next(key for key, each in flow.nodes.items() if each.type.type_id == SUPERVISOR)
    return [NewEvent(payload, decides, hints=hints)]


def _terminate(run: Run, flow: Flow, node: FlowNode, state: NodeState, at: int) -> list[NewEvent]:
    """End the run, unless nodes come after the dispatch node."""
    assert run.orchestrator is not None
    decision = run.orchestrator.decision
    keys = ("reason", "successCriteria")
    outputs = {key: decision[key] for key in keys if key in decision}
    done = node_completed_event(node, state, outputs, at)
    if node.targets:
        return [done]
    payload = RunCompleted(outputs=outputs, duration_ms=max(0, at - run.started_at))
    end = NewEvent(payload, cause=run.orchestrator.decided_seq)
    return [done, *cancel_active_nodes(run, "terminated", [done]), end]


def _question(run: Run, node: FlowNode) -> GateSpec:
    """Return the supervisor's question to a person, routed by the decision or the config."""
    assert run.orchestrator is not None
    order = run.orchestrator
    prompt = order.decision["prompt"]
    routing = order.routing or node.definition.config.get("askUserRouting", "auto")
    word = next((raw for raw, way in ROUTINGS.items() if way == order.routing), None)
    if routing == "approval":
        data: dict[str, object] = {
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
    run: Run, flow: Flow, node: FlowNode, at: int, sealed: Mapping[str, object]
) -> list[NewEvent]:
    assert run.orchestrator is not None
    state = run.nodes[node.id]
    workers = run.orchestrator.decision["nextWorkerIds"]
    policy = node.definition.config.get("fanOutPolicy", "sequential")
    if policy == "reject" and len(workers) > 1:
        message = "This dispatch node hands work to one worker at a time."
        return fail_node(node, state, "fan_out_unsupported", message)
    join = join_policy(node.definition.config, workers)
    if join is not None and join.mode == "quorum" and join.quorum > len(workers):
        message = f"A quorum of {join.quorum} cannot come of {len(workers)} workers."
        return fail_node(node, state, "validation_error", message)
    number = state.children
    if number >= len(workers):
        return []
    away = is_peer_id(workers[number])
    share = tree_limit.next_share(run, flow, node.id, len(workers) - number, away)
    problem = _check_worker_limits(run, node, state, share, at)
    if problem:
        return problem
    events: list[NewEvent] = []
    if join is not None and not number:
        events.append(_fan_out_event(run, node, workers, join))
    first = run.next_sequence + len(events)
    if away:
        return [*events, *_ask_peer(run, node, at, sealed, first, share)]
    child = peer_requests.new_child_id(run, node.id, str(state.started_seq), str(number))
    hints = {"worker": number, "tree": share}
    return [
        *events,
        *handoff.worker_begun_events(run, node.id, workers[number], child, first, hints),
    ]


def _ask_peer(
    run: Run, node: FlowNode, at: int, sealed: Mapping[str, object], first: int, share: int
) -> list[NewEvent]:
    """Record the request to a worker on another host. It is sent once this is on disk."""
    assert run.orchestrator is not None
    state = run.nodes[node.id]
    worker = run.orchestrator.decision["nextWorkerIds"][state.children]
    try:
        spec = child_spec(run, node, at, sealed, state.children)
    except PortProblem as problem:
        return _refusal_events(run, node, state, worker, problem.error, first)
    assert spec is not None
    if hidden := secret_seeds(node, spec, sealed):
        error = peer_requests.secret_withheld_error(hidden)
        return _refusal_events(run, node, state, worker, error, first)
    decided = run.orchestrator.decided_seq
    began = handoff.handoff_event(run, node.id, "dispatch.began", worker, decided)
    return [began, peer_requests.peer_request_event(run, node, state, spec, share, state.children)]


def _check_worker_limits(
    run: Run, node: FlowNode, state: NodeState, share: int, at: int
) -> list[NewEvent]:
    assert run.orchestrator is not None
    cap = node.definition.config.get("iterationCap")
    if cap and run.orchestrator.dispatched >= cap:
        bound = ("dispatch-iterations", cap)
        return _fail_at_loop_limit(run, node, bound, run.orchestrator.dispatched + 1, at)
    error = tree_limit.child_refusal(run, share)
    return (
        [node_failed_event(node, error, state.attempt, state.started_seq)]
        if error is not None
        else []
    )


def _fan_out_event(run: Run, node: FlowNode, workers: list[str], join: WorkerJoin) -> NewEvent:
    assert run.orchestrator is not None
    payload = FannedOut(
        fan_out_policy="parallel",
        child_count=len(workers),
        max_concurrency=node.definition.config.get("maxConcurrency") or None,
        join_mode=join.mode,
    )
    return NewEvent(payload, node.id, cause=run.orchestrator.decided_seq)


def refuse_worker(run: Run, flow: Flow, command: WorkerRefused) -> list[NewEvent]:
    """Fail the node when it is the turn of a worker that cannot be started."""
    planned = dispatch_decision(run, flow, command.node_id, command.at, {})
    if not any(isinstance(new.payload, NodeDispatched | PeerAsked) for new in planned):
        return planned  # another step comes first
    state, node = run.nodes[command.node_id], flow.nodes[command.node_id]
    first = run.next_sequence
    return _refusal_events(run, node, state, command.worker, command.error, first, command.seen)


def _refusal_events(
    run: Run,
    node: FlowNode,
    state: NodeState,
    worker: str,
    error: NodeError,
    first: int,
    reports: dict[str, ChildReport] | None = None,
) -> list[NewEvent]:
    handoff_events = handoff.worker_refused_events(run, node.id, worker, error.as_payload(), first)
    return [
        *handoff_events,
        *give_up_workers(run, node, state, reports or {}),
        node_failed_event(node, error, state.attempt),
    ]
