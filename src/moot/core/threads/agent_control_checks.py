"""What an agent may not do by steering: speak while it may not, name others, bring a crowd.

People may, and so may administrators, in whosever name they steer.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from moot.core.conversations import joining, participants, turns
from moot.core.errors import BodyTooLarge, Forbidden, RosterFull
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.text import mentions
from moot.core.text.names import full_name, is_person
from moot.core.threads import control_checks

if TYPE_CHECKING:
    from moot.core.threads.decide import Control

#: bytes of a control, which may be about nobody and is kept all the same
LONGEST = 8192
#: what is left to who is muted: to be done, to go, to be here; while it is paused others may still
#: come in
SILENT = frozenset({"done", "uninvite", "presence"})
PAUSED = SILENT | {"invite"}
#: others that one agent may have brought along
MOST_BROUGHT = 4


def check(talk: Conversation, given: "Control", sender: str) -> None:
    """Raises for what is for people to say."""
    if given.who.admin or is_person(sender):
        return
    content = given.content
    if len(msgspec.json.encode(content)) > LONGEST:
        raise BodyTooLarge(
            f"A control of an agent has at most {LONGEST} bytes; say more in a message.",
            field="content",
            maxBytes=LONGEST,
        )
    quiet = SILENT if thread_controls.is_muted(talk.state, sender, given.at) else PAUSED
    if not _is_quiet(content, quiet, sender):
        turns.check_floor(talk, sender, "agent", given.at)
    if isinstance(content, dict) and "invite" in content:
        _check_invite(talk, content["invite"], sender)
    if isinstance(content, dict) and _is_persons(content.get("uninvite")):
        raise Forbidden("People come and go as they like; no agent sends them away.")


def invites_in_vain(talk: Conversation, name: str, sender: str) -> bool:
    """Whether an agent invites a person who is here anyway: nothing comes of it."""
    return not is_person(sender) and name in talk.state.people


def _is_persons(asked: Any) -> bool:
    name = asked.get("participant_id") if isinstance(asked, dict) else asked
    return isinstance(name, str) and is_person(name)


def _is_quiet(content: Any, words: frozenset[str], sender: str) -> bool:
    """Whether it says these words only, well, and of nobody else: what cannot be understood is
    kept as it came, and would be read."""
    if control_checks.problems(content, words):
        return False
    gone = content.get("uninvite", sender)
    if isinstance(gone, dict):
        gone = gone["participant_id"] if len(gone) == 1 else ""
    return full_name(gone) == sender


def _check_invite(talk: Conversation, asked: Any, sender: str) -> None:
    name = asked.get("participant_id") if isinstance(asked, dict) else asked
    profile = asked.get("profile") if isinstance(asked, dict) else None
    if not joining.is_guest(name):
        return  # nobody comes of it
    name, profile = full_name(str(name)), profile if isinstance(profile, dict) else {}
    there = is_person(name) or name in talk.state.members
    if profile and name != sender and there:
        raise Forbidden("An agent says who it is, not who others are.", participant=name)
    _check_profile(talk, name, profile, sender)
    brought = [each for each, one in talk.state.members.items() if one.invited_by == sender]
    others = {*brought, name} - {sender}
    if name not in talk.state.members and len(others) > MOST_BROUGHT:
        raise RosterFull(
            f"One agent brings {MOST_BROUGHT} others along at most; a person invites more.",
            maxParticipants=MOST_BROUGHT,
        )


def _check_profile(talk: Conversation, name: str, profile: dict[str, Any], sender: str) -> None:
    """What somebody is called finds him in texts, so it is nobody else's."""
    nick = profile.get("nickname")
    named = nick is not None and nick != ""
    if "name" in profile or (named and not _is_nickname(nick)):
        raise Forbidden(
            "How somebody is called is for people to say; an agent may have a nickname that is not"
            " reserved and can be seen, a word of one line.",
            participant=name,
            reserved=sorted(participants.RESERVED),
        )
    if named:
        joining.check_alike(talk, str(nick), name, sender)
    for word in mentions.words_of(profile, *mentions.KINDS):
        joining.check_role(talk, word, name)


def _is_nickname(nick: Any) -> bool:
    return isinstance(nick, str) and participants.is_agents(full_name(nick))
