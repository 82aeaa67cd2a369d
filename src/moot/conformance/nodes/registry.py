"""The node types that only a host under test has."""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from moot.agents.invocation.context import Invoke, no_agents
from moot.conformance.nodes import mock_nodes, structured_output
from moot.conformance.nodes.mock_nodes import MOCK_AGENT
from moot.conformance.nodes.structured_output import MockPrograms
from moot.core.errors import BadRequest
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.payloads.nodes import LogAppended
from moot.core.workflows.node_types import (
    Artifact,
    Completed,
    GateSpec,
    NodeCall,
    NodeKind,
    NodeType,
)
from moot.engine.nodes import delay, supervisor
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.gates import CONVERSATION_GATE, check_conversation, conversation_gate
from moot.engine.nodes.instant_nodes import IDENTITY


def _unreachable(call: NodeCall) -> Completed:
    """Never run: the host refuses the node's requirement before it starts."""
    return Completed()


def _emit_artifact(call: NodeCall) -> Completed:
    data = call.config.get("data")
    artifact = Artifact(artifact_type=str(call.config["artifactType"]), data=data)
    return Completed(artifacts=(artifact,))


def _check_artifact(config: Mapping[str, object]) -> str | None:
    kind = config.get("artifactType")
    return None if isinstance(kind, str) and kind else "config.artifactType must be given"


async def _side_effect(ctx: NodeContext) -> Completed:
    async def perform(invocation_id: str) -> dict[str, str]:
        return {"performed": invocation_id}

    await ctx.effect("conformance:side-effect", perform)
    return Completed({"effectCount": 1})


def _mock_gate(call: NodeCall) -> GateSpec:
    turns = int(call.config.get("turnCount", 1)) if call.config.get("mockAutoResume") else None
    return conversation_gate(call, turns)


HOUR_MS = 3_600_000


async def _write_then_read(ctx: Any) -> Completed:
    text = ctx.config.get("content", "The suite was here.")
    await ctx.memory.put(text, tags=["conformance"])
    [entry] = await ctx.memory.list(tag="conformance", limit=1)
    return _variable("memoryReadback", to_builtins(entry))


async def _probe_other_tenant(ctx: Any) -> Completed:
    entries = await ctx.memory.list(ctx.config.get("probeMemoryRef", ""))
    return _variable("crossTenantProbe", [to_builtins(entry) for entry in entries])


async def _probe_redaction(ctx: Any) -> Completed:
    """Write a test secret to memory. Its value follows from its name and is sealed first."""
    name = str(ctx.config.get("byokSecretId", ""))
    value = derived_id("test-secret-", name)
    payload = LogAppended(level="info", message=f"Test secret {name} is used.", node_id=ctx.node_id)
    sealed = {f"secret:{name}": value}
    await ctx.recorded(NewEvent(payload, ctx.node_id, sealed=sealed))
    written = await ctx.memory.put(f"The key is {value}.", tags=[value])
    return _variable("memoryReadback", to_builtins(await ctx.memory.get(written.id)))


async def _probe_expiry(ctx: Any) -> Completed:
    for name, end in (("past", ctx.now() - HOUR_MS), ("future", ctx.now() + HOUR_MS)):
        try:
            await ctx.memory.put(f"It is {name}.", memory_id=name, expires_at=iso(end * 1000))
        except BadRequest as refusal:
            await ctx.log("info", refusal.message)
    entries = await ctx.memory.list()
    return _variable("memoryList", [to_builtins(entry) for entry in entries])


def _variable(name: str, value: Any) -> Completed:
    return Completed({name: value}, variables={name: value})


ACTIONS = {
    "write-then-read": _write_then_read,
    "cross-tenant-probe": _probe_other_tenant,
    "redaction-probe": _probe_redaction,
    "ttl-probe": _probe_expiry,
}


async def _run_probe(ctx: Any) -> Completed:
    return await ACTIONS[ctx.config["memoryAction"]](ctx)


def _check_probe(config: Mapping[str, object]) -> str | None:
    if config["memoryAction"] in ACTIONS:
        return None
    return f"config.memoryAction must be one of {', '.join(ACTIONS)}"


PROBE = NodeType(
    type_id="core.identity", kind=NodeKind.ACTIVITY, activity=_run_probe, check=_check_probe
)


def _probe_type(node: Any) -> NodeType | None:
    return PROBE if "memoryAction" in node.config else None


PROBED_IDENTITY = replace(IDENTITY, instead=_probe_type)

SUITE_NODES = (
    NodeType(
        type_id="conformance.requiresMissing",
        kind=NodeKind.INSTANT,
        instant=_unreachable,
        requires=("conformance.never-provided",),
    ),
    NodeType(
        type_id="conformance.modelCapability.insufficient",
        kind=NodeKind.INSTANT,
        instant=_unreachable,
        requires_model=("nonexistent-capability-9b3f",),
    ),
    NodeType(
        type_id="conformance.artifact.emit",
        kind=NodeKind.INSTANT,
        instant=_emit_artifact,
        check=_check_artifact,
    ),
    NodeType(
        type_id="core.conformance.hold",
        kind=NodeKind.TIMER,
        duration=delay.delay_ms,
        check=delay.check_config,
    ),
    NodeType(type_id="core.conformance.side-effect", kind=NodeKind.ACTIVITY, activity=_side_effect),
    #: a gate that may answer itself
    replace(CONVERSATION_GATE, gate=_mock_gate, check=check_conversation),
    PROBED_IDENTITY,
    mock_nodes.CALL_PROMPT,
    MOCK_AGENT,
)
#: a supervisor that needs no plan
PLANLESS_SUPERVISOR = replace(supervisor.TYPE, check=supervisor.check_decisions)


def conformance_types(
    programs: MockPrograms | None = None, invoke: Invoke = no_agents
) -> tuple[NodeType, ...]:
    """Return the types that are added to the built-in ones, or replace them.

    ``programs`` holds the answers of the mock model, and ``invoke`` asks agents.
    """
    return (
        *SUITE_NODES,
        supervisor.supervisor_type(PLANLESS_SUPERVISOR, invoke, asks_pinned=False),
        structured_output.structured_output_type(programs or MockPrograms()),
    )
