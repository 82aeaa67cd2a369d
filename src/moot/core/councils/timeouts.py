"""Take the floor from members that stay silent too long."""

from moot.core.councils.host_messages import display_name, host_turn_event
from moot.core.councils.invitations import InvitationEnded, invitation_answered
from moot.core.events import NewEvent
from moot.core.payloads.councils import MemberHeard
from moot.core.state.conversation import Conversation
from moot.core.workflows.flow import FlowNode


def time_out_members(
    node: FlowNode, conversation: Conversation, at: int, silence: dict[str, int]
) -> list[NewEvent]:
    """Pass over the members that are silent for longer than the limit.

    A member that the host heard from within the limit gets more time, and an event records that.
    ``silence`` maps invitations to milliseconds of silence.
    """
    floor = conversation.floor
    if floor is None or not conversation.open:
        return []
    limit = floor.policy.limits.silence * 1000
    late = [name for name, invitation in floor.wakes.items() if at >= invitation.due]
    alive = [name for name in late if silence.get(name, limit) < limit]
    extensions = [
        NewEvent(
            MemberHeard(
                conversation_id=conversation.conversation_id,
                wake_id=name,
                agent_id=floor.wakes[name].agent,
                silent_ms=max(0, silence[name]),
            ),
            node.id,
            cause=floor.wakes[name].seq,
        )
        for name in alive
    ]
    return extensions + pass_over(
        node, conversation, [name for name in late if name not in alive], at
    )


def pass_over(
    node: FlowNode, conversation: Conversation, late: list[str], at: int
) -> list[NewEvent]:
    """End these invitations, with a sentence of the host for each."""
    events: list[NewEvent] = []
    floor = conversation.floor
    for ahead, wake_id in enumerate(late, start=1):
        assert floor is not None
        invitation = floor.wakes[wake_id]
        ending = InvitationEnded(node_id=node.id, wake_id=wake_id, at=at, outcome="silent")
        events.append(invitation_answered(node, conversation, invitation, ending, "silent"))
        seconds = floor.policy.limits.silence
        name = display_name(conversation, invitation.agent)
        text = f"{name} was silent for {seconds} s and is passed over."
        events.append(host_turn_event(node, conversation, text, at, ahead))
    return events
