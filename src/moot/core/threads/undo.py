"""How a control is taken back, for as long as it holds."""

from collections.abc import Callable
from typing import Any

from moot.core.events import micros
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.text.names import full_name
from moot.core.threads.agent_bridge import Told, handle

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
    muted = [
        name
        for name in thread_controls.targets(value)
        if thread_controls.is_muted(talk.state, name, at)
    ]
    return {"unmute": list(map(handle, muted))} if muted else None


def _mute_again(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    """For the rest of the time; where several had different ones nobody is muted longer than he
    was."""
    found = [name for name in thread_controls.targets(value) if name not in talk.state.muted]
    until = {name: talk.state.lifted[name] for name in found if name in talk.state.lifted}
    names = [name for name, end in until.items() if end == 0 or end > at]
    rests = [(until[name] - at) / 1000 for name in names if until[name]]
    if not names:
        return None
    short = list(map(handle, names))
    return {"mute": {"targets": short, "seconds": min(rests)} if rests else short}


def _on(value: Any) -> bool:
    return value.get("on", True) is True if isinstance(value, dict) else value is True


def _switch(word: str, now: Callable[[Conversation], bool]) -> Callable[..., dict[str, Any] | None]:
    def back(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
        held = thread_controls.is_switch(value) and _on(value) == now(talk)
        return {word: {"on": not _on(value)}} if held else None

    return back


def _ttl(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    until = talk.state.ttl_until
    if until is None or not thread_controls.is_time(value):
        return None
    own = micros(told["ts"]) // 1000 + int(value * 1000)
    return {"ttl_seconds": None} if abs(own - until) < SAME else None


def _who(value: Any) -> str:
    return handle(value.get("participant_id") if isinstance(value, dict) else value)


def _invite(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    here = full_name(_who(value)) in talk.state.members
    return {"uninvite": {"participant_id": _who(value)}} if here else None


def _invite_again(talk: Conversation, value: Any, told: Told, at: int) -> dict[str, Any] | None:
    if full_name(_who(value)) in talk.state.members:
        return None
    profile = talk.state.gone.get(full_name(_who(value)))
    known = {"profile": profile} if profile else {}
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
