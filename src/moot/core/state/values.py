"""Variables and channels of a run, given its log."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.core.events import Event
from moot.core.workflows import channels

if TYPE_CHECKING:
    from moot.core.state.run import Run


def _variable(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    if "next" in said:
        run.variables[said.get("name", "")] = said["next"]
    else:
        run.variables.pop(said.get("name", ""), None)


def _channel(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    hints = event.hints if event.hints is not UNSET else {}
    rule = channels.Rule(
        str(hints.get("reducer") or said.get("reducer", "replace")),
        hints.get("ttlMs", 0),
        hints.get("maxSize", 0),
    )
    name = said.get("channel", "")
    value = said.get("value")
    if rule.reducer == "message":
        _message(run, name, value, hints)
        return
    moment = rule.moment_of(value, at)
    run.channels[name] = channels.reduce(rule, run.channels.get(name), value, moment)


def _message(run: "Run", name: str, value: Any, hints: dict[str, Any]) -> None:
    """Messages stay in the log. Ids are kept only of what nodes wrote: a turn's is its index."""
    run.messages[name] = run.messages.get(name, 0) + 1
    if not hints.get("turn") and isinstance(value, dict):
        run.message_ids.setdefault(name, []).append(str(value.get("messageId", "")))


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    "variable.changed": _variable,
    "channel.written": _channel,
}
