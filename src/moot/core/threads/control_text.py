"""Controls as people read them."""

import json
from collections.abc import Callable
from typing import Any

from moot.core.events import iso, micros
from moot.core.state import thread_controls
from moot.core.state.floor import PAIR
from moot.core.threads import control_checks
from moot.core.threads.agent_bridge import COORDINATOR, Told, handle
from moot.core.threads.decide import KNOWN

#: what anybody but the host may say; asking for a tool's use is told as a control
OF_MEMBERS = KNOWN | {"asks"}

#: how somebody who goes by a handle is called; whoever reads may be "you"
Names = Callable[[str], str]

#: limits in words, where their name says too little
STOPPED = {PAIR: "two agents have answered one another often enough"}

#: characters of a value that says nothing
BRIEF = 60


def says(told: Told, called: Names = str) -> str | None:
    """An event of a thread in a sentence; a turn speaks for itself."""
    who, content = called(told["from"]), told["content"]
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
            parts = [control(told, word, called) for word in content]
            return "; ".join(parts) or f"{who} said nothing"
        case "control":
            return f"{who} sent what is no control, which changed nothing"
        case _:
            return None


def control(told: Told, word: str, called: Names = str) -> str:
    """One word of a control. What nobody understands, or only the host may say, is named."""
    who, value = called(told["from"]), told["content"][word]
    if word in void(told):
        return f"{who} set {word[:64]} to {plainly(value)}, which changed nothing"
    sentence = SENTENCES.get(word)
    said = None if sentence is None else sentence(who, value, told, called)
    return said or f"{who} set {word[:64]} to {plainly(value)}"


def void(told: Told) -> dict[str, str]:
    """The words of a control that changed nothing, and why."""
    if told["from"] == COORDINATOR or not isinstance(told["content"], dict):
        return {}
    return control_checks.problems(told["content"], OF_MEMBERS)


def plainly(value: Any) -> str:
    """A value on one line, without the marks of JSON: whom it names, or what it holds."""
    text = " ".join(_words(value).split()) or "nothing"
    return text if len(text) <= BRIEF else text[: BRIEF - 1] + "…"


def _words(value: Any, inner: bool = False) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict | list):
        return json.dumps(value)
    if inner:
        return "…"
    if isinstance(value, list):
        return ", ".join(_words(_named(one), True) for one in value[:BRIEF])
    whom = _named(value)
    if whom is not value:
        return _words(whom)
    return ", ".join(f"{key} {_words(one, True)}" for key, one in [*value.items()][:BRIEF])


def _named(value: Any) -> Any:
    """Whom an object is about, where it says so."""
    found = _object(value)
    return found.get("participant_id", found.get("targets", value))


def _names(value: Any, called: Names) -> str:
    return ", ".join(called(handle(name)) for name in thread_controls.targets(value))


def _mute(who: str, value: Any, told: Told, called: Names) -> str | None:
    seconds = value.get("seconds") if isinstance(value, dict) else None
    muted = f"{who} muted {_names(value, called)}"
    if seconds is None or not thread_controls.is_time(seconds):
        return muted
    until = iso(micros(told["ts"]) + int(seconds * 1_000_000))
    return f"{muted} until {until[:19].replace('T', ' ')} UTC"


def _on(value: Any) -> bool:
    return value.get("on", True) is True if isinstance(value, dict) else value is True


def _who(value: Any) -> str:
    return handle(value.get("participant_id") if isinstance(value, dict) else value)


def _invite(who: str, value: Any, told: Told, called: Names) -> str:
    whom = called(_who(value))
    if _object(value).get("changed") is True:
        return f"the profile of {whom} was changed" + ("" if whom == who else f" by {who}")
    return f"{who} joined" if whom == who else f"{who} invited {whom}"


def _uninvite(who: str, value: Any, told: Told, called: Names) -> str:
    whom = called(_who(value))
    return f"{who} left" if whom == who else f"{who} sent {whom} away"


def _ttl(who: str, value: Any, told: Told, called: Names) -> str:
    span = "" if value is None else f" for {value} seconds"
    return f"{who} let agents go on by themselves{span}"


def _held(who: str, value: Any, told: Told, called: Names) -> str:
    state = "muted" if _object(value).get("reason") == "participant_muted" else "paused"
    return f"{called(_who(value))} tried to speak while {state}, and the turn is held"


def _listed(verb: str) -> Callable[..., str]:
    def listed(who: str, value: Any, told: Told, called: Names) -> str:
        found = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
        return "; ".join(f"{called(_who(one))} {verb}: {one.get('reason')}" for one in found)

    return listed


def _stop(value: Any) -> str:
    return STOPPED.get(str(value), str(value))


def _plain(words: str) -> Callable[..., str]:
    return lambda who, value, told, called: f"{who} {words}"


def _switched(on: str, off: str) -> Callable[..., str]:
    return lambda who, value, told, called: f"{who} {on if _on(value) else off}"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


SENTENCES: dict[str, Callable[[str, Any, Told, Names], str | None]] = {
    "mute": _mute,
    "unmute": lambda who, value, _, called: f"{who} unmuted {_names(value, called)}",
    "pause": _switched("paused the agents", "let it go on"),
    "prod": lambda who, value, _, called: f"{who} asked {_names(value, called)} to speak once",
    "done": _plain("had nothing more to say"),
    "ttl_seconds": _ttl,
    "discussion": _switched("let agents wake one another", "ended the discussion"),
    "invited_auto": _switched("asked for everybody's answer", "asked for answers of those named"),
    "invite": _invite,
    "uninvite": _uninvite,
    "continue": _plain("let it go on"),
    "participation": _plain("changed how turns are taken"),
    "vote": lambda who, value, *_: f"{who} put to the vote: {_object(value).get('decision')}",
    "admit": _plain("let a held turn in"),
    "drop": _plain("dropped a held turn"),
    "asks": lambda who, value, *_: f"{who} asked to use {_object(value).get('tool')}",
    "allow": _plain("allowed it"),
    "deny": _plain("did not allow it"),
    "held": _held,
    "wakes": _listed("has the floor"),
    "skipped": _listed("is passed by"),
    "called": _listed("is called"),
    "stopped": lambda who, value, *_: f"nobody is woken any more: {_stop(value)}",
}
