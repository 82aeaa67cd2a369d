"""Small node types of a conformance suite. Normal hosts lack them."""

from typing import Any

from moot.core.workflows.node_types import Artifact, Completed, NodeCall, NodeKind, NodeType
from moot.engine.nodes import delay
from moot.engine.nodes.context import NodeContext


def _unreachable(call: NodeCall) -> Completed:
    """Never run: the host refuses the node's requirement before it starts."""
    return Completed()


def _emit_artifact(call: NodeCall) -> Completed:
    artifact = Artifact(artifact_type=call.config["artifactType"], data=call.config.get("data"))
    return Completed(artifacts=(artifact,))


def _check_artifact(config: dict[str, Any]) -> str | None:
    named = isinstance(config.get("artifactType"), str) and config["artifactType"]
    return None if named else "config.artifactType must be given"


async def _side_effect(ctx: NodeContext) -> Completed:
    async def perform(invocation_id: str) -> dict[str, str]:
        return {"performed": invocation_id}

    await ctx.effect("conformance:side-effect", perform)
    return Completed({"effectCount": 1})


TYPES = (
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
    NodeType(
        type_id="core.conformance.side-effect",
        kind=NodeKind.ACTIVITY,
        activity=_side_effect,
    ),
)
