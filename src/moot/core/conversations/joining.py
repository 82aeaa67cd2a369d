"""Let participants join a conversation, by invitation or by speaking."""

from typing import Any

import msgspec

from moot.core.conversations.participants import MOST_PARTICIPANTS
from moot.core.errors import BadRequest, ParticipantNotInvited, RosterClosed, RosterFull
from moot.core.errors.threads import NameTaken
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ParticipantJoined
from moot.core.state import thread_controls
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
    if conversation.roster is not None:
        advice = "Its roster is closed: fork it with the new member."
    return ParticipantNotInvited(
        f"{short} takes no part in this conversation. {advice}",
        speakerId=name,
        conversationId=conversation.conversation_id,
        roster=sorted(
            conversation.roster if conversation.roster is not None else conversation.state.members
        ),
    )


def needs_invitation(conversation: Conversation, name: str) -> bool:
    """Return whether an agent must be invited first: the roster is open and does not have it."""
    return (
        conversation.roster is None
        and conversation.state.by_invitation
        and name not in conversation.state.members
    )


def can_join_by_speaking(conversation: Conversation, name: str, joins: str | None) -> bool:
    """Return whether an agent joins with its first turn.

    The host must trust its key, and no person may have removed the agent.
    """
    return (
        joins is not None
        and needs_invitation(conversation, name)
        and name not in conversation.state.away
    )


def joined_event(
    conversation: Conversation, name: str, profile: Any, by: str, outside: bool = False
) -> NewEvent:
    """Return the event that adds a participant from the next turn on.

    Raise RosterClosed, RosterFull, NameTaken or BadRequest. ``outside`` means that the host does
    not speak for it.
    """
    is_closed = conversation.roster is not None and name not in map(full_name, conversation.roster)
    if is_closed and not is_person(name):
        raise RosterClosed(
            "The roster of this conversation is closed; fork it with the new member instead.",
            participant=name,
            roster=conversation.roster,
        )
    members = conversation.state.members
    if name not in members:
        check_distinct_name(conversation, name, name, by)
    if name not in members and len(members) >= MOST_PARTICIPANTS:
        raise RosterFull(
            f"At most {MOST_PARTICIPANTS} participants can be invited.",
            maxParticipants=MOST_PARTICIPANTS,
        )
    profile = profile if isinstance(profile, dict) else {}
    member = members.get(name)
    merged = {**(member.profile if member else {}), **profile}
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
        changed=member is not None,  # the participant stays; only its profile changes
    )
    return NewEvent(joined, conversation.node_id, cause=conversation.last_seq)


def check_distinct_name(conversation: Conversation, word: str, name: str, by: str) -> None:
    """Raise NameTaken when the word reads like the name of another participant.

    A person may give an agent a person's name; an agent may not.
    """
    members = {*conversation.state.members, *(conversation.roster or ())} - {name}
    others = {member: member.removeprefix("host:") for member in members}
    if not is_person(by) and not is_person(word):
        others |= _other_people(conversation, name)
    _check_distinct(others, word, name)


def check_distinct_role(conversation: Conversation, word: str, name: str) -> None:
    """Raise NameTaken when a role reads like the name of a person in the conversation."""
    _check_distinct(_other_people(conversation, name), word, name)


def _other_people(conversation: Conversation, name: str) -> dict[str, str]:
    others = [
        person for person in thread_controls.people_present(conversation.state) if person != name
    ]
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
