"""Routes of the test seams, served only with ``--conformance``."""

import asyncio
from itertools import pairwise

from msgspec import UNSET, Struct, UnsetType

from moot.api.http.request import Reply, Request, encode
from moot.conformance.host import ConformanceSeams, check_nodes, seams_of
from moot.conformance.seams.agents import AGENT_SEAMS
from moot.conformance.seams.deliveries import (
    DELIVERY_SEAMS,
    read_last_exhausted_log,
    read_subscription_log,
)
from moot.conformance.seams.interrupts import INTERRUPT_SEAMS
from moot.conformance.seams.roster import ROSTER_SEAMS
from moot.conformance.seams.scheduling import SCHEDULING_SEAMS
from moot.conformance.seams.setup import node, register_workflow, seam, workflow
from moot.conformance.seams.supervisors import SUPERVISOR_SEAMS
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
    variables: dict[str, object]


class LooseNode(Struct, frozen=True, rename="camel"):
    node_id: str
    type_id: str
    config: dict[str, object] = {}


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
        if run_id == EXHAUSTED:
            events = await read_last_exhausted_log(request)
        else:
            events = await read_subscription_log(request, run_id)
        only = request.query.get("type")
        return Reply({"events": [event for event in events if only in (None, event["type"])]})
    fields = {"type": "type", "causation_id": "causationId", "node_id": "nodeId"}
    wanted = {field: request.query.get(name) for field, name in fields.items()}
    tenant, matching, after = request.caller.tenant, [], -1
    await request.services.host.view(tenant, run_id)
    while rows := await request.services.store.read(tenant, run_id, after, PAGE):
        correlation = request.query.get("correlationId")
        matching += [row for row in rows if _matches(row, wanted, correlation)]
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
    rows = [(each.node_id, each.type_id, each.config) for each in body.nodes]
    check_nodes(seams_of(request).overlay, rows)
    names = [name for name, _, _ in rows]
    definition = workflow(body.workflow_id, [node(*row) for row in rows], *pairwise(names))
    definition["triggers"] = [{"id": "manual", "type": "manual"}]
    flow = await register_workflow(request, definition)
    return Reply({"workflowId": flow.definition.id}, 201)


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

    claims = [Effect(1, "conformance:claim", deliver) for _ in range(body.executors)]
    minted = await asyncio.gather(*(ledger.once(notebook, claim) for claim in claims))
    return Reply({"mintedIds": minted, "attempted": body.executors, "delivered": len(delivered)})


SEAMS = (
    seam("test/runs/{run_id}/events", read_run_events, method="GET"),
    seam("test/reset", reset_seams),
    seam("test/capability-toggle", toggle_capability, CapabilityToggle),
    seam("test/runs/{run_id}/variables", set_variables, VariablesBody),
    seam("workflows", register_node_row, LooseWorkflow, status=201),
    seam("test/idempotency/concurrent-claim", race_claim, ConcurrentClaim),
    *INTERRUPT_SEAMS,
    *AGENT_SEAMS,
    *SUPERVISOR_SEAMS,
    *SCHEDULING_SEAMS,
    *ROSTER_SEAMS,
    *DELIVERY_SEAMS,
)


def conformance_seams() -> ConformanceSeams:
    return ConformanceSeams(SEAMS)
