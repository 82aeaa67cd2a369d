"""core.conversationGate: one suspension that carries many turns, of one or of many speakers."""

from typing import Any

import msgspec

from moot.core.conversations.participants import check_invited, check_roster
from moot.core.errors import BadRequest
from moot.core.state.council_policy import Policy
from moot.core.workflows.node_types import Call, ConversationSpec, GateSpec, Kind, NodeType
from moot.engine.nodes import gate_config


def _gate(call: Call) -> GateSpec:
    return _asks(call, None)


def _mocked(call: Call) -> GateSpec:
    turns = int(call.config.get("turnCount", 1)) if call.config.get("mockAutoResume") else None
    return _asks(call, turns)


def _asks(call: Call, mock_turns: int | None) -> GateSpec:
    config = call.config
    participants = _given(call, "participants")
    if participants is not None:
        check_roster(participants)
    opening = _given(call, "question", "prompt")
    spec = ConversationSpec(
        opening=opening,
        title=_given(call, "title"),
        participants=participants,
        invited=check_invited(_given(call, "invited") or []),
        schema=config.get("schema"),
        owner=config.get("agentId"),
        group_id=config.get("groupId"),
        participation=_policy(call),
        profiles=_profiles(call),
        outside=_outside(call),
        mock_turns=mock_turns,
    )
    data: dict[str, Any] = {
        "conversationId": f"{call.run_id}:{call.node_id}:{call.attempt}",
        "prompt": opening if isinstance(opening, str) and opening else "The floor is open.",
        "turnIndex": 1,
    }
    if "outcomeSchema" in config:
        data["outcomeSchema"] = config["outcomeSchema"]
    return GateSpec(
        kind="conversation.exchange",
        data=data,
        timeout_ms=config.get("timeoutMs"),
        profile=config.get("profile"),
        conversation=spec,
    )


def _policy(call: Call) -> dict[str, Any] | None:
    said = _given(call, "participation")
    if said is None:
        return None
    try:
        msgspec.convert(said, Policy)
    except msgspec.ValidationError as error:
        raise BadRequest(f"participation does not fit: {error}", field="participation") from None
    return dict(said)


def _profiles(call: Call) -> dict[str, dict[str, Any]]:
    found = _given(call, "profiles") or {}
    try:
        return {
            name: dict(said)
            for name, said in msgspec.convert(found, dict[str, dict[str, str]]).items()
        }
    except msgspec.ValidationError as error:
        raise BadRequest(f"profiles does not fit: {error}", field="profiles") from None


def _outside(call: Call) -> list[str]:
    found = call.run_inputs.get("outside", [])
    return [str(name) for name in found] if isinstance(found, list) else []


def _given(call: Call, name: str, in_config: str | None = None) -> Any:
    """By a port of the node, else by the workflow, else by the run's inputs: who starts a run
    cannot change what its workflow says."""
    return call.inputs.get(name, call.config.get(in_config or name, call.run_inputs.get(name)))


def _check(config: dict[str, Any]) -> str | None:
    if config.get("mockAutoResume"):
        return "mockAutoResume is for a host under trial (moot serve --conformance)"
    return gate_config.conversation(config)


TYPE = NodeType(type_id="core.conversationGate", kind=Kind.GATE, gate=_gate, check=_check)

#: on a host under trial a gate may talk to itself
ON_TRIAL = NodeType(
    type_id="core.conversationGate", kind=Kind.GATE, gate=_mocked, check=gate_config.conversation
)
