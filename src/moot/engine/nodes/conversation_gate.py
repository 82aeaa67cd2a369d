"""core.conversationGate: one suspension that carries many turns, of one or of many speakers."""

from typing import Any

from moot.core import conversation
from moot.core.outcomes import Call, ConversationSpec, GateSpec, Kind, NodeType
from moot.engine.nodes import gate_config


def _gate(call: Call) -> GateSpec:
    config = call.config
    participants = _given(call, "participants")
    if participants is not None:
        conversation.check_roster(participants, config.get("agentId"))
    opening = _given(call, "question", "prompt")
    spec = ConversationSpec(
        opening=opening,
        title=_given(call, "title"),
        participants=participants,
        invited=conversation.check_invited(_given(call, "invited") or []),
        schema=config.get("schema"),
        owner=config.get("agentId"),
        group_id=config.get("groupId"),
        mock_turns=int(config.get("turnCount", 1)) if config.get("mockAutoResume") else None,
    )
    data: dict[str, Any] = {
        "conversationId": f"{call.run_id}:{call.node_id}:{call.attempt}",
        "prompt": opening if isinstance(opening, str) and opening else "The floor is open.",
        "turnIndex": 1,
    }
    return GateSpec(
        kind="conversation.exchange",
        data=data,
        timeout_ms=config.get("timeoutMs"),
        profile=config.get("profile"),
        conversation=spec,
    )


def _given(call: Call, name: str, in_config: str | None = None) -> Any:
    """By a port of the node, else by the run's inputs, else by the workflow."""
    return call.inputs.get(name, call.run_inputs.get(name, call.config.get(in_config or name)))


TYPE = NodeType(
    type_id="core.conversationGate", kind=Kind.GATE, gate=_gate, check=gate_config.conversation
)
