"""Let participants join a conversation, by invitation or by speaking."""

from typing import Any

import msgspec

from moot.core.conversations.participants import MOST_PARTICIPANTS
from moot.core.errors import BadRequest, ParticipantNotInvited, RosterClosed, RosterFull
from moot.core.errors.threads import NameTaken
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ParticipantJoined
from moot.core.state import participants
from moot.core.state.conversation import Conversation
from moot.core.text.confusables import skeleton
from moot.core.text.names import RESERVED_NAMES, full_name, is_participant_name, is_person

#: bytes of a participant's whole profile
MAX_PROFILE_BYTES = 4096


def parse_participant_name(value: Any, field: str) -> str:
    """Return the full name in ``{"participant_id": "id"}`` or in a bare id."""
    name = value.get("participant_id") if isinstance(value, dict) else value
    if not is_participant_name(name):
        raise BadRequest(
            f"{field} needs a participant_id: a name without blanks that is nobody else's.",
            field=f"{field}.participant_id",
        )
    return full_name(str(name))


def check_participant_name(name: Any, field: str) -> None:
    """Raise BadRequest for a reserved name, or one that looks like another."""
    if not is_participant_name(name):
        raise BadRequest(
            "Nobody goes by this name: it is the host's own, means everybody, or cannot be seen."
            " Take another one, without blanks.",
            field=field,
            reserved=sorted(RESERVED_NAMES),
        )


def not_invited_error(conversation: Conversation, name: str) -> ParticipantNotInvited:
    """Return the error for a speaker outside the conversation, with the way to invite it."""
    short, thread = name.removeprefix("host:"), conversation.conversation_id.partition(":")[0]
    advice = f"A person invites him: moot thread invite {thread} {short}"
    if conversation.closed:
        advice = "Its roster is closed: fork it with the new member."
    return ParticipantNotInvited(
        f"{short} takes no part in this conversation. {advice}",
        speakerId=name,
        conversationId=conversation.conversation_id,
        roster=sorted(participants.invitable_members(conversation)),
    )


def joined_event(
    conversation: Conversation, name: str, profile: Any, by: str, outside: bool = False
) -> NewEvent:
    """Return the event that adds a participant from the next turn on.

    Raise RosterClosed, RosterFull, NameTaken or BadRequest. ``outside`` means that the host does
    not speak for it.
    """
    roster = participants.roster_names(conversation)
    if roster is not None and name not in map(full_name, roster) and not is_person(name):
        raise RosterClosed(
            "The roster of this conversation is closed; fork it with the new member instead.",
            participant=name,
            roster=roster,
        )
    member = participants.find_participant(conversation, name)
    if not member.joined:
        check_distinct_name(conversation, name, name, by)
    if not member.joined and len(participants.joined_members(conversation)) >= MOST_PARTICIPANTS:
        raise RosterFull(
            f"At most {MOST_PARTICIPANTS} participants can be invited.",
            maxParticipants=MOST_PARTICIPANTS,
        )
    profile = profile if isinstance(profile, dict) else {}
    merged = {**(member.profile if member.joined else {}), **profile}
    if len(msgspec.json.encode(merged)) > MAX_PROFILE_BYTES:
        raise BadRequest(
            f"A profile has at most {MAX_PROFILE_BYTES} bytes in all.",
            field="invite.profile",
            maxBytes=MAX_PROFILE_BYTES,
        )
    joined = ParticipantJoined(
        conversation_id=conversation.conversation_id,
        participant_id=name,
        profile=profile,
        by=by,
        from_turn=conversation.turns + 1,
        outside=outside,
        changed=member.joined,  # the participant stays; only its profile changes
    )
    return NewEvent(joined, conversation.node_id, cause=conversation.last_seq)


def check_distinct_name(conversation: Conversation, word: str, name: str, by: str) -> None:
    """Raise NameTaken when the word reads like the name of another participant.

    A person may give an agent a person's name; an agent may not.
    """
    others = {
        each: each.removeprefix("host:")
        for each, participant in conversation.participants.items()
        if (participant.joined or participant.listed) and each != name
    }
    if not is_person(by) and not is_person(word):
        others |= _other_people(conversation, name)
    _check_distinct(others, word, name)


def check_distinct_role(conversation: Conversation, word: str, name: str) -> None:
    """Raise NameTaken when a role reads like the name of a person in the conversation."""
    _check_distinct(_other_people(conversation, name), word, name)


def _other_people(conversation: Conversation, name: str) -> dict[str, str]:
    others = [each for each in participants.people_present(conversation) if each != name]
    return {person: person.removeprefix("user:") for person in others}


def _check_distinct(others: dict[str, str], word: str, name: str) -> None:
    """Compare the word with the others, a map of names to what people read."""
    shape = skeleton(word.removeprefix("host:"))
    for each, reads in others.items():
        if skeleton(reads) == shape:
            raise NameTaken(
                f"{each.removeprefix('host:')} takes part here, and the two could not be told"
                " apart. Take another name.",
                participant=name,
            )
