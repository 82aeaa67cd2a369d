"""The seams of a host under trial: thin callers of the real engine, served only then."""

import asyncio
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from moot.api.http.request import Endpoint, Reply, Request, encode
from moot.conformance.capability_toggle import refuse
from moot.conformance.seams import (
    agents,
    councils,
    dispatch,
    models,
    roster,
    schedules,
    supervisors,
    triggers,
)
from moot.core.commands import SetVariables
from moot.core.errors import BadRequest
from moot.core.events import NewEvent, decode_head
from moot.engine.effects.ledger import Effect, Ledger

PROBE = "__probe__"
#: how a suite asks for what was written down of a delivery that started no run
GIVEN_UP = "__exhaust__"
PAGE = 1000


class Toggle(Struct, frozen=True, forbid_unknown_fields=True):
    name: str | UnsetType = UNSET
    value: bool | None = None
    reset: bool = False


class Variables(Struct, frozen=True, forbid_unknown_fields=True):
    variables: dict[str, Any]


class LooseNode(Struct, frozen=True, rename="camel"):
    node_id: str
    type_id: str
    config: dict[str, Any] = {}


class LooseWorkflow(Struct, frozen=True, rename="camel"):
    workflow_id: str
    nodes: list[LooseNode]


class Claim(Struct, frozen=True):
    executors: int = 2


async def run_events(request: Request) -> Reply:
    """A run's log, filtered; the probe's run is empty. A subscription has a log, too, of what
    belongs to no run: by its id, or as ``__exhaust__`` where a delivery was given up last."""
    run_id = request.params["run_id"]
    if run_id == PROBE:
        return Reply({"events": []})
    if run_id == GIVEN_UP or run_id.startswith("sub_"):
        told = await (
            triggers.given_up_last(request)
            if run_id == GIVEN_UP
            else triggers.log_of(request, run_id)
        )
        only = request.query.get("type")
        return Reply({"events": [event for event in told if only in (None, event["type"])]})
    wanted = {
        "type": request.query.get("type"),
        "causation_id": request.query.get("causationId"),
        "node_id": request.query.get("nodeId"),
    }
    tenant, found, after = request.caller.tenant, [], -1
    await request.services.host.view(tenant, run_id)
    while rows := await request.services.store.read(tenant, run_id, after, PAGE):
        found += [row for row in rows if _wanted(row, wanted, request.query.get("correlationId"))]
        after += len(rows)
    return Reply(b'{"events":[' + b",".join(found) + b"]}")


def _wanted(row: bytes, wanted: dict[str, str | None], correlation: str | None) -> bool:
    head = decode_head(row)
    same = all(value is None or getattr(head, name) == value for name, value in wanted.items())
    return same and (correlation is None or encode(correlation) in row)


async def reset(request: Request) -> Reply:
    request.services.overlay.clear()
    request.services.councils.clear()
    request.services.programs.clear()
    return Reply({"reset": True})


async def capability_toggle(request: Request) -> Reply:
    asked = await request.read(Toggle)
    overlay = request.services.overlay
    if asked.reset:
        overlay.clear()
    elif asked.name is UNSET:
        raise BadRequest("Send {name, value} or {reset: true}.")
    elif asked.name != PROBE:
        if asked.value is None:
            overlay.pop(asked.name, None)
        else:
            overlay[asked.name] = asked.value
    return Reply({"overlay": overlay})


async def variables(request: Request) -> Reply:
    asked = await request.read(Variables)
    command = SetVariables(asked.variables, request.services.clock.millis())
    tenant, run_id = request.caller.tenant, request.params["run_id"]
    run = await request.services.host.handle(tenant, run_id, command)
    return Reply({"runId": run_id, "variables": run.variables})


async def workflows(request: Request) -> Reply:
    """Nodes without edges: one after another, as they come."""
    asked = await request.read(LooseWorkflow)
    nodes = ((node.node_id, node.type_id, node.config) for node in asked.nodes)
    refuse(request.services.overlay, nodes)
    flow = await request.services.host.flows.register(request.caller.tenant, encode(_whole(asked)))
    return Reply({"workflowId": flow.definition.id}, 201)


def _whole(asked: LooseWorkflow) -> dict[str, Any]:
    nodes = [
        {
            "id": node.node_id,
            "typeId": node.type_id,
            "name": node.node_id,
            "position": {"x": 200 * number, "y": 0},
            "config": node.config,
            "inputs": {},
        }
        for number, node in enumerate(asked.nodes)
    ]
    edges = [
        {"id": f"e{number}", "sourceNodeId": before.node_id, "targetNodeId": after.node_id}
        for number, (before, after) in enumerate(zip(asked.nodes, asked.nodes[1:], strict=False))
    ]
    return {
        "id": asked.workflow_id,
        "name": asked.workflow_id,
        "version": "1.0",
        "nodes": nodes,
        "edges": edges,
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": [],
        "metadata": {},
        "settings": {},
    }


