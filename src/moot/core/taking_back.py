"""How a control is taken back, for as long as it holds."""

from collections.abc import Callable
from typing import Any

from moot.core import thread
from moot.core.bridge import Told, handle
from moot.core.events import micros
from moot.core.waiting import Conversation

#: milliseconds by which two times may differ that are the same
SAME = 1000


def undo(told: Told, talk: Conversation, at: int) -> dict[str, Any] | None:
    """The control that takes this one back, as it stands at a time (ms)."""
    content = told["content"]
    if not talk.open or told["type"] != "control" or not isinstance(content, dict):
        return None
    found: dict[str, Any] = {}
    for word, value in content.items():
        if (back := UNDO.get(word)) is not None:
            found |= back(talk, value, told, at) or {}
    return found or None


def _unmute(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    muted = [name for name in thread.targets(value) if thread.is_muted(talk.state, name, at)]
    return {"unmute": list(map(handle, muted))} if muted else None


def _mute_again(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    """For the rest of the time; where several had different ones nobody is muted longer than he
    was."""
    was = _was(told).get("muted")
    was = was if isinstance(was, dict) else {}
    free = [name for name in thread.targets(value) if not thread.is_muted(talk.state, name, at)]
    rests = {handle(name): _rest(was[handle(name)], at) for name in free if handle(name) in was}
    rests = {name: rest for name, rest in rests.items() if rest is None or rest > 0}
    timed = [rest for rest in rests.values() if rest is not None]
    if not timed:
        return {"mute": list(rests)} if rests else None
    return {"mute": {"targets": list(rests), "seconds": min(timed)}}


def _rest(until: Any, at: int) -> float | None:
    """Seconds that are left; None for good."""
    return None if not isinstance(until, int) else max(0, until - at) / 1000


def _was(told: Told) -> dict[str, Any]:
    """What the host wrote down of how it was before."""
    was = told["meta"].get("was")
    return was if isinstance(was, dict) else {}


def _on(value: Any) -> bool:
    return value.get("on", True) is True if isinstance(value, dict) else value is True


def _switch(word: str, now: Callable[[Conversation], bool]) -> Callable[..., dict[str, Any] | None]:
    def back(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
        held = thread.is_switch(value) and _on(value) == now(talk)
        return {word: {"on": not _on(value)}} if held else None

    return back


def _ttl(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    until = talk.state.ttl_until
    if until is None or not thread.is_time(value):
        return None
    own = micros(told["ts"]) // 1000 + int(value * 1000)
    return {"ttl_seconds": None} if abs(own - until) < SAME else None


def _who(value: Any) -> str:
    return handle(value.get("participant_id") if isinstance(value, dict) else value)


def _invite(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    here = thread.full_name(_who(value)) in talk.state.members
    return {"uninvite": {"participant_id": _who(value)}} if here else None


def _invite_again(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    if thread.full_name(_who(value)) in talk.state.members:
        return None
    profile = _was(told).get("profile")
    known = {"profile": profile} if isinstance(profile, dict) and profile else {}
    return {"invite": {"participant_id": _who(value), **known}}


UNDO: dict[str, Callable[[Conversation, Any, Told, int], dict[str, Any] | None]] = {
    "mute": _unmute,
    "unmute": _mute_again,
    "pause": _switch("pause", lambda talk: talk.state.paused),
    "discussion": _switch("discussion", lambda talk: talk.state.discussion),
    "invited_auto": _switch("invited_auto", lambda talk: talk.state.invited_auto),
    "ttl_seconds": _ttl,
    "invite": _invite,
    "uninvite": _invite_again,
}
