"""Resolve addresses to participants, and warn about addresses that match none."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from moot.core.errors import BadRequest, Forbidden, ParticipantNotInvited
from moot.core.errors.threads import TaskNotOpen, TooManyTasks
from moot.core.payloads.conversations import Turn
from moot.core.state import participants, tasks
from moot.core.state.conversation import Conversation
from moot.core.state.tasks import ThreadTask
from moot.core.text import mentions
from moot.core.text.names import RESERVED_NAMES, full_name, is_person

#: participants that a warning lists at most
MAX_LISTED_NAMES = 12

Profiles = Mapping[str, Mapping[str, object]]


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
