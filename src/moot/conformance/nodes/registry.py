"""The node types that only a host under test has."""

from msgspec.structs import replace

from moot.agents.invocation.context import Invoke, no_agents
from moot.conformance.mock_model import MockPrograms
from moot.conformance.nodes import call_prompt, memory_probe, mock_agent, structured_output, suite
from moot.core.workflows.node_types import GateSpec, NodeCall, NodeType
from moot.engine.nodes import agent_supervisor, conversation_gate, gate_config, supervisor


def _mock_gate(call: NodeCall) -> GateSpec:
    turns = int(call.config.get("turnCount", 1)) if call.config.get("mockAutoResume") else None
    return conversation_gate.gate_spec(call, turns)


#: A gate that may answer itself.
MOCK_GATE = replace(conversation_gate.TYPE, gate=_mock_gate, check=gate_config.check_conversation)
#: A supervisor that needs no plan.
PLANLESS_SUPERVISOR = replace(supervisor.TYPE, check=supervisor.check_decisions)


def conformance_types(
    programs: MockPrograms | None = None, invoke: Invoke = no_agents
) -> tuple[NodeType, ...]:
    """Return the types that are added to the built-in ones, or replace them.

    ``programs`` holds the answers of the mock model, and ``invoke`` asks agents.
    """
    return (
        *suite.TYPES,
        call_prompt.TYPE,
        mock_agent.TYPE,
        MOCK_GATE,
        agent_supervisor.supervisor_type(PLANLESS_SUPERVISOR, invoke, asks_pinned=False),
        memory_probe.IDENTITY,
        structured_output.structured_output_type(programs or MockPrograms()),
    )
