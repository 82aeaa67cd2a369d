"""core.conversationGate: one suspension that carries many turns, of one or of many speakers."""

from typing import Any

from moot.core import conversation
from moot.core.outcomes import Call, ConversationSpec, GateSpec, Kind, NodeType
from moot.engine.nodes import gate_config


def _gate(call: Call) -> GateSpec:
    config = call.config
    participants = call.inputs.get(
        "participants", call.run_inputs.get("participants", config.get("participants"))
    )
    if participants is not None:
        conversation.check_roster(participants)
    opening = call.inputs.get("question", call.run_inputs.get("question", config.get("prompt")))
    spec = ConversationSpec(
        opening=opening,
        title=config.get("title"),
        participants=participants,
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


TYPE = NodeType(
    type_id="core.conversationGate", kind=Kind.GATE, gate=_gate, check=gate_config.conversation
)
