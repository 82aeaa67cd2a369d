"""Fold writes to channels. A write is recorded as it came.

Every reducer is total: ``check_write`` refuses a wrong value before it is recorded, and a fold over
an old log never raises.
"""

from fnmatch import fnmatchcase
from math import isfinite
from typing import Any

from msgspec import UNSET, Struct

from moot.core.workflows.schema import ChannelDef

LISTS = frozenset({"append", "votes", "feedback", "message"})
TIMED = frozenset({"append", "votes", "feedback"})
#: the keys of an entry of a timed channel
TIMED_KEYS = frozenset({"value", "_ts"})


class ChannelRule(Struct, frozen=True):
    """The rule for folding one channel.

    Each write records it, so that a later definition cannot change the meaning of an old log.
    """

    reducer: str
    ttl_ms: int = 0
    max_size: int = 0

    def moment_of(self, value: Any, at: int) -> int:
        """Return when the value was written; an entry of a timed channel carries its time."""
        carried = value.get("_ts") if self.ttl_ms and isinstance(value, dict) else None
        return carried if self.reducer in TIMED and isinstance(carried, int) else at

    def hints(self) -> dict[str, object] | None:
        """Return what the closed ``channel.written`` payload has no field for."""
        reducer = "message" if self.reducer == "message" else None
        hints = {"ttlMs": self.ttl_ms, "maxSize": self.max_size, "reducer": reducer}
        return {key: value for key, value in hints.items() if value} or None

    @property
    def recorded(self) -> str:
        """The reducer in the payload.

        The published schema does not know ``message``. Repeated ids are never recorded, so
        ``append`` folds the same list.
        """
        return "append" if self.reducer == "message" else self.reducer


def channel_rule(declared: ChannelDef) -> ChannelRule:
    ttl_ms, max_size = declared.ttl_ms or 0, declared.max_size or 0
    return ChannelRule(declared.reducer, ttl_ms, max_size)


def check_write(rule: ChannelRule, current: Any, value: Any) -> str | None:
    """Return why the write is refused, or None."""
    match rule.reducer:
        case "merge" if not isinstance(value, dict):
            return "a merge channel takes objects"
        case "counter" if not isinstance(value, (int, float)) or isinstance(value, bool):
            return "a counter channel takes numbers"
        case "votes" if not isinstance(value, dict) or not isinstance(value.get("userId"), str):
            return "a votes channel takes objects with a userId"
        case "message" if not isinstance(_message_id(value), str):
            return "a message channel takes objects with a messageId"
        case "counter" if not isfinite(_add_numbers(current, value)):
            return "the sum is too large for a number"
    limited = rule.max_size and rule.reducer not in TIMED
    if limited and _next_size(rule, current, value) > rule.max_size:
        return f"the channel is full (maxSize {rule.max_size})"
    return None


def is_repeat(entries: list[Any], value: Any) -> bool:
    """Return whether a message with this id is already there."""
    name = _message_id(value)
    return name is not None and any(_message_id(entry) == name for entry in entries)


def _message_id(value: Any) -> Any:
    return value.get("messageId") if isinstance(value, dict) else None


def stored_value(rule: ChannelRule, value: Any, at: int) -> Any:
    """Return the value to record; an entry of a timed channel carries its time."""
    return {"value": value, "_ts": at} if rule.ttl_ms and rule.reducer in TIMED else value


def reduce_channel(rule: ChannelRule, current: Any, value: Any, at: int) -> Any:
    """Return the next state of the channel. Lists are extended in place; the fold owns them."""
    if rule.reducer in LISTS:
        return _reduce_list(rule, current if isinstance(current, list) else [], value, at)
    if rule.reducer == "merge" and isinstance(value, dict):
        return {**(current if isinstance(current, dict) else {}), **value}
    if rule.reducer == "counter" and isinstance(value, (int, float)):
        return _add_numbers(current, value)
    return list(value) if isinstance(value, list) else value  # a later append is in place


def _add_numbers(current: Any, value: float) -> float:
    try:
        return float("inf") if isinstance(value, bool) else _number(current) + value
    except OverflowError:
        return float("inf")


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _reduce_list(rule: ChannelRule, entries: list[Any], value: Any, at: int) -> list[Any]:
    if rule.ttl_ms and rule.reducer in TIMED:
        entries = [entry for entry in entries if _written_at(entry) >= at - rule.ttl_ms]
    if rule.reducer == "votes":
        voter = _voter(value)
        entries = [entry for entry in entries if _voter(entry) != voter]
    if rule.reducer == "message" and is_repeat(entries, value):
        return entries
    entries.append(value)
    if rule.max_size and len(entries) > rule.max_size and rule.reducer in TIMED:
        del entries[: len(entries) - rule.max_size]
    return entries


def _unwrap_entry(entry: Any) -> Any:
    return entry["value"] if isinstance(entry, dict) and entry.keys() == TIMED_KEYS else entry


def _voter(entry: Any) -> Any:
    bare = _unwrap_entry(entry)
    return bare.get("userId") if isinstance(bare, dict) else None


def _written_at(entry: Any) -> float:
    moment = entry.get("_ts") if isinstance(entry, dict) else None
    return moment if isinstance(moment, (int, float)) else 0


def _next_size(rule: ChannelRule, current: Any, value: Any) -> int:
    if rule.reducer == "merge":
        return len({**(current if isinstance(current, dict) else {}), **value})
    if rule.reducer == "message":
        return int(current or 0) + 1
    return len(value) if isinstance(value, (list, dict)) else 1


def has_access(access: Any, side: str, node_id: str, type_id: str) -> bool:
    """Return whether a node is on the readers' or writers' list of a channel."""
    if access in ("public", "private"):
        return bool(access == "public")
    allowed = getattr(access, side)
    if allowed is UNSET:
        return True
    return any(entry == node_id or fnmatchcase(type_id, entry) for entry in allowed)
