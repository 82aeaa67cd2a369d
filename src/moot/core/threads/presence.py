"""Presence of participants, as they last reported it. The host keeps it in memory."""

from typing import Any, Literal, cast, get_args

from msgspec import Struct

PresenceState = Literal["listening", "thinking", "typing", "idle", "online", "offline"]
STATES: tuple[str, ...] = get_args(PresenceState)

#: after this time without a report a participant is offline
TTL_MS = 120_000
#: for this time an offline participant is still listed
RETENTION_MS = 3_600_000


class PresenceRecord(Struct, frozen=True, kw_only=True):
    """The last report of a participant. Details stay until a report brings new ones."""

    state: PresenceState
    #: µs
    at: int
    details: Any = None

    def stale(self, now: int, ttl_ms: int = TTL_MS) -> bool:
        return now - self.at > ttl_ms * 1000

    def shown(self, now: int, ttl_ms: int = TTL_MS) -> PresenceState:
        return "offline" if self.stale(now, ttl_ms) else self.state


def parse_presence(value: Any) -> PresenceState | None:
    """Parse ``thinking``, ``thinking.start``, ``thinking.end`` or ``{"state": "thinking"}``.

    An end and an object without a state both mean ``listening``.
    """
    text = value.get("state", "listening") if isinstance(value, dict) else value
    if not isinstance(text, str):
        return None
    word, _, edge = text.partition(".")
    if edge not in ("", "start", "end") or word not in STATES:
        return None
    return "listening" if edge == "end" else cast(PresenceState, word)


def update_presence(
    record: PresenceRecord | None, state: PresenceState, details: Any, at: int
) -> PresenceRecord:
    merged = record.details if details is None and record is not None else details
    return PresenceRecord(state=state, at=at, details=merged)
