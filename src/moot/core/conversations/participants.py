"""Check rosters, let participants join, and resolve addresses to them."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from moot.core.errors import (
    BadRequest,
    Forbidden,
    ParticipantMuted,
    ParticipantNotInvited,
    RosterClosed,
    RosterExceeded,
    RosterFull,
    SpeakerNotParticipant,
    ThreadPaused,
)
from moot.core.errors.threads import NameTaken, TaskNotOpen, TooManyTasks
from moot.core.events import NewEvent
from moot.core.payloads.conversations import ParticipantJoined, Turn
from moot.core.state import participants, tasks
from moot.core.state.conversation import Conversation
from moot.core.state.mutes import is_muted
from moot.core.state.tasks import ThreadTask
from moot.core.text import mentions
from moot.core.text.confusables import skeleton
from moot.core.text.names import (
    LONGEST_NAME,
    RESERVED_NAMES,
    full_name,
    is_agent_name,
    is_participant_name,
    is_person,
)

MOST_PARTICIPANTS = 32
#: bytes of a participant's whole profile
MAX_PROFILE_BYTES = 4096
#: participants that a warning lists at most
MAX_LISTED_NAMES = 12

Profiles = Mapping[str, Mapping[str, object]]


def check_roster(participants: Any, most: int = MOST_PARTICIPANTS) -> None:
    """Raise when a closed roster has fewer than two members, too many, or one twice."""
    if not isinstance(participants, list) or not all(_is_member(item) for item in participants):
        raise BadRequest("participants must be a list of {agentId}.", field="participants")
    names = [item["agentId"] for item in participants]
    if len(names) < 2:
        raise BadRequest("A roster needs at least two participants.", field="participants")
    if len(set(names)) < len(names):
        raise BadRequest("A roster names each participant once.", field="participants")
    if len(names) > most:
        raise RosterExceeded(
            f"A roster has at most {most} participants, this one has {len(names)}.",
            maxParticipants=most,
            participants=len(names),
        )


def check_invited(members: Any) -> list[dict[str, object]]:
    """Raise BadRequest when the invited members are too many, or one is there twice."""
    if not isinstance(members, list) or not all(_is_member(item) for item in members):
        raise BadRequest("invited must be a list of {agentId}.", field="invited")
    names = {item["agentId"] for item in members}
    if len(names) < len(members) or len(members) > MOST_PARTICIPANTS:
        text = f"At most {MOST_PARTICIPANTS} are invited, each once."
        raise BadRequest(text, field="invited")
    return members


class RosterAgentRef(Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A member of a roster, as the protocol writes it. Versions by channel are not supported."""

    agent_id: Annotated[str, Meta(min_length=3, max_length=LONGEST_NAME)]
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] | UnsetType = UNSET
    model_class: str | UnsetType = UNSET
    memory_ref: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)] | UnsetType = UNSET
    version: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    source_manifest_id: Annotated[str, Meta(max_length=LONGEST_NAME)] | UnsetType = UNSET


def _is_member(item: Any) -> bool:
    """Return whether the item names an agent that can speak."""
    try:
        ref = msgspec.convert(item, RosterAgentRef)
    except msgspec.ValidationError:
        return False
    return is_agent_name(ref.agent_id)


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


def check_takes_part(conversation: Conversation, speaker: str) -> None:
    """Raise when an agent is not on the closed roster, or has no invitation."""
    if conversation.closed and not participants.takes_part(conversation, speaker):
        raise SpeakerNotParticipant(
            "Speaker is not on this conversation's roster.",
            speakerId=speaker,
            conversationId=conversation.conversation_id,
            roster=participants.roster_names(conversation),
        )
    if participants.needs_invitation(conversation, full_name(speaker)):
        raise not_invited_error(conversation, speaker)


def check_may_speak(conversation: Conversation, speaker: str, role: str, at: int) -> None:
    """Raise ParticipantMuted or ThreadPaused while the speaker may not speak."""
    thread = conversation.conversation_id
    if is_muted(conversation.state, speaker, at):
        text = f"{speaker} is muted here."
        raise ParticipantMuted(text, thread=thread, participant=speaker)
    if conversation.state.paused and role != "user":
        text = "The conversation is paused; only people speak now."
        raise ThreadPaused(text, thread=thread, participant=speaker)


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


