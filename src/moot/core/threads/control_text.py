"""Describe the controls and events of a thread in sentences for people."""

import json
from collections.abc import Callable
from typing import Any

from moot.core.events import iso, micros
from moot.core.state.control_content import control_targets, is_duration
from moot.core.state.floor import PAIR
from moot.core.threads import control_checks
from moot.core.threads.agent_bridge import COORDINATOR, BridgeEvent, handle_from_name
from moot.core.threads.control_checks import ALL_CONTROLS

#: controls of participants; a tool request appears as a control, too
MEMBER_CONTROLS = ALL_CONTROLS | {"asks"}

#: maps a handle to a display name; the reader's own may be "you"
DisplayNames = Callable[[str], str]

#: limits whose name is not clear enough
STOPPED = {PAIR: "two agents have answered one another often enough"}

#: characters of a value that is printed as it is
BRIEF = 60


def event_sentence(event: BridgeEvent, names: DisplayNames = str) -> str | None:
    """Return a sentence about the event, or None for a turn."""
    sender, content = names(event["from"]), event["content"]
    match event["type"]:
        case "thread.created":
            return f"{sender} began “{content}”"
        case "thread.renamed":
            return f"{sender} renamed the thread to “{content}”"
        case "thread.linked" if isinstance(content, dict):
            end = "was closed" if content.get("closed") else f"was linked by {sender}"
            return f"the thread “{content.get('name')}” {end}"
        case "presence" if isinstance(content, dict):
            return f"{sender} is {content.get('state')}"
        case "control" if isinstance(content, dict):
            parts = [control_sentence(event, word, names) for word in content]
            return "; ".join(parts) or f"{sender} said nothing"
        case "control":
            return f"{sender} sent what is no control, which changed nothing"
        case _:
            return None


def control_sentence(event: BridgeEvent, word: str, names: DisplayNames = str) -> str:
    """Return a sentence about one word of a control. Unknown words are named as they are."""
    sender, value = names(event["from"]), event["content"][word]
    if word in ignored_words(event):
        return f"{sender} set {word[:64]} to {plain_value(value)}, which changed nothing"
    sentence = SENTENCES.get(word)
    text = None if sentence is None else sentence(sender, value, event, names)
    return text or f"{sender} set {word[:64]} to {plain_value(value)}"


def ignored_words(event: BridgeEvent) -> dict[str, str]:
    """Return the words of a control that changed nothing, with the reasons."""
    if event["from"] == COORDINATOR or not isinstance(event["content"], dict):
        return {}
    return control_checks.control_problems(event["content"], MEMBER_CONTROLS)


def plain_value(value: Any) -> str:
    """Return a value on one line without JSON syntax."""
    text = " ".join(_value_text(value).split()) or "nothing"
    return text if len(text) <= BRIEF else text[: BRIEF - 1] + "…"


def _value_text(value: Any, inner: bool = False) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict | list):
        return json.dumps(value)
    if inner:
        return "…"
    if isinstance(value, list):
        return ", ".join(_value_text(_targets_of(item), True) for item in value[:BRIEF])
    targets = _targets_of(value)
    if targets is not value:
        return _value_text(targets)
    return ", ".join(f"{key} {_value_text(item, True)}" for key, item in [*value.items()][:BRIEF])


def _targets_of(value: Any) -> Any:
    """Return the participants that an object names, or the value itself."""
    fields = _object(value)
    return fields.get("participant_id", fields.get("targets", value))


def _target_names(value: Any, names: DisplayNames) -> str:
    return ", ".join(names(handle_from_name(name)) for name in control_targets(value))


def _mute_sentence(sender: str, value: Any, event: BridgeEvent, names: DisplayNames) -> str | None:
    seconds = value.get("seconds") if isinstance(value, dict) else None
    muted = f"{sender} muted {_target_names(value, names)}"
    if seconds is None or not is_duration(seconds):
        return muted
    until = iso(micros(event["ts"]) + int(seconds * 1_000_000))
    return f"{muted} until {until[:19].replace('T', ' ')} UTC"


def _is_on(value: Any) -> bool:
    return value.get("on", True) is True if isinstance(value, dict) else value is True


def _participant_handle(value: Any) -> str:
    return handle_from_name(value.get("participant_id") if isinstance(value, dict) else value)


def _invite_sentence(sender: str, value: Any, event: BridgeEvent, names: DisplayNames) -> str:
    participant = names(_participant_handle(value))
    if _object(value).get("changed") is True:
        return f"the profile of {participant} was changed" + (
            "" if participant == sender else f" by {sender}"
        )
    return f"{sender} joined" if participant == sender else f"{sender} invited {participant}"


def _uninvite_sentence(sender: str, value: Any, event: BridgeEvent, names: DisplayNames) -> str:
    participant = names(_participant_handle(value))
    return f"{sender} left" if participant == sender else f"{sender} sent {participant} away"


def _ttl_sentence(sender: str, value: Any, event: BridgeEvent, names: DisplayNames) -> str:
    span = "" if value is None else f" for {value} seconds"
    return f"{sender} let agents go on by themselves{span}"


def _held_sentence(sender: str, value: Any, event: BridgeEvent, names: DisplayNames) -> str:
    state = "muted" if _object(value).get("reason") == "participant_muted" else "paused"
    return f"{names(_participant_handle(value))} tried to speak while {state}, and the turn is held"


def _list_sentence(verb: str) -> Callable[..., str]:
    def listed(sender: str, value: Any, event: BridgeEvent, names: DisplayNames) -> str:
        rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
        return "; ".join(
            f"{names(_participant_handle(row))} {verb}: {row.get('reason')}" for row in rows
        )

    return listed


def _stop_text(value: Any) -> str:
    return STOPPED.get(str(value), str(value))


def _fixed_sentence(words: str) -> Callable[..., str]:
    return lambda sender, value, event, names: f"{sender} {words}"


def _switch_sentence(on: str, off: str) -> Callable[..., str]:
    return lambda sender, value, event, names: f"{sender} {on if _is_on(value) else off}"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


SENTENCES: dict[str, Callable[[str, Any, BridgeEvent, DisplayNames], str | None]] = {
    "mute": _mute_sentence,
    "unmute": lambda sender, value, _, names: f"{sender} unmuted {_target_names(value, names)}",
    "pause": _switch_sentence("paused the agents", "let it go on"),
    "prod": lambda sender, value, _, names: (
        f"{sender} asked {_target_names(value, names)} to speak once"
    ),
    "done": _fixed_sentence("had nothing more to say"),
    "ttl_seconds": _ttl_sentence,
    "discussion": _switch_sentence("let agents wake one another", "ended the discussion"),
    "invited_auto": _switch_sentence(
        "asked for everybody's answer", "asked for answers of those named"
    ),
    "invite": _invite_sentence,
    "uninvite": _uninvite_sentence,
    "continue": _fixed_sentence("let it go on"),
    "participation": _fixed_sentence("changed how turns are taken"),
    "vote": lambda sender, value, *_: f"{sender} put to the vote: {_object(value).get('decision')}",
    "admit": _fixed_sentence("let a held turn in"),
    "drop": _fixed_sentence("dropped a held turn"),
    "asks": lambda sender, value, *_: f"{sender} asked to use {_object(value).get('tool')}",
    "allow": _fixed_sentence("allowed it"),
    "deny": _fixed_sentence("did not allow it"),
    "held": _held_sentence,
    "wakes": _list_sentence("has the floor"),
    "skipped": _list_sentence("is passed by"),
    "called": _list_sentence("is called"),
    "stopped": lambda sender, value, *_: f"nobody is woken any more: {_stop_text(value)}",
}
