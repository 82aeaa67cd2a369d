"""Participants of a conversation: one entry for each name, however it came."""

from moot.core.payloads.conversations import ParticipantJoined
from moot.core.payloads.councils import CouncilMember
from moot.core.state import participants
from moot.core.state.conversation import Conversation
from moot.core.state.council_policy import Policy
from moot.core.state.floor import Floor

NAMES = ["host:ada", "host:bo", "host:cy"]


def council() -> Conversation:
    conversation = Conversation(
        conversation_id="run_x:floor:1", node_id="floor", opened_at=0, opened_seq=0, last_seq=0
    )
    conversation.floor = Floor(policy=Policy())
    participants.list_roster(conversation, NAMES)
    rows = [CouncilMember(agent_id=name) for name in NAMES]
    participants.set_led_members(conversation, rows)
    return conversation


def invite(conversation: Conversation, name: str) -> None:
    joined = ParticipantJoined(
        conversation_id=conversation.conversation_id,
        participant_id=name,
        profile={},
        by="user",
        from_turn=0,
    )
    participants.add_joined(conversation, joined, at=1)


def test_a_member_that_returns_comes_last_and_the_roster_keeps_its_order() -> None:
    conversation = council()
    invite(conversation, "host:ada")
    assert list(participants.led_members(conversation)) == NAMES
    participants.remove_joined(conversation, "host:ada")
    assert list(participants.led_members(conversation)) == ["host:bo", "host:cy"]
    invite(conversation, "host:ada")
    assert list(participants.led_members(conversation)) == ["host:bo", "host:cy", "host:ada"]
    assert participants.roster_names(conversation) == NAMES


def test_another_policy_sets_the_order_of_the_members() -> None:
    conversation = council()
    rows = [CouncilMember(agent_id=name) for name in reversed(NAMES)]
    participants.set_led_members(conversation, rows)
    assert list(participants.led_members(conversation)) == NAMES[::-1]