# -- addresses ------------------------------------------------------------------------------------


def resolve_address(to: str, profiles: Profiles) -> list[str]:
    """Return the participants with this id, nickname or role. An id wins over the others."""
    name = full_name(to)
    if name in profiles:
        return [name]
    return mentions.match_mention(to.removeprefix("host:"), profiles)[0]


def resolve_recipient(turn: Turn, profiles: Profiles) -> Turn:
    """Replace the address of a turn by the one participant it means, if it means one."""
    if turn.to is None or is_person(turn.to):
        return turn
    names = resolve_address(turn.to, profiles)
    return replace(turn, to=names[0]) if len(names) == 1 else turn


def check_task_turn(open_tasks: Mapping[int, ThreadTask], profiles: Profiles, turn: Turn) -> None:
    """Raise when a turn is not a valid task, or not the result of an open one."""
    kind = tasks.turn_kind(turn)
    if kind == "task":
        _check_task(open_tasks, profiles, turn.to)
    elif kind == "result":
        task = open_tasks.get(-1 if (seq := tasks.reply_sequence(turn)) is None else seq)
        if task is None:
            text = "A result names the task it is of, which must be open: meta.reply_to."
            raise TaskNotOpen(text)
        speaker = full_name(turn.from_)
        if speaker != task.to and not is_person(speaker):
            raise Forbidden("The result of a task comes from who was asked, or from a person.")


def _check_task(open_tasks: Mapping[int, ThreadTask], profiles: Profiles, to: str | None) -> None:
    if len(open_tasks) >= tasks.MOST_TASKS:
        raise TooManyTasks(f"At most {tasks.MOST_TASKS} tasks are open at a time; finish some.")
    if to is None:
        raise BadRequest("A task is for one participant: to.", field="to")
    names = [to] if is_person(to) else resolve_address(to, profiles)
    if len(names) > 1:
        text = "Several could be meant; name one by its id."
        raise BadRequest(text, field="to", could=names)
    if not names:
        text = "Nobody of this name takes part; invite him first."
        raise ParticipantNotInvited(text, speakerId=to, roster=list(profiles))


def recipient_warning(conversation: Conversation, to: str | None, content: Any) -> str | None:
    """Return a warning for the sender of a turn that is addressed to no participant."""
    agents = participants.agent_profiles(conversation)
    everyone = participants.participant_profiles(conversation)
    if not agents and not (conversation.floor is not None and conversation.floor.threaded):
        return None  # anyone may speak here, so no list of participants exists
    if to is not None and to != "all":
        return None if is_person(to) else _address_warning(to, agents, everyone)
    unknown = [
        word for word in mentions.unknown_mentions(content, everyone) if not _is_never_unknown(word)
    ]
    return _unknown_names_text([f"@{word}" for word in unknown], agents) if unknown else None


def _address_warning(to: str, agents: Profiles, everyone: Profiles) -> str | None:
    names = resolve_address(to, everyone)
    if len(names) > 1:
        return f"Several could be meant by {to[:64]}: {_join_names(names)}. Name one."
    return None if names else _unknown_names_text([to.removeprefix("host:")], agents)


def _is_never_unknown(word: str) -> bool:
    return word.casefold() in RESERVED_NAMES or is_person(word)


def _unknown_names_text(words: list[str], agents: Profiles) -> str:
    unknown = " or ".join(word[:64] for word in words[:MAX_LISTED_NAMES])
    return f"Nobody here is called {unknown}; {participants_clause(agents)}."


def participants_clause(agents: Profiles | list[str]) -> str:
    return f"there are {_join_names(list(agents))}" if agents else "nobody takes part yet"


def _join_names(names: list[str]) -> str:
    ellipsis = ", …" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(name.removeprefix("host:") for name in names[:MAX_LISTED_NAMES]) + ellipsis
