"""core.ai.callPrompt: one model call, answered by the mock provider the run names."""

from typing import Any

from moot.conformance import mock_providers
from moot.core.workflows.node_types import Kind, NodeType, Outcome
from moot.engine.nodes.context import NodeContext
from moot.engine.nodes.inputs import refused


async def _call_prompt(ctx: NodeContext) -> Outcome:
    mock = ctx.configurable.get("mockProvider")
    if isinstance(mock, dict):
        return await mock_providers.answer(ctx, mock)
    return refused(
        "model_not_configured", f"Node '{ctx.node_id}' needs a model, and none is configured here."
    )


def _check(config: dict[str, Any]) -> str | None:
    return "config.mcp is not available on this host" if "mcp" in config else None


TYPE = NodeType(
    type_id="core.ai.callPrompt", kind=Kind.ACTIVITY, activity=_call_prompt, check=_check
)
