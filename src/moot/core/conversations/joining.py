"""Who comes in: invited by somebody who takes part, or by speaking where the host trusts that."""

from typing import Any

import msgspec

from moot.core.conversations.participants import MOST_PARTICIPANTS, RESERVED, is_agents
from moot.core.conversations.turn_schema import LONGEST_NAME
from moot.core.errors import BadRequest, ParticipantNotInvited, RosterClosed, RosterFull
from moot.core.errors.threads import NameTaken
from moot.core.events import NewEvent
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.text.confusables import skeleton
from moot.core.text.names import full_name, is_name, is_person

#: bytes of all that is known of somebody
LARGEST = 4096


def named(asked: Any, word: str) -> str:
    """``{"participant_id": "id"}`` or a bare id."""
    name = asked.get("participant_id") if isinstance(asked, dict) else asked
    if not is_guest(name):
        raise BadRequest(
            f"{word} needs a participant_id: a name without blanks that is nobody else's.",
            field=f"{word}.participant_id",
        )
    return full_name(str(name))


def check(name: Any, field: str) -> None:
    """Raises for a name that nobody may go by: the host's own, a word for everybody, or one that
    cannot be told from others."""
    if not is_guest(name):
        raise BadRequest(
            "Nobody goes by this name: it is the host's own, means everybody, or cannot be seen."
            " Take another one, without blanks.",
            field=field,
            reserved=sorted(RESERVED),
        )


def is_guest(name: Any) -> bool:
    """Whether somebody may go by it."""
    if not isinstance(name, str) or not name:
        return False
    if is_person(name):
        return len(name) <= LONGEST_NAME and is_name(name) and name != "user:"
    return is_agents(full_name(name))


def not_invited(talk: Conversation, name: str) -> ParticipantNotInvited:
    """Somebody who takes no part, and how that is changed."""
    short, place = name.removeprefix("host:"), talk.conversation_id.partition(":")[0]
    out = f"A person invites him: moot thread invite {place} {short}"
    if talk.roster is not None:
        out = "Its roster is closed: fork it with the new member."
    return ParticipantNotInvited(
        f"{short} takes no part in this conversation. {out}",
        speakerId=name,
        conversationId=talk.conversation_id,
        roster=sorted(talk.roster if talk.roster is not None else talk.state.members),
    )


def needs_seat(talk: Conversation, name: str) -> bool:
    """Whether an agent must come in first: the roster is open, and it is not there."""
    return talk.roster is None and talk.state.by_invitation and name not in talk.state.members


def comes_in(talk: Conversation, name: str, joins: str | None) -> bool:
    """Whether an agent takes part from its first word on: the host trusts that, and nobody has
    sent it away."""
    return joins is not None and needs_seat(talk, name) and name not in talk.state.away


def welcome(
    talk: Conversation, name: str, profile: Any, by: str, outside: bool = False
) -> NewEvent:
    """The event of somebody's coming in, from the next turn on. ``outside``: the host does not
    speak for him."""
    closed = talk.roster is not None and name not in map(full_name, talk.roster)
    if closed and not is_person(name):
        raise RosterClosed(
            "The roster of this conversation is closed; fork it with the new member instead.",
            participant=name,
            roster=talk.roster,
        )
    if name not in talk.state.members:
        check_alike(talk, name, name, by)
    if name not in talk.state.members and len(talk.state.members) >= MOST_PARTICIPANTS:
        raise RosterFull(
            f"At most {MOST_PARTICIPANTS} participants can be invited.",
            maxParticipants=MOST_PARTICIPANTS,
        )
    profile = profile if isinstance(profile, dict) else {}
    before = talk.state.members.get(name)
    if len(msgspec.json.encode({**(before.profile if before else {}), **profile})) > LARGEST:
        raise BadRequest(
            f"A profile has at most {LARGEST} bytes in all.",
            field="invite.profile",
            maxBytes=LARGEST,
        )
    payload = {
        "conversationId": talk.conversation_id,
        "participantId": name,
        "profile": profile,
        "by": by,
        "fromTurn": talk.turns + 1,
    }
    if outside:
        payload["outside"] = True
    if before is not None:
        payload["changed"] = True  # who is there stays: only what is known of him is new
    return NewEvent("moot.participant.joined", payload, talk.node_id, cause=talk.last_seq)


def check_alike(talk: Conversation, word: str, name: str, by: str) -> None:
    """Raises where the word, by which somebody is to be called, reads as the name of another who
    is there. People may name an agent as a person is called, and agents may not."""
    members = {*talk.state.members, *(talk.roster or ())} - {name}
    others = {each: each.removeprefix("host:") for each in members}
    if not is_person(by) and not is_person(word):
        others |= _people(talk, name)
    _refuse_alike(others, word, name)


def check_role(talk: Conversation, word: str, name: str) -> None:
    """Raises where what somebody is or does reads as the name of a person who is there."""
    _refuse_alike(_people(talk, name), word, name)


def _people(talk: Conversation, name: str) -> dict[str, str]:
    others = [each for each in thread_controls.people_of(talk.state) if each != name]
    return {each: each.removeprefix("user:") for each in others}


def _refuse_alike(others: dict[str, str], word: str, name: str) -> None:
    """``others``: who is there -> how that reads."""
    shape = skeleton(word.removeprefix("host:"))
    for each, reads in others.items():
        if skeleton(reads) == shape:
            raise NameTaken(
                f"{each.removeprefix('host:')} takes part here, and the two could not be told"
                " apart. Take another name.",
                participant=name,
            )
