"""Seams for supervisors and attested children of a host under trial: real workflows, really run."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.http.request import Reply, Request, encode
from moot.core.commands import CancelRun
from moot.core.errors import Unavailable
from moot.core.events import Event
from moot.core.json.canonical import digest
from moot.core.runs.answers import Answer
from moot.core.runs.start import StartRun
from moot.core.speaker import Speaker
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.workflows.definition import DISPATCH, SUPERVISOR
from moot.core.workflows.node_types import ATTESTED

MOST_TURNS = 100
#: looks at a run that neither ends nor asks
PATIENCE = 100
PREFIX = "conformance-seam"
#: how sure a supervisor is of a decision that a person shall look at
UNSURE = 0.3

Turn = Annotated[int, Meta(ge=1, le=MOST_TURNS)]


class Loop(Struct, frozen=True, rename="camel"):
    """A workspace is not offered: when it would be written to does not matter."""

    turns: Turn = 1
    suspend_at_turn: Turn | None = None
    resume: bool = False
    workspace_write_at_turn: Turn | None = None


class Attested(Struct, frozen=True, rename="camel"):
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


async def _begun(request: Request, body: dict[str, Any], inputs: dict[str, Any]) -> str:
    services, tenant = request.services, request.caller.tenant
    for each in (WORKER, body):
        flow = await services.host.flows.register(tenant, encode(each))
    flow = await services.host.flows.newest(tenant, flow.definition.id)
    command = StartRun(
        tenant=tenant,
        principal=request.caller.id,
        at=services.clock.millis(),
        limits=services.host.limits,
        inputs=inputs,
    )
    return (await services.host.create(flow, command)).run_id


async def _settled(request: Request, run_id: str) -> Run:
    """The run once it has ended or asks somebody."""
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


async def _answered(request: Request, run_id: str, node_id: str, value: dict[str, Any]) -> Run:
    services, who = request.services, Speaker(request.caller.id, admin=True)
    given = Answer(node_id=node_id, value=value, who=who, at=services.clock.millis())
    await services.host.handle(request.caller.tenant, run_id, given)
    return await _settled(request, run_id)


async def _given_up(request: Request, run_id: str) -> Run:
    """What nobody answers is not left behind."""
    command = CancelRun(request.services.clock.millis(), "nobody-answered")
    return await request.services.host.handle(request.caller.tenant, run_id, command)


async def _log(request: Request, run_id: str) -> list[Event]:
    host = request.services.host
    return await host.runs.log(await host.view(request.caller.tenant, run_id))


# -- a loop of turns -----------------------------------------------------------------------------


async def loop(request: Request) -> Reply:
    asked = await request.read(Loop)
    run_id = await _begun(request, _loop_of(asked), {})
    run, resumed = await _settled(request, run_id), False
    if run.interrupts and asked.resume:
        run, resumed = await _answered(request, run_id, "dispatch", {"action": "accept"}), True
    if not run.terminal:
        await _given_up(request, run_id)
    log = await _log(request, run_id)
    body: dict[str, Any] = {"decisions": [event.payload for event in log if _decides(event)]}
    if resumed:
        body["resumedIteration"] = _resumed_at(log)
    return Reply(body)


def _loop_of(asked: Loop) -> dict[str, Any]:
    """Each turn but the last hands work to the worker."""
    plan: list[dict[str, Any]] = [
        {"kind": "next-worker", "nextWorkerIds": [WORKER["id"]]} for _ in range(asked.turns - 1)
    ]
    plan.append({"kind": "terminate", "reason": "goal-reached"})
    suspends = asked.suspend_at_turn or 0
    if 0 < suspends <= asked.turns:
        plan[suspends - 1]["confidence"] = UNSURE
    nodes = [_node("supervisor", SUPERVISOR, {"plan": plan}), _node("dispatch", DISPATCH, {})]
    name = f"{PREFIX}-loop-{asked.turns}-{suspends}"
    return _workflow(name, nodes, ("supervisor", "dispatch"), ("dispatch", "supervisor"))


def _decides(event: Event) -> bool:
    return event.type == "runOrchestrator.decided"


def _resumed_at(log: list[Event]) -> int:
    """The turn that was under way when the run went on."""
    turn = 0
    for event in log:
        if _decides(event):
            turn = event.payload["iteration"]
        elif event.type == "node.resumed":
            break
    return turn


# -- an attested child ---------------------------------------------------------------------------


async def attest(request: Request) -> Reply:
    asked = await request.read(Attested)
    given = {f"given:{name}": value for name, value in asked.child_outputs.items()}
    run_id = await _begun(request, _attesting(asked), given)
    run = await _settled(request, run_id)
    if run.interrupts and asked.approval_action is not None:
        value: dict[str, Any] = {"action": asked.approval_action}
        if asked.approval_action == "edit-accept":
            edited = asked.edited_artifact_data
            value["editedArtifactData"] = asked.child_outputs if edited is UNSET else edited
        run = await _answered(request, run_id, "sub", value)
    if not run.terminal:
        run = await _given_up(request, run_id)
    log = await _log(request, run_id)
    outputs = run.nodes["sub"].outputs or {}
    merged = run.status is Status.COMPLETED and outputs.get("merged", True)
    body = {"attestation": outputs.get("attestation", {}), "harvestedEvent": _harvested(log)}
    if merged:
        kept = {name: run.variables[name] for name in asked.child_outputs if name in run.variables}
        body["mergedValues"] = kept
    return Reply({**body, "merged": merged})


def _attesting(asked: Attested) -> dict[str, Any]:
    """The child is handed what it shall give back, under the same names."""
    names = list(asked.child_outputs)
    config = {
        "workflowId": WORKER["id"],
        "inputMapping": {name: f"given:{name}" for name in names},
        "outputMapping": {name: name for name in names},
        "onChildFailure": "absorb",
        ATTESTED: asked.output_attestation,
    }
    name = f"{PREFIX}-attest-{digest(config)[:20]}"
    return _workflow(name, [_node("sub", "core.subWorkflow", config)])


def _harvested(log: list[Event]) -> dict[str, Any] | None:
    phases = [event.payload for event in log if event.type == "core.workflowChain.event"]
    return next((said for said in phases if said["phase"] == "output.harvested"), None)
