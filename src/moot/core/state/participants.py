"""The participants of a conversation, one entry for each name.

An entry notes how the participant came: on the closed roster, by joining, as a member that the host
leads in a council, or as a person who spoke. Mutes, prods and seats are in ``thread_controls``,
because a control may name a participant that is not here.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from moot.core.payloads.conversations import ParticipantJoined
from moot.core.payloads.councils import CouncilMember
from moot.core.state.control_content import MOST_NAMES
from moot.core.text.names import full_name, is_person

if TYPE_CHECKING:
    from moot.core.state.conversation import Conversation


class ConversationParticipant(Struct, omit_defaults=True):
    """A participant, with the ways in which it came. One without any is removed."""

    #: an agent on the closed roster
    listed: bool = False
    #: it was invited, or joined by speaking
    joined: bool = False
    #: a member of the council, which the host invites to speak
    led: bool = False
    #: its place among the members of the council
    place: int = 0
    #: a person who began the thread or has spoken; such a person needs no invitation
    spoke: bool = False
    profile: Mapping[str, object] = {}
    invited_by: str = ""
    invited_at: int = 0
    #: the first turn that a joined participant may answer
    from_turn: int = 0
    #: a program that reads the thread by itself: the host calls it and does not wait
    outside: bool = False
    #: the host answers for the member when it knows the agent; otherwise the council waits
    driven: bool = True
    #: an agent invited the member, and it has not spoken yet
    guest: bool = False


# -- questions ------------------------------------------------------------------------------------


def find_participant(conversation: "Conversation", name: str) -> ConversationParticipant:
    """Return the participant; one that never came for an unknown name."""
    return conversation.participants.get(name) or ConversationParticipant()


def roster_names(conversation: "Conversation") -> list[str] | None:
    """Return the agents that may speak when the roster is closed, else None."""
    if not conversation.closed:
        return None
    return [name for name, each in conversation.participants.items() if each.listed]


def joined_members(conversation: "Conversation") -> dict[str, ConversationParticipant]:
    """Return the participants who were invited or joined by speaking, people included."""
    return {name: each for name, each in conversation.participants.items() if each.joined}


def led_members(conversation: "Conversation") -> dict[str, ConversationParticipant]:
    """Return the members of the council in the order in which they became members."""
    members = [(each.place, name) for name, each in conversation.participants.items() if each.led]
    return {name: conversation.participants[name] for _, name in sorted(members)}


def is_led(conversation: "Conversation", name: str) -> bool:
    """Return whether the name is a member of the council."""
    return find_participant(conversation, name).led


def round_speakers(conversation: "Conversation") -> list[str]:
    """Return the members of a round: all but the moderator, unless it is the only member."""
    moderator = conversation.floor.policy.moderator if conversation.floor is not None else None
    members = list(led_members(conversation))
    return [name for name in members if name != moderator] or members


def people_present(conversation: "Conversation") -> list[str]:
    """Return the people in the conversation, invited or not."""
    here = [name for name, each in conversation.participants.items() if each.spoke or each.joined]
    return [name for name in here if is_person(name)]


def invitable_members(conversation: "Conversation") -> list[str]:
    """Return the names that may speak now: the closed roster, else all who joined."""
    roster = roster_names(conversation)
    return list(joined_members(conversation)) if roster is None else roster


def takes_part(conversation: "Conversation", name: str) -> bool:
    """Return whether an agent of this name may speak without joining first."""
    if conversation.closed:
        return find_participant(conversation, name).listed
    return not needs_invitation(conversation, name)


def needs_invitation(conversation: "Conversation", name: str) -> bool:
    """Return whether an agent must be invited first: the roster is open and does not have it."""
    if conversation.closed or not conversation.state.by_invitation:
        return False
    return not find_participant(conversation, name).joined


def can_join_by_speaking(conversation: "Conversation", name: str, joins: str | None) -> bool:
    """Return whether an agent joins with its first turn.

    The host must trust its key, and no person may have removed the agent.
    """
    is_trusted = joins is not None and name not in conversation.state.away
    return is_trusted and needs_invitation(conversation, name)


# -- profiles for mentions and addresses ----------------------------------------------------------


def agent_profiles(conversation: "Conversation") -> dict[str, Mapping[str, object]]:
    """Return all who joined, are listed or are led, with the profiles that mentions match."""
    profiles = {name: each.profile for name, each in joined_members(conversation).items()}
    for name, each in conversation.participants.items():
        if each.listed or each.led:
            profiles[name] = each.profile if each.led else {}
    return profiles


def participant_profiles(conversation: "Conversation") -> dict[str, Mapping[str, object]]:
    """Return the profiles of the agents and the people of the conversation."""
    people: dict[str, Mapping[str, object]] = {name: {} for name in people_present(conversation)}
    return people | agent_profiles(conversation)


def mentionable_profiles(conversation: "Conversation") -> dict[str, Mapping[str, object]]:
    """Return the profiles that mentions match; people who spoke are matched by their names only."""
    everyone = conversation.participants.items()
    spoke: dict[str, Mapping[str, object]] = {name: {} for name, each in everyone if each.spoke}
    return agent_profiles(conversation) | spoke


def member_profiles(conversation: "Conversation") -> dict[str, Mapping[str, object]]:
    """Return the profiles of the council's members; people are matched by their names only."""
    people: dict[str, Mapping[str, object]] = {name: {} for name in people_present(conversation)}
    return people | {name: each.profile for name, each in led_members(conversation).items()}


