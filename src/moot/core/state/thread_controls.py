"""The state of a thread, folded from its controls: who is invited, muted, prodded; what is on.

A control acts on what comes after it. What a control does not say correctly is kept in the log and
ignored here: a fold never raises.
"""

import re
from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.json.nesting import too_deep
from moot.core.text.names import full_name, is_person

#: a hundred years; a longer time is no time
LONGEST_S = 100 * 365 * 86_400
#: a time in words: 90s, 10m, 2h, 1d
_SPAN = re.compile(r"([0-9]{1,9}) ?([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Member(Struct, omit_defaults=True):
    """Somebody who was invited or joined."""

    profile: dict[str, Any] = {}
    invited_by: str = ""
    invited_at: int = 0
    #: the first turn this member may answer
    from_turn: int = 0
    #: a program that the host does not speak for
    outside: bool = False


class Held(Struct):
    """A seat that somebody has: his own word for it, and since when (ms)."""

    seat: str
    at: int


class ThreadState(Struct, omit_defaults=True):
    paused: bool = False
    #: participant -> until when (ms), 0 for good
    muted: dict[str, int] = {}
    prodded: list[str] = []
    done: list[str] = []
    ttl_until: int | None = None
    discussion: bool = False
    allow_agent_mentions: bool = False
    invited_auto: bool = False
    members: dict[str, Member] = {}
    #: what somebody is doing, where that was to be written down
    presence: dict[str, str] = {}
    #: people who began it or have spoken; they are here without an invitation
    people: list[str] = []
    #: whom a person has sent away: they come back when they are invited, not by speaking
    away: list[str] = []
    #: how it was, by which that is taken back: until when (ms) those were muted who may speak
    #: again, 0 for good; and what was known of those who went last
    lifted: dict[str, int] = {}
    gone: dict[str, dict[str, Any]] = {}
    #: somebody was invited once; from then on only members speak, were there none left
    by_invitation: bool = False
    #: which program has a name: one at a time
    seats: dict[str, Held] = {}


#: controls that count when a person uses them, or the host says that one is over
OF_PEOPLE = frozenset(
    {"mute", "unmute", "pause", "prod", "ttl_seconds", "discussion", "invited_auto"}
)

#: names that one control may be about, characters of one, and names that one state holds of a kind
MOST_TARGETS = 256
LONGEST_TARGET = 256
MOST_NAMES = 1024
#: profiles that are kept of those who went
MOST_GONE = 8


def is_muted(state: ThreadState, name: str, at: int) -> bool:
    until = state.muted.get(full_name(name))
    return until is not None and (until == 0 or at < until)


def run_out(state: ThreadState, at: int) -> bool:
    """Whether the time is over in which agents go on by themselves."""
    return state.ttl_until is not None and at >= state.ttl_until


def heard(state: ThreadState, speaker: str) -> None:
    """Who speaks has answered the prod and is not done; a person is here from then on."""
    speaker = full_name(speaker)
    came(state, speaker)
    if speaker in state.prodded:
        state.prodded.remove(speaker)
    if speaker in state.done:
        state.done.remove(speaker)


def came(state: ThreadState, name: str) -> None:
    if is_person(name) and name not in state.people and len(state.people) < MOST_NAMES:
        state.people.append(name)


def people_of(state: ThreadState) -> list[str]:
    """The people who are here, invited or not."""
    return list(dict.fromkeys([*state.people, *filter(is_person, state.members)]))


def prodded_here(state: ThreadState, members: Collection[str]) -> None:
    """Who is not there cannot be asked to speak, and is not asked when he comes."""
    state.prodded = [name for name in state.prodded if name in members or is_person(name)]


def joined(state: ThreadState, said: dict[str, Any], at: int) -> None:
    name = full_name(str(said.get("participantId", "")))
    state.by_invitation = True
    state.away = [each for each in state.away if each != name]
    state.gone.pop(name, None)
    before = state.members.get(name)
    state.members[name] = Member(
        profile={**(before.profile if before else {}), **_object(said.get("profile"))},
        invited_by=str(said.get("by", "")),
        invited_at=before.invited_at if before else at,
        from_turn=before.from_turn if before else int(said.get("fromTurn", 0)),
        outside=said.get("outside") is True,
    )


def present(state: ThreadState, said: dict[str, Any]) -> None:
    name = full_name(str(said.get("from", "")))
    if len(state.presence) < MOST_NAMES or name in state.presence:
        state.presence[name] = str(said.get("state", ""))


def left(state: ThreadState, said: dict[str, Any]) -> None:
    name, by = full_name(str(said.get("participantId", ""))), str(said.get("by", ""))
    member = state.members.pop(name, None)
    if member is not None and member.profile:
        state.gone = dict([*state.gone.items(), (name, member.profile)][-MOST_GONE:])
    if is_person(by) and by != name and name not in state.away:
        state.away = [*state.away, name][-MOST_NAMES:]


def control(state: ThreadState, said: dict[str, Any], at: int) -> None:
    """One control event; each key of its content is one act. What is for people, and the host, is
    not done for anybody else, whatever a log says."""
    content, sender = meant(said.get("content")), str(said.get("from", ""))
    if not isinstance(content, dict):
        return
    may = is_person(sender) or sender == "system"
    for word, act in ACTS.items():
        if word in content and (may or word not in OF_PEOPLE):
            act(state, content[word], said, at)


def meant(content: Any) -> Any:
    """A control may be the text of an object, and a mute may say its time in words. Whoever checks
    one and whoever acts on it read it here, so that neither sees in it what the other does not."""
    if not isinstance(content, str):
        return _timed(content)
    try:
        body = content.encode()
        found = None if too_deep(body) else msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return content
    return _timed(found) if isinstance(found, dict) else content


def _timed(content: Any) -> Any:
    """``{"mute": ["id"], "for": "10m"}`` and ``{"mute": ["id"], "seconds": 600}`` are
    ``{"mute": {"targets": ["id"], "seconds": 600}}``. A time that nobody can read stays as it is,
    so that nobody is muted for good by mistake."""
    if not isinstance(content, dict) or "mute" not in content:
        return content
    value = content["mute"]
    mute = value if isinstance(value, dict) else {"targets": value}
    said = mute if "for" in mute else content
    if "seconds" in mute or not {"for", "seconds"} & said.keys():
        return content
    seconds = _in_seconds(said["for"]) if "for" in said else said["seconds"]
    kept = {key: each for key, each in mute.items() if key != "for"}
    rest = {key: each for key, each in content.items() if key not in ("for", "seconds")}
    return {**rest, "mute": {**kept, "seconds": seconds}}


def _in_seconds(said: Any) -> Any:
    parts = _SPAN.fullmatch(said) if isinstance(said, str) else None
    return said if parts is None else int(parts[1]) * _UNITS[parts[2]]


def _mute(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    if isinstance(value, dict) and value.get("mode", "hard") != "hard":
        return
    timed = isinstance(value, dict) and "seconds" in value
    wait = _milliseconds(value["seconds"]) if timed else None
    if timed and wait is None:
        return
    for name in targets(value):
        if len(state.muted) < MOST_NAMES or name in state.muted:
            state.muted[name] = at + wait if wait is not None else 0
            state.lifted.pop(name, None)


def _unmute(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    for name in targets(value):
        until = state.muted.pop(name, None)
        if until is not None and (until == 0 or at < until) and len(state.lifted) < MOST_NAMES:
            state.lifted[name] = until


def _pause(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    if (on := _on(value)) is not None:
        state.paused = on


def _prod(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    prodded = dict.fromkeys([*state.prodded, *targets(value)])
    state.prodded = list(prodded)[:MOST_NAMES]
    state.done = [name for name in state.done if name not in prodded]


def _done(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    name = full_name(str(said.get("from", "")))
    if value is True and name not in state.done and len(state.done) < MOST_NAMES:
        state.done.append(name)


def _ttl(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    """None: for as long as they like."""
    wait = _milliseconds(value)
    if wait is not None or value is None:
        state.ttl_until = None if wait is None else at + wait


def _discussion(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    if (on := _on(value)) is not None:
        mentions = value.get("allow_agent_mentions") if isinstance(value, dict) else None
        state.discussion = on
        state.allow_agent_mentions = mentions if isinstance(mentions, bool) else on


def _invited_auto(state: ThreadState, value: Any, said: dict[str, Any], at: int) -> None:
    if (on := _on(value)) is not None:
        state.invited_auto = on


def targets(value: Any) -> list[str]:
    """``["id"]`` or ``{"targets": ["id"]}``; nobody for what is neither."""
    found = value.get("targets") if isinstance(value, dict) else value
    if not isinstance(found, list) or len(found) > MOST_TARGETS:
        return []
    names = [name for name in found if isinstance(name, str)]
    return [full_name(name) for name in names if 0 < len(name) <= LONGEST_TARGET]


def _on(value: Any) -> bool | None:
    """``true``, ``{"on": true}`` or ``{}``; None for what is none of these."""
    said = value.get("on", True) if isinstance(value, dict) else value
    return said if isinstance(said, bool) else None


def _milliseconds(seconds: Any) -> int | None:
    """None for what is no time, or one that nobody will see the end of."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return int(seconds * 1000) if 0 < seconds <= LONGEST_S else None


def is_switch(value: Any) -> bool:
    return _on(value) is not None


def is_time(value: Any) -> bool:
    return _milliseconds(value) is not None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


#: word of a control -> what it does to the state (invite and uninvite are joins and leaves)
ACTS = {
    "mute": _mute,
    "unmute": _unmute,
    "pause": _pause,
    "prod": _prod,
    "done": _done,
    "ttl_seconds": _ttl,
    "discussion": _discussion,
    "invited_auto": _invited_auto,
}
