"""Pass over silent members, and end mutes, when time has passed."""

from moot.core.conversations.turns import HOST
from moot.core.councils.host_messages import display_name, host_turn_event
from moot.core.councils.invitations import InvitationEnded, invitation_answered
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ThreadControlled
from moot.core.payloads.councils import MemberHeard
from moot.core.state.conversation import Conversation
from moot.core.state.mutes import put_off_until


def time_out_members(
    conversation: Conversation, at: int, silence: dict[str, int]
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
    extensions = []
    for wake_id in alive:
        invitation = floor.wakes[wake_id]
        heard = MemberHeard(
            conversation_id=conversation.conversation_id,
            wake_id=wake_id,
            agent_id=invitation.agent,
            silent_ms=max(0, silence[wake_id]),
        )
        extensions.append(NewEvent(heard, conversation.node_id, cause=invitation.seq))
    silent = [name for name in late if name not in alive]
    return extensions + pass_over(conversation, silent, at)


def pass_over(conversation: Conversation, late: list[str], at: int) -> list[NewEvent]:
    """End these invitations, with a sentence of the host for each."""
    events: list[NewEvent] = []
    floor = conversation.floor
    for ahead, wake_id in enumerate(late, start=1):
        assert floor is not None
        invitation, seconds = floor.wakes[wake_id], floor.policy.limits.silence
        ending = InvitationEnded(
            node_id=conversation.node_id, wake_id=wake_id, at=at, outcome="silent"
        )
        name = display_name(conversation, invitation.agent)
        text = f"{name} was silent for {seconds} s and is passed over."
        events.append(invitation_answered(conversation, invitation, ending))
        events.append(host_turn_event(conversation, text, at, ahead))
    return events


def end_mutes(conversation: Conversation, at: int) -> list[NewEvent]:
    """Unmute members whose mute is over while a request to them waits.

    Other mutes end without an event.
    """
    names = [name for name, until in put_off_until(conversation).items() if until <= at]
    if not names:
        return []
    payload = ThreadControlled(
        conversation_id=conversation.conversation_id,
        from_="system",
        content={"unmute": [name.removeprefix("host:") for name in names]},
        via=HOST,
    )
    return [NewEvent(payload, conversation.node_id, cause=conversation.last_seq)]