# -- the fold -------------------------------------------------------------------------------------


def list_roster(conversation: "Conversation", names: Iterable[str]) -> None:
    """Close the roster: of the agents only these speak."""
    conversation.closed = True
    conversation.participants |= {name: ConversationParticipant(listed=True) for name in names}


def add_person(conversation: "Conversation", name: str) -> None:
    """Note a person who began the thread or speaks."""
    if not is_person(name) or find_participant(conversation, name).spoke:
        return
    if sum(each.spoke for each in conversation.participants.values()) < MOST_NAMES:
        conversation.participants.setdefault(name, ConversationParticipant()).spoke = True


def add_joined(conversation: "Conversation", payload: ParticipantJoined, at: int) -> None:
    """Add a participant, or change the profile of one that is here.

    A member that an agent invited is a guest and does not count for the thread's size. In a thread
    earlier turns do not concern a new member.
    """
    name, by, floor = full_name(payload.participant_id), payload.by, conversation.floor
    before = find_participant(conversation, name)
    if before.spoke and not before.joined:
        conversation.participants.pop(name)  # the order is that of joining
    is_new_member = floor is not None and not before.led and not is_person(name)
    if is_new_member and floor is not None and floor.threaded:
        floor.had[name] = "joined"
    is_guest = floor is not None and not is_person(by) and full_name(by) != name
    profile = before.profile if before.joined else {}
    conversation.participants[name] = ConversationParticipant(
        listed=before.listed,
        joined=True,
        led=before.led or is_new_member,
        place=_last_place(conversation) + 1 if is_new_member else before.place,
        spoke=before.spoke,
        profile={**profile, **payload.profile},
        invited_by=by,
        invited_at=before.invited_at if before.joined else at,
        from_turn=before.from_turn if before.joined else payload.from_turn,
        outside=payload.outside,
        guest=is_guest if is_new_member else before.guest and is_guest,
    )


def _last_place(conversation: "Conversation") -> int:
    members = led_members(conversation).values()
    return max((member.place for member in members), default=-1)


def remove_joined(conversation: "Conversation", name: str) -> ConversationParticipant:
    """Remove a participant; a name on the roster and a person who spoke stay. Return it."""
    participant = conversation.participants.get(name)
    if participant is None:
        return ConversationParticipant()
    if participant.listed or participant.spoke:
        rest = ConversationParticipant(listed=participant.listed, spoke=participant.spoke)
        conversation.participants[name] = rest
    else:
        del conversation.participants[name]
    return participant


def set_led_members(conversation: "Conversation", rows: Iterable[CouncilMember]) -> None:
    """Make these agents the members of the council, in place of the members before."""
    for name, member in led_members(conversation).items():
        member.led, member.driven, member.guest = False, True, False
        if not (member.listed or member.joined):
            del conversation.participants[name]
    for place, row in enumerate(rows):
        if not is_person(row.agent_id):
            member = conversation.participants.setdefault(row.agent_id, ConversationParticipant())
            member.led, member.place, member.profile = True, place, row.profile or {}
            member.driven, member.outside = row.driven is not False, row.outside
