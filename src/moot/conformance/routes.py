"""Routes of the test seams, served only with ``--conformance``."""

import asyncio
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.conformance.capability_toggle import check_nodes
from moot.conformance.host import ConformanceSeams, seams_of
from moot.conformance.seams import (
    agents,
    conversation,
    dispatch,
    mock_ai,
    roster,
    scheduling,
    supervisors,
    trigger_bridge,
)
from moot.conformance.seams.governance import GateTrial, try_approval_gate
from moot.core.commands import SetVariables
from moot.core.errors import BadRequest
from moot.core.events import NewEvent, decode_head
from moot.engine.effects.ledger import Effect, EffectLedger

PROBE = "__probe__"
#: The run id with which a suite asks for a delivery that started no run.
EXHAUSTED = "__exhaust__"
PAGE = 1000


class CapabilityToggle(Struct, frozen=True, forbid_unknown_fields=True):
    name: str | UnsetType = UNSET
    value: bool | None = None
    reset: bool = False


class VariablesBody(Struct, frozen=True, forbid_unknown_fields=True):
    variables: dict[str, Any]


class LooseNode(Struct, frozen=True, rename="camel"):
    node_id: str
    type_id: str
    config: dict[str, Any] = {}


class LooseWorkflow(Struct, frozen=True, rename="camel"):
    workflow_id: str
    nodes: list[LooseNode]


class ConcurrentClaim(Struct, frozen=True):
    executors: int = 2


async def read_run_events(request: Request) -> Reply:
    """Return a run's log, filtered. The probe's run is empty.

    A subscription has a log of events that belong to no run: by its id, or as ``__exhaust__`` for
    the one whose delivery was given up last.
    """
    run_id = request.params["run_id"]
    if run_id == PROBE:
        return Reply({"events": []})
    if run_id == EXHAUSTED or run_id.startswith("sub_"):
        events = await (
            trigger_bridge.read_last_exhausted_log(request)
            if run_id == EXHAUSTED
            else trigger_bridge.read_subscription_log(request, run_id)
        )
        only = request.query.get("type")
        return Reply({"events": [event for event in events if only in (None, event["type"])]})
    wanted = {
        "type": request.query.get("type"),
        "causation_id": request.query.get("causationId"),
        "node_id": request.query.get("nodeId"),
    }
    tenant, matching, after = request.caller.tenant, [], -1
    await request.services.host.view(tenant, run_id)
    while rows := await request.services.store.read(tenant, run_id, after, PAGE):
        matching += [
            row for row in rows if _matches(row, wanted, request.query.get("correlationId"))
        ]
        after += len(rows)
    return Reply(b'{"events":[' + b",".join(matching) + b"]}")


def _matches(row: bytes, wanted: dict[str, str | None], correlation: str | None) -> bool:
    head = decode_head(row)
    same = all(value is None or getattr(head, name) == value for name, value in wanted.items())
    return same and (correlation is None or encode(correlation) in row)


async def reset_seams(request: Request) -> Reply:
    seams_of(request).reset()
    return Reply({"reset": True})


async def toggle_capability(request: Request) -> Reply:
    body = await request.read(CapabilityToggle)
    overlay = seams_of(request).overlay
    if body.reset:
        overlay.clear()
    elif body.name is UNSET:
        raise BadRequest("Send {name, value} or {reset: true}.")
    elif body.name != PROBE:
        if body.value is None:
            overlay.pop(body.name, None)
        else:
            overlay[body.name] = body.value
    return Reply({"overlay": overlay})


async def set_variables(request: Request) -> Reply:
    body = await request.read(VariablesBody)
    command = SetVariables(body.variables, request.services.clock.millis())
    tenant, run_id = request.caller.tenant, request.params["run_id"]
    run = await request.services.host.handle(tenant, run_id, command)
    return Reply({"runId": run_id, "variables": run.variables})


async def register_node_row(request: Request) -> Reply:
    """Register nodes without edges; they run one after another."""
    body = await request.read(LooseWorkflow)
    nodes = ((node.node_id, node.type_id, node.config) for node in body.nodes)
    check_nodes(seams_of(request).overlay, nodes)
    flow = await request.services.host.flows.register(
        request.caller.tenant, encode(_complete_workflow(body))
    )
    return Reply({"workflowId": flow.definition.id}, 201)


def _complete_workflow(body: LooseWorkflow) -> dict[str, Any]:
    nodes = [
        {
            "id": node.node_id,
            "typeId": node.type_id,
            "name": node.node_id,
            "position": {"x": 200 * number, "y": 0},
            "config": node.config,
            "inputs": {},
        }
        for number, node in enumerate(body.nodes)
    ]
    edges = [
        {"id": f"e{number}", "sourceNodeId": before.node_id, "targetNodeId": after.node_id}
        for number, (before, after) in enumerate(zip(body.nodes, body.nodes[1:], strict=False))
    ]
    return {
        "id": body.workflow_id,
        "name": body.workflow_id,
        "version": "1.0",
        "nodes": nodes,
        "edges": edges,
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": [],
        "metadata": {},
        "settings": {},
    }


