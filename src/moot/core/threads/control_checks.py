"""What is wrong with a control, in words. It is kept as it came, and changes nothing."""

from collections.abc import Callable
from typing import Any

from moot.core.conversations import joining
from moot.core.state import thread_controls
from moot.core.state.conversation import TITLE, as_title
from moot.core.threads import presence

#: words that the fold of a thread knows, and who comes and goes
PLAIN = frozenset({*thread_controls.ACTS, "invite", "uninvite"})


def problems(
    content: Any, known: frozenset[str] = PLAIN, refused: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Word -> what is wrong with what it says; ``""`` is the whole of it. ``refused``: words that
    are not for who says them."""
    if not isinstance(content, dict) or not content:
        return {"": 'A control is an object, such as {"mute": ["codex"]}.'}
    found = {}
    for word, value in content.items():
        check = CHECKS.get(word)
        if word in refused:
            found[word] = f"{word} is for people."
        elif check is not None and (wrong := check(value)):
            found[word] = f"{word} {wrong}"
        elif word not in known:
            found[word] = f"'{word[:64]}' is no control."
    return found


def warning(
    content: Any, known: frozenset[str] = PLAIN, refused: frozenset[str] = frozenset()
) -> str | None:
    return told(list(problems(content, known, refused).values()))


def told(wrong: list[str]) -> str | None:
    """What is wrong, for who has sent it."""
    return " ".join([*wrong, "That is kept, and changes nothing."]) if wrong else None


def _names(value: Any) -> str | None:
    about = value.get("targets") if isinstance(value, dict) else value
    if isinstance(about, list) and len(about) > thread_controls.MOST_TARGETS:
        return f"is about {thread_controls.MOST_TARGETS} names at most."
    return (
        None
        if thread_controls.targets(value)
        else 'names nobody: ["codex"] or {"targets": ["codex"]}.'
    )


def _mute(value: Any) -> str | None:
    if isinstance(value, dict):
        if value.get("mode", "hard") != "hard":
            return "knows the mode hard only."
        if "seconds" in value and not thread_controls.is_time(value["seconds"]):
            return "takes a number of seconds, or none at all."
    return _names(value)


def _switch(value: Any) -> str | None:
    return None if thread_controls.is_switch(value) else 'is {"on": true} or {"on": false}.'


def _true(value: Any) -> str | None:
    return None if value is True else "is true."


def _ttl(value: Any) -> str | None:
    return None if value is None or thread_controls.is_time(value) else "is a number of seconds."


def _who(value: Any) -> str | None:
    name = value.get("participant_id") if isinstance(value, dict) else value
    return None if joining.is_guest(name) else "needs a participant_id that somebody may go by."


def _title(value: Any) -> str | None:
    return None if as_title(value) is not None else f"needs another text. {TITLE}"


def _link(value: Any) -> str | None:
    name = value.get("thread") if isinstance(value, dict) else value
    return None if isinstance(name, str) and name else 'names a thread: {"thread": "th_…"}.'


def _state(value: Any) -> str | None:
    return None if value in presence.STATES else f"is one of {', '.join(presence.STATES)}."


def _said(value: Any) -> str | None:
    return None if value is True or isinstance(value, dict) else "is true or an object."


def _object(value: Any) -> str | None:
    return None if isinstance(value, dict) else "is an object."


CHECKS: dict[str, Callable[[Any], str | None]] = {
    "rename": _title,
    "link": _link,
    "presence": _state,
    "vote": _said,
    "continue": _said,
    "participation": _object,
    "mute": _mute,
    "unmute": _names,
    "pause": _switch,
    "prod": _names,
    "done": _true,
    "ttl_seconds": _ttl,
    "discussion": _switch,
    "invited_auto": _switch,
    "invite": _who,
    "uninvite": _who,
}
