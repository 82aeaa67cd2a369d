"""What was steered, in the host's own sentences, as who looks calls everybody."""

from typing import Any

from moot.cli.councils.members import Room
from moot.cli.shared.quantities import in_words
from moot.core.state.thread_controls import targets
from moot.core.threads import control_text
from moot.core.threads.agent_bridge import handle, identified


def told_of(room: Room, event: dict[str, Any], kind: str, content: Any) -> list[str]:
    """An event of the log, of which a thread would tell as one of this kind."""
    said = event["payload"]
    who = handle(said.get("by") or said.get("from", ""))
    told = {"type": kind, "from": who, "content": content, "ts": event.get("timestamp", "")}
    if kind != "control" or not isinstance(content, dict) or not content:
        sentence = control_text.says(told, _names(room))
        return [sentence] if sentence else []
    void = control_text.void(told)
    return [_plain(room, told, word) if word in void else _control(room, told, word)
            for word in content]  # fmt: skip


def _control(room: Room, told: dict[str, Any], word: str) -> str:
    """As the host words it, but for what can be typed next, and times as people say them."""
    value = told["content"][word]
    names = ", ".join(map(room.called, targets(value)))
    on = value.get("on", True) if isinstance(value, dict) else value
    match word:
        case "mute" if isinstance(value, dict) and value.get("seconds"):
            who = room.called(identified(told["from"]))
            return f"{who} muted {names} for {in_words(value['seconds'])}"
        case "pause" if on:
            return "paused; agents hold. /resume to go on"
        case "prod":
            return f"{names} was asked to speak once"
        case _:
            return _plain(room, told, word)


def _plain(room: Room, told: dict[str, Any], word: str) -> str:
    return control_text.control(told, word, _names(room))


def _names(room: Room) -> control_text.Names:
    return lambda name: room.called(identified(name))
