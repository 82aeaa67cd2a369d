"""Restrict what an agent may do with controls in a thread.

A muted agent may only finish, leave or report its presence. No agent renames others or brings a
crowd. The rules bind neither people nor administrators.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from moot.core.conversations import joining, turns
from moot.core.errors import BodyTooLarge, Forbidden, RosterFull
from moot.core.state.conversation import Conversation
from moot.core.state.mutes import is_muted
from moot.core.text import mentions
from moot.core.text.names import (
    RESERVED_NAMES,
    full_name,
    is_agent_name,
    is_participant_name,
    is_person,
)
from moot.core.threads import control_checks

if TYPE_CHECKING:
    from moot.core.threads.decide import Control

#: bytes of an agent's control; the log keeps even one that changes nothing
MAX_CONTROL_BYTES = 8192
#: controls that a muted agent may send; while the thread is paused an agent may also invite
ALLOWED_WHILE_MUTED = frozenset({"done", "uninvite", "presence"})
ALLOWED_WHILE_PAUSED = ALLOWED_WHILE_MUTED | {"invite"}
#: other agents that one agent may invite
MAX_BROUGHT_ALONG = 4


def check_agent_control(conversation: Conversation, control: "Control", sender: str) -> None:
    """Raise when an agent sends a control that is for people, too large, or not allowed now."""
    if control.who.admin or is_person(sender):
        return
    content = control.content
    if len(msgspec.json.encode(content)) > MAX_CONTROL_BYTES:
        raise BodyTooLarge(
            f"A control of an agent has at most {MAX_CONTROL_BYTES} bytes; say more in a message.",
            field="content",
            maxBytes=MAX_CONTROL_BYTES,
        )
    allowed = (
        ALLOWED_WHILE_MUTED
        if is_muted(conversation.state, sender, control.at)
        else ALLOWED_WHILE_PAUSED
    )
    if not _says_only(content, allowed, sender):
        turns.check_may_speak(conversation, sender, "agent", control.at)
    if isinstance(content, dict) and "invite" in content:
        _check_invite(conversation, content["invite"], sender)
    if isinstance(content, dict) and _names_person(content.get("uninvite")):
        raise Forbidden("People come and go as they like; no agent sends them away.")


def is_redundant_invite(conversation: Conversation, name: str, sender: str) -> bool:
    """Return whether an agent invites a person who is already here."""
    return not is_person(sender) and name in conversation.state.people


def _names_person(value: Any) -> bool:
    name = value.get("participant_id") if isinstance(value, dict) else value
    return isinstance(name, str) and is_person(name)


def _says_only(content: Any, words: frozenset[str], sender: str) -> bool:
    """Return whether a control has these words only, well formed and about the sender.

    A malformed control would be stored, and others would read it.
    """
    if control_checks.control_problems(content, words):
        return False
    target = content.get("uninvite", sender)
    if isinstance(target, dict):
        target = target["participant_id"] if len(target) == 1 else ""
    return full_name(target) == sender


def _check_invite(conversation: Conversation, value: Any, sender: str) -> None:
    name = value.get("participant_id") if isinstance(value, dict) else value
    profile = value.get("profile") if isinstance(value, dict) else None
    if not is_participant_name(name):
        return  # a malformed name adds no participant
    name, profile = full_name(str(name)), profile if isinstance(profile, dict) else {}
    is_present = is_person(name) or name in conversation.state.members
    if profile and name != sender and is_present:
        raise Forbidden("An agent says who it is, not who others are.", participant=name)
    _check_profile(conversation, name, profile, sender)
    brought = [
        member
        for member, record in conversation.state.members.items()
        if record.invited_by == sender
    ]
    others = {*brought, name} - {sender}
    if name not in conversation.state.members and len(others) > MAX_BROUGHT_ALONG:
        raise RosterFull(
            f"One agent brings {MAX_BROUGHT_ALONG} others along at most; a person invites more.",
            maxParticipants=MAX_BROUGHT_ALONG,
        )


def _check_profile(
    conversation: Conversation, name: str, profile: dict[str, Any], sender: str
) -> None:
    """Raise when a nickname or role could be mistaken for another participant."""
    nickname = profile.get("nickname")
    has_nickname = nickname is not None and nickname != ""
    if "name" in profile or (has_nickname and not _is_nickname(nickname)):
        raise Forbidden(
            "How somebody is called is for people to say; an agent may have a nickname that is not"
            " reserved and can be seen, a word of one line.",
            participant=name,
            reserved=sorted(RESERVED_NAMES),
        )
    if has_nickname:
        joining.check_distinct_name(conversation, str(nickname), name, sender)
    for word in mentions.profile_words(profile, *mentions.SHARED_KEYS):
        joining.check_distinct_role(conversation, word, name)


def _is_nickname(nickname: Any) -> bool:
    return isinstance(nickname, str) and is_agent_name(full_name(nickname))
