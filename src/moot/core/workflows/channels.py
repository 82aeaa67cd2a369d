"""Channels: a write is recorded as it came, the state is the fold of the writes.

Every reducer here is total: a value of the wrong shape is refused by ``check`` before it is
recorded, and a fold over an old log never raises.
"""

from fnmatch import fnmatchcase
from math import isfinite
from typing import Any

from msgspec import UNSET, Struct

from moot.core.workflows.definition import ChannelDef

LISTS = frozenset({"append", "votes", "feedback", "message"})
TIMED = frozenset({"append", "votes", "feedback"})
#: an entry of a timed channel
STORED = frozenset({"value", "_ts"})


class Rule(Struct, frozen=True):
    """How one channel is folded. Recorded with each write, so that a later change of the
    definition cannot change what an old log means."""

    reducer: str
    ttl_ms: int = 0
    max_size: int = 0

    def moment_of(self, value: Any, at: int) -> int:
        """When the value was written: the time it carries, on a timed channel."""
        carried = value.get("_ts") if self.ttl_ms and isinstance(value, dict) else None
        return carried if self.reducer in TIMED and isinstance(carried, int) else at

    def hints(self) -> dict[str, Any] | None:
        """What the closed ``channel.written`` payload has no room for."""
        hints: dict[str, Any] = {}
        if self.ttl_ms:
            hints["ttlMs"] = self.ttl_ms
        if self.max_size:
            hints["maxSize"] = self.max_size
        if self.reducer == "message":
            hints["reducer"] = "message"
        return hints or None

    @property
    def recorded(self) -> str:
        """The published payload schema does not know ``message``; repeated ids are never recorded,
        so any reader that folds these writes with ``append`` gets the same list."""
        return "append" if self.reducer == "message" else self.reducer


def rule_of(declared: ChannelDef) -> Rule:
    return Rule(
        declared.reducer,
        0 if declared.ttl_ms is UNSET else declared.ttl_ms,
        0 if declared.max_size is UNSET else declared.max_size,
    )


def check(rule: Rule, current: Any, value: Any) -> str | None:
    """Why this write cannot be taken, or nothing."""
    match rule.reducer:
        case "merge" if not isinstance(value, dict):
            return "a merge channel takes objects"
        case "counter" if not isinstance(value, (int, float)) or isinstance(value, bool):
            return "a counter channel takes numbers"
        case "votes" if not isinstance(value, dict) or not isinstance(value.get("userId"), str):
            return "a votes channel takes objects with a userId"
        case "message" if not isinstance(value, dict) or not isinstance(
            value.get("messageId"), str
        ):
            return "a message channel takes objects with a messageId"
        case "counter" if not isfinite(_sum(current, value)):
            return "the sum is too large for a number"
    if rule.max_size and rule.reducer not in TIMED and _size(rule, current, value) > rule.max_size:
        return f"the channel is full (maxSize {rule.max_size})"
    return None


def is_repeat(entries: list[Any], value: Any) -> bool:
    """A message whose id is already there: taken once, recorded once."""
    name = value.get("messageId") if isinstance(value, dict) else None
    return name is not None and any(
        isinstance(entry, dict) and entry.get("messageId") == name for entry in entries
    )


def stored(rule: Rule, value: Any, at: int) -> Any:
    """The value as it is recorded: entries of a timed channel carry their time."""
    return {"value": value, "_ts": at} if rule.ttl_ms and rule.reducer in TIMED else value


def reduce(rule: Rule, current: Any, value: Any, at: int) -> Any:
    """The next state of the channel. Lists are extended in place; the fold owns them."""
    if rule.reducer in LISTS:
        return _reduce_list(rule, current if isinstance(current, list) else [], value, at)
    if rule.reducer == "merge" and isinstance(value, dict):
        return {**(current if isinstance(current, dict) else {}), **value}
    if rule.reducer == "counter" and isinstance(value, (int, float)):
        return _sum(current, value)
    return list(value) if isinstance(value, list) else value  # a later append is in place


def _sum(current: Any, value: float) -> float:
    try:
        return float("inf") if isinstance(value, bool) else _number(current) + value
    except OverflowError:
        return float("inf")


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _reduce_list(rule: Rule, entries: list[Any], value: Any, at: int) -> list[Any]:
    if rule.ttl_ms and rule.reducer in TIMED:
        entries = [entry for entry in entries if _written(entry) >= at - rule.ttl_ms]
    if rule.reducer == "votes":
        voter = _bare(value).get("userId") if isinstance(_bare(value), dict) else None
        entries = [entry for entry in entries if _voter(entry) != voter]
    if rule.reducer == "message" and is_repeat(entries, value):
        return entries
    entries.append(value)
    if rule.max_size and len(entries) > rule.max_size and rule.reducer in TIMED:
        del entries[: len(entries) - rule.max_size]
    return entries


def _bare(entry: Any) -> Any:
    return entry["value"] if isinstance(entry, dict) and entry.keys() == STORED else entry


def _voter(entry: Any) -> Any:
    bare = _bare(entry)
    return bare.get("userId") if isinstance(bare, dict) else None


def _written(entry: Any) -> float:
    moment = entry.get("_ts") if isinstance(entry, dict) else None
    return moment if isinstance(moment, (int, float)) else 0


def _size(rule: Rule, current: Any, value: Any) -> int:
    if rule.reducer == "merge":
        return len({**(current if isinstance(current, dict) else {}), **value})
    if rule.reducer == "message":
        return int(current or 0) + 1
    return len(value) if isinstance(value, (list, dict)) else 1


def may(access: Any, side: str, node_id: str, type_id: str) -> bool:
    """Whether a node is on the readers' or writers' list of a channel."""
    if access in ("public", "private"):
        return bool(access == "public")
    allowed = getattr(access, side)
    if allowed is UNSET:
        return True
    return any(entry == node_id or fnmatchcase(type_id, entry) for entry in allowed)
