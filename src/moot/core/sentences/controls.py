"""Sentences about the controls of a thread, one for each word of a control."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from moot.core.payloads.conversations import ThreadControlled
from moot.core.sentences.sentence import Names
from moot.core.state.control_content import control_targets, duration_ms
from moot.core.state.thread_controls import PEOPLE_ONLY
from moot.core.text.names import is_person
from moot.core.text.quantities import format_duration
from moot.core.threads.control_checks import control_problems

#: characters of a value that is printed as it is
BRIEF = 60

WordSentence = Callable[[str, Any, Names], str]


def control_sentence(payload: ThreadControlled, names: Names) -> str:
    """Return the sentences about all words of a control."""
    return "; ".join(control_sentences(payload, names))


def control_sentences(payload: ThreadControlled, names: Names) -> list[str]:
    """Return a sentence about each word, also about a word that changed nothing.

    Other words than those of the table act by events of their own. The log holds one of them in a
    control only when it changed nothing.
    """
    sender, content = names(payload.from_), payload.content
    if not isinstance(content, dict):
        return [f"{sender} sent what is no control, which changed nothing"]
    if not content:
        return [f"{sender} said nothing"]
    may_steer = is_person(payload.from_) or payload.from_ == "system"
    refused = frozenset() if may_steer else PEOPLE_ONLY
    ignored = control_problems(content, frozenset(WORDS), refused)
    return [
        f"{sender} set {word[:64]} to {plain_value(value)}, which changed nothing"
        if word in ignored
        else WORDS[word](sender, value, names)
        for word, value in content.items()
    ]


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
    fields: Mapping[str, object] = value if isinstance(value, dict) else {}
    return fields.get("participant_id", fields.get("targets", value))


def _target_names(value: Any, names: Names) -> str:
    return ", ".join(map(names, control_targets(value)))


def _mute_sentence(sender: str, value: Any, names: Names) -> str:
    span_ms = duration_ms(value.get("seconds")) if isinstance(value, dict) else None
    span = "" if span_ms is None else f" for {format_duration(span_ms / 1000)}"
    return f"{sender} muted {_target_names(value, names)}{span}"


def _ttl_sentence(sender: str, value: Any, names: Names) -> str:
    span = "" if value is None else f" for {value} seconds"
    return f"{sender} let agents go on by themselves{span}"


def _switch(on: str, off: str) -> WordSentence:
    def sentence(sender: str, value: Any, names: Names) -> str:
        is_on = value.get("on", True) if isinstance(value, dict) else value
        return f"{sender} {on if is_on is True else off}"

    return sentence


WORDS: dict[str, WordSentence] = {
    "mute": _mute_sentence,
    "unmute": lambda sender, value, names: f"{sender} unmuted {_target_names(value, names)}",
    "pause": _switch("paused the agents", "let it go on"),
    "prod": lambda sender, value, names: (
        f"{sender} asked {_target_names(value, names)} to speak once"
    ),
    "done": lambda sender, value, names: f"{sender} had nothing more to say",
    "ttl_seconds": _ttl_sentence,
    "discussion": _switch("let agents wake one another", "ended the discussion"),
    "invited_auto": _switch("asked for everybody's answer", "asked for answers of those named"),
}
