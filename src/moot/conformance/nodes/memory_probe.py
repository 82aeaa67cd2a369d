"""core.identity with a ``memoryAction``: probes memory for a suite.

It uses the same memory as every node. Normal hosts do not register it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from moot.core.errors import BadRequest
from moot.core.events import NewEvent, iso
from moot.core.ids import derived_id
from moot.core.payloads.nodes import LogAppended
from moot.core.workflows.node_types import Completed, NodeKind, NodeType
from moot.engine.nodes.instant_nodes import IDENTITY

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


def _check(config: Mapping[str, object]) -> str | None:
    if config["memoryAction"] in ACTIONS:
        return None
    return f"config.memoryAction must be one of {', '.join(ACTIONS)}"


PROBE = NodeType(type_id="core.identity", kind=NodeKind.ACTIVITY, activity=_run_probe, check=_check)


def _probe_type(node: Any) -> NodeType | None:
    return PROBE if "memoryAction" in node.config else None


PROBED_IDENTITY = replace(IDENTITY, instead=_probe_type)
