"""The use of a tool that needs a person's word, as the person is asked."""

from typing import Any

from moot.core.ids import derived_id
from moot.core.state.agents import TOOL_CALL, in_brief
from moot.core.state.run import Run
from moot.core.workflows.node_types import GateSpec


def wanted(run: Run, node_id: str, said: dict[str, Any], number: int) -> GateSpec:
    """The approval that a node waits for. ``said`` is the payload of ``moot.tool.asked``."""
    agent, tool = said.get("agentId", "an agent"), said.get("toolName", "")
    data = {
        "artifactId": derived_id("art_", run.run_id, node_id, str(number)),
        "artifactType": TOOL_CALL,
        "artifactData": {"toolName": tool, "inputs": said.get("inputs", {})},
        "title": f"Let {agent} use {tool}?",
        "description": in_brief(said.get("inputs", {})),
        "actions": ["accept", "reject"],
    }
    return GateSpec(kind="approval", data=data)
