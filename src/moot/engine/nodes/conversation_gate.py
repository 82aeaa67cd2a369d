"""The node type ``core.conversationGate``: one interrupt that carries many turns."""

from typing import Any

import msgspec

from moot.core.conversations.participants import check_invited, check_roster
from moot.core.errors import BadRequest
from moot.core.state.council_policy import Policy
from moot.core.workflows.node_types import ConversationSpec, GateSpec, NodeCall, NodeKind, NodeType
from moot.engine.nodes import gate_config


def gate_spec(call: NodeCall, mock_turns: int | None = None) -> GateSpec:
    """Return the question of the gate. With ``mock_turns`` it answers itself that often."""
    config = call.config
    participants = _setting(call, "participants")
    if participants is not None:
        check_roster(participants)
    opening = _setting(call, "question", "prompt")
    spec = ConversationSpec(
        opening=opening,
        title=_setting(call, "title"),
        participants=participants,
        invited=check_invited(_setting(call, "invited") or []),
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


def _policy(call: NodeCall) -> dict[str, Any] | None:
    policy = _setting(call, "participation")
    if policy is None:
        return None
    try:
        msgspec.convert(policy, Policy)
    except msgspec.ValidationError as error:
        raise BadRequest(f"participation does not fit: {error}", field="participation") from None
    return dict(policy)


def _profiles(call: NodeCall) -> dict[str, dict[str, Any]]:
    profiles = _setting(call, "profiles") or {}
    try:
        return {
            name: dict(profile)
            for name, profile in msgspec.convert(profiles, dict[str, dict[str, str]]).items()
        }
    except msgspec.ValidationError as error:
        raise BadRequest(f"profiles does not fit: {error}", field="profiles") from None


def _outside(call: NodeCall) -> list[str]:
    names = call.run_inputs.get("outside", [])
    return [str(name) for name in names] if isinstance(names, list) else []


def _setting(call: NodeCall, name: str, in_config: str | None = None) -> Any:
    """Return a setting: the node's port first, then the workflow, then the run's inputs.

    The caller that starts a run cannot override its workflow.
    """
    return call.inputs.get(name, call.config.get(in_config or name, call.run_inputs.get(name)))


def _check(config: dict[str, Any]) -> str | None:
    if config.get("mockAutoResume"):
        return "mockAutoResume is for a host under trial (moot serve --conformance)"
    return gate_config.check_conversation(config)


TYPE = NodeType(type_id="core.conversationGate", kind=NodeKind.GATE, gate=gate_spec, check=_check)
