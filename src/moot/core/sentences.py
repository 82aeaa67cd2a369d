"""Controls as people read them, and how each is taken back."""

from collections.abc import Callable
from typing import Any

from moot.core import thread
from moot.core.bridge import Told, handle
from moot.core.events import iso, micros
from moot.core.waiting import Conversation


def says(told: Told) -> str | None:
    """An event of a thread in a sentence; a turn speaks for itself."""
    who, content = told["from"], told["content"]
    match told["type"]:
        case "thread.created":
            return f"{who} began “{content}”"
        case "thread.renamed":
            return f"{who} renamed the thread to “{content}”"
        case "thread.linked" if isinstance(content, dict):
            end = "was closed" if content.get("closed") else f"was linked by {who}"
            return f"the thread “{content.get('name')}” {end}"
        case "presence" if isinstance(content, dict):
            return f"{who} is {content.get('state')}"
        case "control" if isinstance(content, dict):
            parts = [_control(who, word, value, told) for word, value in content.items()]
            return "; ".join(parts) or f"{who} said nothing"
        case "control":
            return f"{who} sent what is no control"
        case _:
            return None


def _control(who: str, word: str, value: Any, told: Told) -> str:
    sentence = SENTENCES.get(word)
    said = None if sentence is None else sentence(who, value, told)
    return said or f"{who} set {word[:64]}"


def _names(value: Any) -> str:
    return ", ".join(map(handle, thread.targets(value)))


def _mute(who: str, value: Any, told: Told) -> str | None:
    seconds = value.get("seconds") if isinstance(value, dict) else None
    if not _names(value):
        return None
    if seconds is None or not thread.is_time(seconds):
        return f"{who} muted {_names(value)}"
    until = iso(micros(told["ts"]) + int(seconds * 1_000_000))
    return f"{who} muted {_names(value)} until {until[:19].replace('T', ' ')} UTC"


def _on(value: Any) -> bool:
    return value.get("on", True) is True if isinstance(value, dict) else value is True


def _who(value: Any) -> str:
    return handle(value.get("participant_id") if isinstance(value, dict) else value)


def _listed(value: Any, verb: str) -> str:
    found = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    return "; ".join(f"{handle(one.get('participant_id'))} {verb}: {one.get('reason')}"
                     for one in found)  # fmt: skip


SENTENCES: dict[str, Callable[[str, Any, Told], str | None]] = {
    "mute": _mute,
    "unmute": lambda who, value, _: f"{who} unmuted {_names(value)}",
    "pause": lambda who, value, _: f"{who} {'paused the agents' if _on(value) else 'let it go on'}",
    "prod": lambda who, value, _: f"{who} asked {_names(value)} to speak once",
    "done": lambda who, value, _: f"{who} has nothing more to say",
    "ttl_seconds": lambda who, value, _: (
        f"{who} lets agents go on by themselves"
        + ("" if value is None else f" for {value} seconds")
    ),
    "discussion": lambda who, value, _: (
        f"{who} {'lets agents wake one another' if _on(value) else 'ended the discussion'}"
    ),
    "invited_auto": lambda who, value, _: (
        f"{who} {'wants everybody to answer' if _on(value) else 'wants answers from those named'}"
    ),
    "invite": lambda who, value, _: f"{who} invited {_who(value)}",
    "uninvite": lambda who, value, _: f"{who} sent {_who(value)} away",
    "continue": lambda who, value, _: f"{who} let it go on",
    "participation": lambda who, value, _: f"{who} changed how turns are taken",
    "wakes": lambda who, value, _: _listed(value, "has the floor"),
    "skipped": lambda who, value, _: _listed(value, "is passed by"),
    "called": lambda who, value, _: _listed(value, "is called"),
    "stopped": lambda who, value, _: f"nobody is woken any more: {value}",
}


def undo(told: Told, talk: Conversation) -> dict[str, Any] | None:
    """The control that takes this one back, for as long as it still holds."""
    content = told["content"]
    if not talk.open or told["type"] != "control" or not isinstance(content, dict):
        return None
    found: dict[str, Any] = {}
    for word, value in content.items():
        if (back := UNDO.get(word)) is not None:
            found |= back(talk, value) or {}
    return found or None


def _unmute(talk: Conversation, value: Any) -> dict[str, Any] | None:
    muted = [handle(name) for name in thread.targets(value) if name in talk.state.muted]
    return {"unmute": muted} if muted else None


def _mute_again(talk: Conversation, value: Any) -> dict[str, Any] | None:
    free = [handle(name) for name in thread.targets(value) if name not in talk.state.muted]
    return {"mute": free} if free else None


def _switch(word: str, now: Callable[[Conversation], bool]) -> Callable[..., dict[str, Any] | None]:
    def back(talk: Conversation, value: Any) -> dict[str, Any] | None:
        held = thread.is_switch(value) and _on(value) == now(talk)
        return {word: {"on": not _on(value)}} if held else None

    return back


def _invite(talk: Conversation, value: Any) -> dict[str, Any] | None:
    here = thread.full_name(_who(value)) in talk.state.members
    return {"uninvite": {"participant_id": _who(value)}} if here else None


def _uninvite(talk: Conversation, value: Any) -> dict[str, Any] | None:
    here = thread.full_name(_who(value)) in talk.state.members
    return None if here else {"invite": {"participant_id": _who(value)}}


UNDO: dict[str, Callable[[Conversation, Any], dict[str, Any] | None]] = {
    "mute": _unmute,
    "unmute": _mute_again,
    "pause": _switch("pause", lambda talk: talk.state.paused),
    "discussion": _switch("discussion", lambda talk: talk.state.discussion),
    "invited_auto": _switch("invited_auto", lambda talk: talk.state.invited_auto),
    "ttl_seconds": lambda talk, _: (
        {"ttl_seconds": None} if talk.state.ttl_until is not None else None
    ),
    "invite": _invite,
    "uninvite": _uninvite,
}
