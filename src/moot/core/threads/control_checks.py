"""Describe the mistakes in a control.

In lenient mode the log keeps a control with mistakes, and it changes nothing.
"""

from collections.abc import Callable
from typing import Any

from moot.core.state import thread_controls
from moot.core.state.control_content import MOST_TARGETS, control_targets, is_duration, is_switch
from moot.core.text.names import is_participant_name
from moot.core.text.titles import TITLE_RULE, parse_title
from moot.core.threads import presence

#: controls that only a person may use; the others are open to every participant
HUMAN_CONTROLS = frozenset(
    thread_controls.PEOPLE_ONLY
    | {"continue", "admit", "drop", "allow", "deny", "participation", "vote"}
)
ALL_CONTROLS = HUMAN_CONTROLS | {
    "done", "invite", "uninvite", "rename", "link", "presence"
}  # fmt: skip
#: controls that change the thread's state or its participants
PLAIN_CONTROLS = frozenset({*thread_controls.CONTROL_HANDLERS, "invite", "uninvite"})


def control_problems(
    content: Any, known: frozenset[str] = PLAIN_CONTROLS, refused: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return each word with its mistake; ``""`` stands for the whole control.

    ``refused`` lists the words that the sender may not use.
    """
    if not isinstance(content, dict) or not content:
        return {"": 'A control is an object, such as {"mute": ["codex"]}.'}
    problems = {}
    for word, value in content.items():
        check = CHECKS.get(word)
        if word in refused:
            problems[word] = f"{word} is for people."
        elif check is not None and (problem := check(value)):
            problems[word] = f"{word} {problem}"
        elif word not in known:
            problems[word] = f"'{word[:64]}' is no control."
    return problems


def control_warning(
    content: Any, known: frozenset[str] = PLAIN_CONTROLS, refused: frozenset[str] = frozenset()
) -> str | None:
    return problems_text(list(control_problems(content, known, refused).values()))


def problems_text(problems: list[str]) -> str | None:
    return " ".join([*problems, "That is kept, and changes nothing."]) if problems else None


def _check_targets(value: Any) -> str | None:
    targets = value.get("targets") if isinstance(value, dict) else value
    if isinstance(targets, list) and len(targets) > MOST_TARGETS:
        return f"is about {MOST_TARGETS} names at most."
    return None if control_targets(value) else 'names nobody: ["codex"] or {"targets": ["codex"]}.'


def _check_mute(value: Any) -> str | None:
    if isinstance(value, dict):
        if value.get("mode", "hard") != "hard":
            return "knows the mode hard only."
        if "seconds" in value and not is_duration(value["seconds"]):
            return "takes a number of seconds, or none at all."
    return _check_targets(value)


def _check_switch(value: Any) -> str | None:
    return None if is_switch(value) else 'is {"on": true} or {"on": false}.'


def _check_true(value: Any) -> str | None:
    return None if value is True else "is true."


def _check_ttl(value: Any) -> str | None:
    return None if value is None or is_duration(value) else "is a number of seconds."


def _check_participant(value: Any) -> str | None:
    name = value.get("participant_id") if isinstance(value, dict) else value
    return None if is_participant_name(name) else "needs a participant_id that somebody may go by."


def _check_title(value: Any) -> str | None:
    return None if parse_title(value) is not None else f"needs another text. {TITLE_RULE}"


def _check_link(value: Any) -> str | None:
    name = value.get("thread") if isinstance(value, dict) else value
    return None if isinstance(name, str) and name else 'names a thread: {"thread": "th_…"}.'


def _check_presence(value: Any) -> str | None:
    return None if value in presence.STATES else f"is one of {', '.join(presence.STATES)}."


def _check_true_or_object(value: Any) -> str | None:
    return None if value is True or isinstance(value, dict) else "is true or an object."


def _check_object(value: Any) -> str | None:
    return None if isinstance(value, dict) else "is an object."


CHECKS: dict[str, Callable[[Any], str | None]] = {
    "rename": _check_title,
    "link": _check_link,
    "presence": _check_presence,
    "vote": _check_true_or_object,
    "continue": _check_true_or_object,
    "participation": _check_object,
    "mute": _check_mute,
    "unmute": _check_targets,
    "pause": _check_switch,
    "prod": _check_targets,
    "done": _check_true,
    "ttl_seconds": _check_ttl,
    "discussion": _check_switch,
    "invited_auto": _check_switch,
    "invite": _check_participant,
    "uninvite": _check_participant,
}
