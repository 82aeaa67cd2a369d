"""Node types a test suite drives a host with. They are not registered in normal running."""

from typing import Any

from moot.core.workflows.node_types import Artifact, Call, Completed, Kind, NodeType
from moot.engine.nodes import delay
from moot.engine.nodes.context import NodeContext


def _never(call: Call) -> Completed:
    """Not reached: the node's requirement is refused before it starts."""
    return Completed()


def _emit_artifact(call: Call) -> Completed:
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
        kind=Kind.INSTANT,
        instant=_never,
        requires=("conformance.never-provided",),
    ),
    NodeType(
        type_id="conformance.modelCapability.insufficient",
        kind=Kind.INSTANT,
        instant=_never,
        requires_model=("nonexistent-capability-9b3f",),
    ),
    NodeType(
        type_id="conformance.artifact.emit",
        kind=Kind.INSTANT,
        instant=_emit_artifact,
        check=_check_artifact,
    ),
    NodeType(
        type_id="core.conformance.hold",
        kind=Kind.TIMER,
        duration=delay.duration,
        check=delay.check,
    ),
    NodeType(
        type_id="core.conformance.side-effect",
        kind=Kind.ACTIVITY,
        activity=_side_effect,
    ),
)