class _ClaimReporter:
    """A reporter for a claim outside of any run, so that the ledger decides alone."""

    def __init__(self, tenant: str, run_id: str) -> None:
        self.tenant, self.run_id, self.node_id, self.attempt = tenant, run_id, "claim", 1
        self.earlier = self.inherited = 0
        self.charged: tuple[str, ...] = ()
        self.payer: str | None = None

    async def warn(self, message: str) -> None:
        """Ignore the warning."""

    async def recorded(self, *events: NewEvent) -> None:
        await asyncio.sleep(0)


async def race_claim(request: Request) -> Reply:
    """Let several executors claim one effect at once. The ledger lets one deliver."""
    body = await request.read(ConcurrentClaim)
    if not 1 <= body.executors <= 1000:
        raise BadRequest("executors must be 1 to 1000.", field="executors")
    ledger: EffectLedger = request.services.host.activities.ledger
    notebook = _ClaimReporter(request.caller.tenant, request.services.clock.new_id("run_"))
    delivered: list[str] = []

    async def deliver(name: str) -> str:
        await asyncio.sleep(0)
        delivered.append(name)
        return name

    minted = await asyncio.gather(
        *(
            ledger.once(notebook, Effect(1, "conformance:claim", deliver))
            for _ in range(body.executors)
        )
    )
    return Reply({"mintedIds": minted, "attempted": body.executors, "delivered": len(delivered)})


def _seam(method: str, path: str, call: Any, body: Any = None, status: int = 200) -> Endpoint:
    place = f"/v1/host/sample/{path}"
    return Endpoint(method, place, call, scope="runs:create", body=body, status=status)


SEAMS = (
    _seam("GET", "test/runs/{run_id}/events", read_run_events),
    _seam("POST", "test/reset", reset_seams),
    _seam("POST", "test/capability-toggle", toggle_capability, CapabilityToggle),
    _seam("POST", "test/runs/{run_id}/variables", set_variables, VariablesBody),
    _seam("POST", "workflows", register_node_row, LooseWorkflow, 201),
    _seam("POST", "test/idempotency/concurrent-claim", race_claim, ConcurrentClaim),
    _seam(
        "POST",
        "conversation/multi-party/open",
        conversation.open_council,
        conversation.OpenCouncil,
    ),
    _seam(
        "POST",
        "conversation/multi-party/exchange",
        conversation.exchange_turn,
        conversation.ExchangeTurn,
    ),
    _seam(
        "POST", "test/mock-ai/program", mock_ai.program_mock_ai,
        mock_ai.MockAiProgram,
    ),
    _seam(
        "POST", "test/llm-cache-key", mock_ai.read_cache_key,
        dict[str, Any],
    ),
    _seam(
        "POST", "dispatch/fanout", dispatch.fan_out_workers,
        dispatch.FanOut,
    ),
    _seam(
        "POST", "dispatch/per-item", dispatch.dispatch_per_item,
        dispatch.PerItem,
    ),
    _seam(
        "POST",
        "governance/approval-gate",
        try_approval_gate,
        GateTrial,
    ),
    _seam(
        "POST", "agents/live-invoke", agents.live_invoke,
        agents.LiveInvoke,
    ),
    _seam(
        "POST", "agents/deployment-transition", agents.transition_deployment,
        agents.DeploymentTransition,
    ),
    _seam(
        "POST", "scheduling/tick", scheduling.tick_schedule,
        scheduling.SchedulingTick,
    ),
    _seam(
        "POST", "heartbeat/tick", scheduling.tick_heartbeat,
        scheduling.HeartbeatTick,
    ),
    _seam("POST", "roster/fire", roster.fire_member, roster.RosterFire),
    *roster.ROSTER_ALIASES,
    _seam(
        "POST", "trigger-bridge/deliver", trigger_bridge.deliver_trigger,
        trigger_bridge.DeliverTrigger,
    ),
    _seam(
        "POST", "trigger-bridge/ingest", trigger_bridge.ingest_trigger,
        trigger_bridge.IngestTrigger,
    ),
    _seam("POST", "agentloop/run", supervisors.run_agent_loop, supervisors.AgentLoop),
    _seam(
        "POST", "subrun/attest", supervisors.attest_child,
        supervisors.ChildAttestation,
    ),
)  # fmt: skip


def conformance_seams() -> ConformanceSeams:
    """Return the seams of a new server under test."""
    return ConformanceSeams(SEAMS)
