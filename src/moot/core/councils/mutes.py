"""End mutes, and hold the turns of members that were muted while they worked."""

from moot.core.conversations.turns import HOST
from moot.core.councils.invitations import InvitationEnded, invitation_answered
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ThreadControlled
from moot.core.payloads.councils import TurnHeld
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Invitation
from moot.core.state.mutes import put_off_until
from moot.core.workflows.flow import FlowNode


def hold_turn(
    node: FlowNode,
    conversation: Conversation,
    invitation: Invitation,
    ending: InvitationEnded,
    held: TurnHeld,
) -> list[NewEvent]:
    """Hold a finished turn until a person admits or drops it."""
    return [
        NewEvent(held, node.id, cause=invitation.seq),
        invitation_answered(node, conversation, invitation, ending, "held"),
    ]


def end_mutes(node: FlowNode, conversation: Conversation, at: int) -> list[NewEvent]:
    """Unmute members whose mute is over while a request to them waits.

    Other mutes end without an event.
    """
    names = [name for name, until in put_off_until(conversation).items() if until <= at]
    payload = ThreadControlled(
        conversation_id=conversation.conversation_id,
        from_="system",
        content={"unmute": [name.removeprefix("host:") for name in names]},
        via=HOST,
    )
    event = NewEvent(payload, node.id, cause=conversation.last_seq)
    return [event] if names else []
