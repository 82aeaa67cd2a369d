"""End mutes, and hold the turns of members that were muted while they worked."""

from typing import Any

from moot.core.conversations.turns import HOST
from moot.core.councils.invitations import InvitationEnded, invitation_answered
from moot.core.events import NewEvent
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Invitation
from moot.core.state.mutes import put_off_until
from moot.core.workflows.flow import FlowNode


def hold_turn(
    node: FlowNode,
    conversation: Conversation,
    invitation: Invitation,
    ending: InvitationEnded,
    held_turn: dict[str, Any],
) -> list[NewEvent]:
    """Hold a finished turn until a person admits or drops it."""
    payload = {
        "conversationId": conversation.conversation_id,
        "wakeId": ending.wake_id,
        **held_turn,
    }
    return [
        NewEvent("moot.turn.held", payload, node.id, cause=invitation.seq),
        invitation_answered(node, conversation, invitation, ending, "held"),
    ]


def end_mutes(node: FlowNode, conversation: Conversation, at: int) -> list[NewEvent]:
    """Unmute members whose mute is over while a request to them waits.

    Other mutes end without an event.
    """
    names = [name for name, until in put_off_until(conversation).items() if until <= at]
    payload = {
        "conversationId": conversation.conversation_id,
        "from": "system",
        "content": {"unmute": [name.removeprefix("host:") for name in names]},
        "via": HOST,
    }
    event = NewEvent("moot.thread.control", payload, node.id, cause=conversation.last_seq)
    return [event] if names else []