class _Notebook:
    """A reporter for a claim outside of any run: the ledger itself does the deciding."""

    def __init__(self, tenant: str, run_id: str) -> None:
        self.tenant, self.run_id, self.node_id, self.attempt = tenant, run_id, "claim", 1
        self.earlier = self.inherited = 0
        self.charged: tuple[str, ...] = ()
        self.payer: str | None = None

    async def warn(self, message: str) -> None:
        """Nobody listens."""

    async def recorded(self, *events: NewEvent) -> None:
        await asyncio.sleep(0)


async def concurrent_claim(request: Request) -> Reply:
    """Several executors of one logical effect at once: the ledger lets one deliver."""
    asked = await request.read(Claim)
    if not 1 <= asked.executors <= 1000:
        raise BadRequest("executors must be 1 to 1000.", field="executors")
    ledger: Ledger = request.services.host.activities.ledger
    notebook = _Notebook(request.caller.tenant, request.services.clock.new_id("run_"))
    delivered: list[str] = []

    async def deliver(name: str) -> str:
        await asyncio.sleep(0)
        delivered.append(name)
        return name

    minted = await asyncio.gather(
        *(
            ledger.once(notebook, Effect(1, "conformance:claim", deliver))
            for _ in range(asked.executors)
        )
    )
    return Reply({"mintedIds": minted, "attempted": asked.executors, "delivered": len(delivered)})


def _seam(
    method: str, path: str, call: Any, summary: str, body: Any = None, status: int = 200
) -> Endpoint:
    return Endpoint(
        method=method, path=f"/v1/host/sample/{path}", call=call, summary=summary, body=body,
        status=status, scope="runs:create", hidden=True,
    )  # fmt: skip


SEAMS = (
    _seam("GET", "test/runs/{run_id}/events", run_events, "A run's log, filtered"),
    _seam("POST", "test/reset", reset, "Forget what tests have switched"),
    _seam("POST", "test/capability-toggle", capability_toggle, "Switch a claim", Toggle),
    _seam("POST", "test/runs/{run_id}/variables", variables, "Write variables", Variables),
    _seam("POST", "workflows", workflows, "Register nodes in a row", LooseWorkflow, 201),
    _seam("POST", "test/idempotency/concurrent-claim", concurrent_claim, "Race a claim", Claim),
    _seam(
        "POST",
        "conversation/multi-party/open",
        councils.open_council,
        "Open a council",
        councils.Open,
    ),
    _seam(
        "POST",
        "conversation/multi-party/exchange",
        councils.exchange,
        "Speak in it",
        councils.Exchange,
    ),
    _seam(
        "POST", "test/mock-ai/program", models.program, "Tell the mock model what to say",
        models.Program,
    ),
    _seam(
        "POST", "test/llm-cache-key", models.cache_key, "The key of a model call",
        dict[str, Any],
    ),
    _seam(
        "POST", "dispatch/fanout", dispatch.fan_out, "Send out a wave of workers",
        dispatch.FanOut,
    ),
    _seam(
        "POST", "dispatch/per-item", dispatch.per_item, "What each worker is given",
        dispatch.PerItem,
    ),
    _seam(
        "POST",
        "governance/approval-gate",
        councils.approval_gate,
        "Try a gate",
        councils.Gate,
    ),
    _seam(
        "POST", "agents/live-invoke", agents.live_invoke, "Ask an agent",
        agents.LiveInvoke,
    ),
    _seam(
        "POST", "agents/deployment-transition", agents.transition, "Promote an agent",
        agents.Transition,
    ),
    _seam("POST", "scheduling/tick", schedules.tick, "Let a time come", schedules.Tick),
    _seam("POST", "heartbeat/tick", schedules.beat, "Look for a change", schedules.Beat),
    _seam("POST", "roster/fire", roster.fire, "Fire a portfolio", roster.Fire),
    *roster.ALIASES,
    _seam(
        "POST", "trigger-bridge/deliver", triggers.deliver, "Deliver something",
        triggers.Deliver,
    ),
    _seam(
        "POST", "trigger-bridge/ingest", triggers.ingest, "Take something in",
        triggers.Ingest,
    ),
    _seam("POST", "agentloop/run", supervisors.loop, "Run a loop", supervisors.Loop),
    _seam("POST", "subrun/attest", supervisors.attest, "Attest a child", supervisors.Attested),
)  # fmt: skip
