"""Seams ``agentloop/run`` and ``subrun/attest``: supervisors and children."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.http.request import Reply, Request, encode
from moot.core.commands import CancelRun
from moot.core.errors import Unavailable
from moot.core.events import Event, payload_fields
from moot.core.json.canonical import canonical_digest
from moot.core.payloads.nodes import NodeResumed
from moot.core.payloads.supervisors import HandoffStepped, SupervisorDecided
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.node_types import ATTESTATION
from moot.engine.start import RunOrder, start_run

MOST_TURNS = 100
#: Seconds to wait for a run that neither ends nor asks.
PATIENCE = 100
PREFIX = "conformance-seam"
#: Confidence of a decision that a person must review.
UNSURE = 0.3

Turn = Annotated[int, Meta(ge=1, le=MOST_TURNS)]


class AgentLoop(Struct, frozen=True, rename="camel"):
    """A loop of turns. This host has no workspace, so ``workspaceWriteAtTurn`` is ignored."""

    turns: Turn = 1
    suspend_at_turn: Turn | None = None
    resume: bool = False
    workspace_write_at_turn: Turn | None = None


class ChildAttestation(Struct, frozen=True, rename="camel"):
    child_outputs: Annotated[dict[str, Any], Meta(max_length=100)]
    output_attestation: dict[str, Any] = {}
    approval_action: str | None = None
    edited_artifact_data: Any | UnsetType = UNSET


def _workflow(name: str, nodes: list[dict[str, Any]], *edges: tuple[str, str]) -> dict[str, Any]:
    ties = [
        {"id": f"{source}>{target}", "sourceNodeId": source, "targetNodeId": target}
        for source, target in edges
    ]
    rest: dict[str, Any] = {"triggers": [], "variables": [], "metadata": {}, "settings": {}}
    return {"id": name, "name": name, "version": "1.0", "nodes": nodes, "edges": ties, **rest}


def _node(name: str, type_id: str, config: dict[str, Any]) -> dict[str, Any]:
    place = {"x": 0, "y": 0}
    return {"id": name, "typeId": type_id, "name": name, "position": place, "config": config,
            "inputs": {}}  # fmt: skip


WORKER = _workflow(f"{PREFIX}-worker", [_node("work", "core.noop", {})])


async def _start_workflow(request: Request, body: dict[str, Any], inputs: dict[str, Any]) -> str:
    services, tenant = request.services, request.caller.tenant
    for each in (WORKER, body):
        flow = await services.host.flows.register(tenant, encode(each))
    order = RunOrder(
        tenant=tenant, principal=request.caller.id, workflow_id=flow.definition.id, inputs=inputs
    )
    return (await start_run(services.host, order)).run_id


async def _wait_until_settled(request: Request, run_id: str) -> Run:
    """Return the run once it has ended or asks a question."""
    host, tenant = request.services.host, request.caller.tenant
    reader = host.hub.subscribe(run_id)
    try:
        for _ in range(PATIENCE):
            run = (await host.view(tenant, run_id)).run
            if run.terminal or run.interrupts:
                return run
            await reader.wait(1)
            reader.waiting.clear()
            reader.lagging = False
    finally:
        host.hub.unsubscribe(run_id, reader)
    raise Unavailable("The run takes too long.")


async def _answer_run(request: Request, run_id: str, node_id: str, value: dict[str, Any]) -> Run:
    services, who = request.services, Speaker(request.caller.id, admin=True)
    command = GateAnswer(node_id=node_id, value=value, who=who, at=services.clock.millis())
    await services.host.handle(request.caller.tenant, run_id, command)
    return await _wait_until_settled(request, run_id)


async def _cancel_run(request: Request, run_id: str) -> Run:
    """Cancel a run that waits for an answer, so that none is left behind."""
    command = CancelRun(request.services.clock.millis(), "nobody-answered")
    return await request.services.host.handle(request.caller.tenant, run_id, command)


async def _read_log(request: Request, run_id: str) -> list[Event]:
    host = request.services.host
    return await host.runs.log(await host.view(request.caller.tenant, run_id))


# -- a loop of turns -----------------------------------------------------------------------------


async def run_agent_loop(request: Request) -> Reply:
    body = await request.read(AgentLoop)
    run_id = await _start_workflow(request, _loop_workflow(body), {})
    run, resumed = await _wait_until_settled(request, run_id), False
    if run.interrupts and body.resume:
        run, resumed = await _answer_run(request, run_id, "dispatch", {"action": "accept"}), True
    if not run.terminal:
        await _cancel_run(request, run_id)
    log = await _read_log(request, run_id)
    answer: dict[str, Any] = {
        "decisions": [payload_fields(event) for event in log if _is_decision(event)]
    }
    if resumed:
        answer["resumedIteration"] = _resumed_turn(log)
    return Reply(answer)


def _loop_workflow(body: AgentLoop) -> dict[str, Any]:
    """Return a supervisor that dispatches to the worker in each turn but the last."""
    plan: list[dict[str, Any]] = [
        {"kind": "next-worker", "nextWorkerIds": [WORKER["id"]]} for _ in range(body.turns - 1)
    ]
    plan.append({"kind": "terminate", "reason": "goal-reached"})
    suspends = body.suspend_at_turn or 0
    if 0 < suspends <= body.turns:
        plan[suspends - 1]["confidence"] = UNSURE
    nodes = [_node("supervisor", SUPERVISOR, {"plan": plan}), _node("dispatch", DISPATCH, {})]
    name = f"{PREFIX}-loop-{body.turns}-{suspends}"
    return _workflow(name, nodes, ("supervisor", "dispatch"), ("dispatch", "supervisor"))


def _is_decision(event: Event) -> bool:
    return isinstance(event.payload, SupervisorDecided)


def _resumed_turn(log: list[Event]) -> int:
    """Return the turn that was under way when the run resumed."""
    turn = 0
    for event in log:
        if isinstance(event.payload, SupervisorDecided):
            turn = event.payload.iteration
        elif isinstance(event.payload, NodeResumed):
            break
    return turn


# -- an attested child ---------------------------------------------------------------------------


async def attest_child(request: Request) -> Reply:
    body = await request.read(ChildAttestation)
    inputs = {f"given:{name}": value for name, value in body.child_outputs.items()}
    run_id = await _start_workflow(request, _attestation_workflow(body), inputs)
    run = await _wait_until_settled(request, run_id)
    if run.interrupts and body.approval_action is not None:
        value: dict[str, Any] = {"action": body.approval_action}
        if body.approval_action == "edit-accept":
            edited = body.edited_artifact_data
            value["editedArtifactData"] = body.child_outputs if edited is UNSET else edited
        run = await _answer_run(request, run_id, "sub", value)
    if not run.terminal:
        run = await _cancel_run(request, run_id)
    log = await _read_log(request, run_id)
    outputs = run.nodes["sub"].outputs or {}
    merged = run.status is Status.COMPLETED and outputs.get("merged", True)
    answer = {
        "attestation": outputs.get("attestation", {}),
        "harvestedEvent": _harvest_payload(log),
    }
    if merged:
        merged_values = {
            name: run.variables[name] for name in body.child_outputs if name in run.variables
        }
        answer["mergedValues"] = merged_values
    return Reply({**answer, "merged": merged})


def _attestation_workflow(body: ChildAttestation) -> dict[str, Any]:
    """Return a workflow whose child returns what it was handed, under the same names."""
    names = list(body.child_outputs)
    config = {
        "workflowId": WORKER["id"],
        "inputMapping": {name: f"given:{name}" for name in names},
        "outputMapping": {name: name for name in names},
        "onChildFailure": "absorb",
        ATTESTATION: body.output_attestation,
    }
    name = f"{PREFIX}-attest-{canonical_digest(config)[:20]}"
    return _workflow(name, [_node("sub", "core.subWorkflow", config)])


def _harvest_payload(log: list[Event]) -> dict[str, Any] | None:
    phases = [payload_fields(e) for e in log if isinstance(e.payload, HandoffStepped)]
    return next((payload for payload in phases if payload["phase"] == "output.harvested"), None)
