"""Fold the variables and channels of a run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moot.core.events import Event
from moot.core.payloads.base import Payload
from moot.core.payloads.nodes import ChannelWritten, VariableChanged
from moot.core.workflows import channels

if TYPE_CHECKING:
    from moot.core.state.run import Run


def _apply_variable_changed(run: "Run", payload: VariableChanged, event: Event, at: int) -> None:
    if payload.next is not UNSET:
        run.variables[payload.name] = payload.next
    else:
        run.variables.pop(payload.name, None)


def _apply_channel_written(run: "Run", payload: ChannelWritten, event: Event, at: int) -> None:
    hints = event.known_hints
    reducer = hints.reducer or payload.reducer
    rule = channels.ChannelRule(reducer, hints.ttl_ms, hints.max_size)
    name = payload.channel
    value = payload.value
    if rule.reducer == "message":
        _count_message(run, name, value, hints.turn)
        return
    moment = rule.moment_of(value, at)
    run.channels[name] = channels.reduce_channel(rule, run.channels.get(name), value, moment)


def _count_message(run: "Run", name: str, value: Any, is_turn: bool) -> None:
    """Count a message, which stays in the log. Only messages of nodes need an id here."""
    run.messages[name] = run.messages.get(name, 0) + 1
    if not is_turn and isinstance(value, dict):
        run.message_ids.setdefault(name, []).append(str(value.get("messageId", "")))


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    VariableChanged: _apply_variable_changed,
    ChannelWritten: _apply_channel_written,
}
