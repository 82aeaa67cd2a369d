"""Fold the controls of a thread: members, mutes, prods and switches.

A control acts on later events only. The fold never raises: it ignores the parts of a control that
are not valid.
"""

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from moot.core.payloads.conversations import (
    ParticipantJoined,
    ParticipantLeft,
    PresenceChanged,
    ThreadControlled,
)
from moot.core.state.control_content import (
    MOST_NAMES,
    control_targets,
    duration_ms,
    parse_control,
    switch_value,
)
from moot.core.state.mutes import apply_mute, apply_unmute
from moot.core.text.names import full_name, is_person


class ThreadMember(Struct, omit_defaults=True):
    """A participant who was invited or has joined."""

    profile: dict[str, Any] = {}
    invited_by: str = ""
    invited_at: int = 0
    #: the first turn this member may answer
    from_turn: int = 0
    #: a program that the host does not speak for
    outside: bool = False


class SeatClaim(Struct):
    """The seat of a program: the word it chose for itself, and since when (ms)."""

    seat: str
    at: int


class ThreadControls(Struct, omit_defaults=True):
    """The state that the controls of a thread have led to."""

    paused: bool = False
    #: participant -> end of the mute (ms), 0 for good
    muted: dict[str, int] = {}
    prodded: list[str] = []
    done: list[str] = []
    ttl_until: int | None = None
    discussion: bool = False
    allow_agent_mentions: bool = False
    invited_auto: bool = False
    members: dict[str, ThreadMember] = {}
    #: participant -> presence, for presence that is recorded
    presence: dict[str, str] = {}
    #: people who began the thread or have spoken; they need no invitation
    people: list[str] = []
    #: participants whom a person sent away: they return by invitation, not by speaking
    away: list[str] = []
    #: for undo: ends of the mutes (ms, 0 for good) that were lifted, and the profiles of the
    #: participants who left last
    lifted: dict[str, int] = {}
    gone: dict[str, dict[str, Any]] = {}
    #: the thread has had an invitation; from then on only members speak
    by_invitation: bool = False
    #: participant -> the one program that has its name
    seats: dict[str, SeatClaim] = {}


#: controls that count only from a person or from the host
PEOPLE_ONLY = frozenset(
    {"mute", "unmute", "pause", "prod", "ttl_seconds", "discussion", "invited_auto"}
)

#: profiles that the state holds of participants who left
MOST_GONE = 8


def is_ttl_over(state: ThreadControls, at: int) -> bool:
    """Return whether the time is over in which agents may speak without a person."""
    return state.ttl_until is not None and at >= state.ttl_until


def apply_speaker(state: ThreadControls, speaker: str) -> None:
    """Clear the speaker's prod and done mark, and note a person who is new here."""
    speaker = full_name(speaker)
    add_person(state, speaker)
    if speaker in state.prodded:
        state.prodded.remove(speaker)
    if speaker in state.done:
        state.done.remove(speaker)


def add_person(state: ThreadControls, name: str) -> None:
    if is_person(name) and name not in state.people and len(state.people) < MOST_NAMES:
        state.people.append(name)


def people_present(state: ThreadControls) -> list[str]:
    """Return the people in the thread, invited or not."""
    return list(dict.fromkeys([*state.people, *filter(is_person, state.members)]))


def drop_absent_prods(state: ThreadControls, members: Collection[str]) -> None:
    """Forget prods of absent members, so that they do not count when the member joins later."""
    state.prodded = [name for name in state.prodded if name in members or is_person(name)]


def apply_participant_joined(state: ThreadControls, payload: ParticipantJoined, at: int) -> None:
    name = full_name(payload.participant_id)
    state.by_invitation = True
    state.away = [each for each in state.away if each != name]
    state.gone.pop(name, None)
    before = state.members.get(name)
    state.members[name] = ThreadMember(
        profile={**(before.profile if before else {}), **_object_or_empty(payload.profile)},
        invited_by=payload.by,
        invited_at=before.invited_at if before else at,
        from_turn=before.from_turn if before else int(payload.from_turn),
        outside=payload.outside,
    )


def apply_presence(state: ThreadControls, payload: PresenceChanged) -> None:
    name = full_name(payload.from_)
    if len(state.presence) < MOST_NAMES or name in state.presence:
        state.presence[name] = payload.state


def apply_participant_left(state: ThreadControls, payload: ParticipantLeft) -> None:
    name, by = full_name(payload.participant_id), payload.by
    member = state.members.pop(name, None)
    if member is not None and member.profile:
        state.gone = dict([*state.gone.items(), (name, member.profile)][-MOST_GONE:])
    if is_person(by) and by != name and name not in state.away:
        state.away = [*state.away, name][-MOST_NAMES:]


def apply_control(state: ThreadControls, payload: ThreadControlled, at: int) -> None:
    """Apply each key of the control's content.

    Controls in ``PEOPLE_ONLY`` have no effect from other senders, whatever the log holds.
    """
    content, sender = parse_control(payload.content), payload.from_
    if not isinstance(content, dict):
        return
    is_allowed = is_person(sender) or sender == "system"
    for word, handler in CONTROL_HANDLERS.items():
        if word in content and (is_allowed or word not in PEOPLE_ONLY):
            handler(state, content[word], payload, at)


def _apply_pause(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    if (on := switch_value(value)) is not None:
        state.paused = on


def _apply_prod(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    prodded = dict.fromkeys([*state.prodded, *control_targets(value)])
    state.prodded = list(prodded)[:MOST_NAMES]
    state.done = [name for name in state.done if name not in prodded]


def _apply_done(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    name = full_name(payload.from_)
    if value is True and name not in state.done and len(state.done) < MOST_NAMES:
        state.done.append(name)


def _apply_ttl(state: ThreadControls, value: Any, payload: ThreadControlled, at: int) -> None:
    """Set the time limit; None removes it."""
    duration = duration_ms(value)
    if duration is not None or value is None:
        state.ttl_until = None if duration is None else at + duration


def _apply_discussion(
    state: ThreadControls, value: Any, payload: ThreadControlled, at: int
) -> None:
    if (on := switch_value(value)) is not None:
        mentions = value.get("allow_agent_mentions") if isinstance(value, dict) else None
        state.discussion = on
        state.allow_agent_mentions = mentions if isinstance(mentions, bool) else on


def _apply_invited_auto(
    state: ThreadControls, value: Any, payload: ThreadControlled, at: int
) -> None:
    if (on := switch_value(value)) is not None:
        state.invited_auto = on


def _object_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


#: word of a control -> its handler (invite and uninvite are events of their own)
CONTROL_HANDLERS = {
    "mute": apply_mute,
    "unmute": apply_unmute,
    "pause": _apply_pause,
    "prod": _apply_prod,
    "done": _apply_done,
    "ttl_seconds": _apply_ttl,
    "discussion": _apply_discussion,
    "invited_auto": _apply_invited_auto,
}
