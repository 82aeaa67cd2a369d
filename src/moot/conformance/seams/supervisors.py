"""Seams of supervisors: waves of workers, a loop of turns, an attested child."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.http.request import Reply, Request, encode
from moot.conformance.seams.setup import (
    node,
    read_log,
    register_workflow,
    seam,
    start_workflow,
    wait_for_run,
    workflow,
)
from moot.core.commands import CancelRun
from moot.core.errors import Unprocessable
from moot.core.events import Event, payload_fields
from moot.core.json.canonical import canonical_digest
from moot.core.payloads.nodes import NodeDispatched, NodeResumed
from moot.core.payloads.supervisors import HandoffStepped, SupervisorDecided, WorkersJoined
from moot.core.runs.answers import GateAnswer
from moot.core.speaker import Speaker
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.flow import definition_digest
from moot.core.workflows.node_types import ATTESTATION

MOST_TURNS = 100
#: Confidence of a decision that a person must review.
UNSURE = 0.3
DONE = {"kind": "terminate", "reason": "goal-reached"}
PREFIX = "conformance-seam"
WORKER = workflow(f"{PREFIX}-worker", [node("work")])

Turn = Annotated[int, Meta(ge=1, le=MOST_TURNS)]
Names = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(min_length=1, max_length=64)
]


class FanOut(Struct, frozen=True, rename="camel"):
    next_worker_ids: Names
    config: dict[str, object] = {}


class PerItem(Struct, frozen=True, rename="camel"):
    next_worker_ids: Names
    next_worker_inputs: list[dict[str, object]] = []


class AgentLoop(Struct, frozen=True, rename="camel"):
    """A loop of turns. This host has no workspace, so ``workspaceWriteAtTurn`` is ignored."""

    turns: Turn = 1
    suspend_at_turn: Turn | None = None
    resume: bool = False
    workspace_write_at_turn: Turn | None = None


class ChildAttestation(Struct, frozen=True, rename="camel"):
    child_outputs: Annotated[dict[str, object], Meta(max_length=100)]
    output_attestation: dict[str, object] = {}
    approval_action: str | None = None
    edited_artifact_data: Any | UnsetType = UNSET


def _supervisor_workflow(
    name: str, plan: Sequence[Mapping[str, object]], config: Mapping[str, object]
) -> dict[str, object]:
    nodes = [node("supervisor", SUPERVISOR, {"plan": plan}), node("dispatch", DISPATCH, config)]
    return workflow(name, nodes, ("supervisor", "dispatch"), ("dispatch", "supervisor"))


# -- waves of workers ----------------------------------------------------------------------------


async def fan_out_workers(request: Request) -> Reply:
    body = await request.read(FanOut)
    run, events = await _run_supervisor(request, body.next_worker_ids, body.config, {})
    joins = [payload_fields(event) for event in events if isinstance(event.payload, WorkersJoined)]
    if not joins:
        raise _join_failure(run)
    ends = {
        step.child_run_id: step.phase.removeprefix("child.")
        for event in events
        if isinstance(step := event.payload, HandoffStepped) and step.phase.startswith("child.")
    }
    order = joins[0]["mergeOrder"]
    children = [{"childRunId": child, "childStatus": ends[child]} for child in order]
    return Reply({"runId": run.run_id, "children": children, **joins[0]})


async def dispatch_per_item(request: Request) -> Reply:
    """Return the inputs of each worker of a wave.

    A decision has no field for inputs of single workers, so a request with some is refused like any
    invalid decision.
    """
    body = await request.read(PerItem)
    more = {"nextWorkerInputs": body.next_worker_inputs} if body.next_worker_inputs else {}
    run, events = await _run_supervisor(request, body.next_worker_ids, {}, more)
    if run.status != "completed":
        raise _join_failure(run)
    host, tenant = request.services.host, request.caller.tenant
    children = [e.payload.child_run_id for e in events if isinstance(e.payload, NodeDispatched)]
    inputs = [(await host.view(tenant, child)).run.inputs for child in children]
    return Reply({"runId": run.run_id, "children": [{"inputs": each} for each in inputs]})


def _join_failure(run: Run) -> Unprocessable:
    message = "The workers did not come together." if run.error is None else run.error.message
    return Unprocessable(message, runId=run.run_id)


async def _run_supervisor(
    request: Request, workers: list[str], config: Mapping[str, object], more: Mapping[str, object]
) -> tuple[Run, list[Event]]:
    """Run a supervisor that dispatches to these workers. Return its end state and its log."""
    names = [re.sub(r"[^a-z0-9_-]", "-", worker.lower()) for worker in workers]
    for name in dict.fromkeys(names):
        if await request.services.store.definition(request.caller.tenant, name) is None:
            await register_workflow(request, workflow(name, [node("work")]))
    plan: list[Mapping[str, object]] = [
        {"kind": "next-worker", "nextWorkerIds": names, **more},
        DONE,
    ]
    #: Each wave gets its own workflow, because their runs may overlap.
    wave = f"conformance-wave-{definition_digest(encode([plan, config]))[:16]}"
    flow = await register_workflow(request, _supervisor_workflow(wave, plan, config))
    run_id = await start_workflow(request, flow)
    run = await wait_for_run(request, run_id, lambda run: run.terminal)
    return run, await read_log(request, run_id)


# -- a loop of turns -----------------------------------------------------------------------------


async def _start_with_worker(
    request: Request, body: Mapping[str, object], inputs: Mapping[str, object]
) -> Run:
    """Return the run of the workflow once it has ended or asks a question."""
    await register_workflow(request, WORKER)
    run_id = await start_workflow(request, await register_workflow(request, body), inputs)
    return await wait_for_run(request, run_id, _is_settled)


def _is_settled(run: Run) -> bool:
    return run.terminal or bool(run.interrupts)


async def _answer_run(request: Request, run_id: str, node_id: str, value: dict[str, object]) -> Run:
    services, who = request.services, Speaker(request.caller.id, admin=True)
    command = GateAnswer(node_id=node_id, value=value, who=who, at=services.clock.millis())
    await services.host.handle(request.caller.tenant, run_id, command)
    return await wait_for_run(request, run_id, _is_settled)


async def _cancel_run(request: Request, run_id: str) -> Run:
    """Cancel a run that waits for an answer, so that none is left behind."""
    command = CancelRun(request.services.clock.millis(), "nobody-answered")
    return await request.services.host.handle(request.caller.tenant, run_id, command)


async def run_agent_loop(request: Request) -> Reply:
    body = await request.read(AgentLoop)
    run, resumed = await _start_with_worker(request, _loop_workflow(body), {}), False
    if run.interrupts and body.resume:
        run, resumed = (
            await _answer_run(request, run.run_id, "dispatch", {"action": "accept"}),
            True,
        )
    if not run.terminal:
        await _cancel_run(request, run.run_id)
    log = await read_log(request, run.run_id)
    decided = [event for event in log if isinstance(event.payload, SupervisorDecided)]
    answer: dict[str, object] = {"decisions": [payload_fields(event) for event in decided]}
    if resumed:
        answer["resumedIteration"] = _resumed_turn(log)
    return Reply(answer)


def _loop_workflow(body: AgentLoop) -> dict[str, object]:
    """Return a supervisor that dispatches to the worker in each turn but the last."""
    plan: list[dict[str, object]] = [
        {"kind": "next-worker", "nextWorkerIds": [WORKER["id"]]} for _ in range(body.turns - 1)
    ]
    plan.append({**DONE})
    suspends = body.suspend_at_turn or 0
    if 0 < suspends <= body.turns:
        plan[suspends - 1]["confidence"] = UNSURE
    return _supervisor_workflow(f"{PREFIX}-loop-{body.turns}-{suspends}", plan, {})


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
    run = await _start_with_worker(request, _attestation_workflow(body), inputs)
    if run.interrupts and body.approval_action is not None:
        value: dict[str, object] = {"action": body.approval_action}
        if body.approval_action == "edit-accept":
            edited = body.edited_artifact_data
            value["editedArtifactData"] = body.child_outputs if edited is UNSET else edited
        run = await _answer_run(request, run.run_id, "sub", value)
    if not run.terminal:
        run = await _cancel_run(request, run.run_id)
    log = await read_log(request, run.run_id)
    outputs = run.nodes["sub"].outputs or {}
    merged = run.status is Status.COMPLETED and outputs.get("merged", True)
    attestation = outputs.get("attestation", {})
    answer = {"attestation": attestation, "harvestedEvent": _harvest_payload(log)}
    if merged:
        names = [name for name in body.child_outputs if name in run.variables]
        answer["mergedValues"] = {name: run.variables[name] for name in names}
    return Reply({**answer, "merged": merged})


def _attestation_workflow(body: ChildAttestation) -> dict[str, object]:
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
    return workflow(name, [node("sub", "core.subWorkflow", config)])


def _harvest_payload(log: list[Event]) -> dict[str, object] | None:
    phases = [payload_fields(e) for e in log if isinstance(e.payload, HandoffStepped)]
    return next((payload for payload in phases if payload["phase"] == "output.harvested"), None)


SUPERVISOR_SEAMS = (
    seam("dispatch/fanout", fan_out_workers, FanOut),
    seam("dispatch/per-item", dispatch_per_item, PerItem),
    seam("agentloop/run", run_agent_loop, AgentLoop),
    seam("subrun/attest", attest_child, ChildAttestation),
)
