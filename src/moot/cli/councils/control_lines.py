"""Controls of a conversation as sentences, in the host's wording."""

from typing import Any

from moot.cli.councils.members import CouncilRoster
from moot.cli.shared.quantities import format_duration
from moot.core.state.control_content import control_targets
from moot.core.threads import control_text
from moot.core.threads.agent_bridge import handle_from_name, name_from_handle


def control_sentences(
    roster: CouncilRoster, event: dict[str, Any], kind: str, content: Any
) -> list[str]:
    """Return a sentence for each control of an event; a thread reports it as this ``kind``."""
    payload = event["payload"]
    sender = handle_from_name(payload.get("by") or payload.get("from", ""))
    line = {"type": kind, "from": sender, "content": content, "ts": event.get("timestamp", "")}
    if kind != "control" or not isinstance(content, dict) or not content:
        sentence = control_text.event_sentence(line, _name_lookup(roster))
        return [sentence] if sentence else []
    void = control_text.ignored_words(line)
    return [
        (_host_sentence if word in void else _control_sentence)(roster, line, word)
        for word in content
    ]


def _control_sentence(roster: CouncilRoster, line: dict[str, Any], word: str) -> str:
    """Return the host's sentence, except where the prompt has a next command or a spoken time."""
    value = line["content"][word]
    names = ", ".join(map(roster.called, control_targets(value)))
    on = value.get("on", True) if isinstance(value, dict) else value
    match word:
        case "mute" if isinstance(value, dict) and value.get("seconds"):
            sender = roster.called(name_from_handle(line["from"]))
            return f"{sender} muted {names} for {format_duration(value['seconds'])}"
        case "pause" if on:
            return "paused; agents hold. /resume to go on"
        case "prod":
            return f"{names} was asked to speak once"
        case _:
            return _host_sentence(roster, line, word)


def _host_sentence(roster: CouncilRoster, line: dict[str, Any], word: str) -> str:
    return control_text.control_sentence(line, word, _name_lookup(roster))


def _name_lookup(roster: CouncilRoster) -> control_text.DisplayNames:
    return lambda name: roster.called(name_from_handle(name))
