"""The node types that only a host under test has."""

from collections.abc import Mapping

from msgspec.structs import replace

from moot.agents.invocation.context import Invoke, no_agents
from moot.conformance.nodes import call_prompt, memory_probe, mock_agent, structured_output
from moot.conformance.nodes.structured_output import MockPrograms
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
from moot.engine.nodes.gate_config import check_conversation
from moot.engine.nodes.gates import CONVERSATION_GATE, conversation_gate


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
    memory_probe.PROBED_IDENTITY,
    call_prompt.TYPE,
    mock_agent.TYPE,
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
