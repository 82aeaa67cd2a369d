"""Who is here: what somebody says of himself, for as long as it counts. It is in no log."""

from typing import Any, Literal, cast, get_args

from msgspec import Struct

State = Literal["listening", "thinking", "typing", "idle", "online", "offline"]
STATES: tuple[str, ...] = get_args(State)

#: after so long without a word somebody is gone
TTL_MS = 120_000
#: and so long it is still told that he was here
KEPT_MS = 3_600_000


class Here(Struct, frozen=True, kw_only=True):
    """What was last heard of somebody. Details stay until there are others."""

    state: State
    #: µs
    at: int
    details: Any = None

    def stale(self, now: int, ttl_ms: int = TTL_MS) -> bool:
        return now - self.at > ttl_ms * 1000

    def shown(self, now: int, ttl_ms: int = TTL_MS) -> State:
        return "offline" if self.stale(now, ttl_ms) else self.state


def begun(said: Any) -> State | None:
    """``thinking``, ``thinking.start``, ``thinking.end`` or ``{"state": "thinking"}``. Who ends
    something listens again, and so does who names no state."""
    text = said.get("state", "listening") if isinstance(said, dict) else said
    if not isinstance(text, str):
        return None
    word, _, edge = text.partition(".")
    if edge not in ("", "start", "end") or word not in STATES:
        return None
    return "listening" if edge == "end" else cast(State, word)


def heard(before: Here | None, state: State, details: Any, at: int) -> Here:
    kept = before.details if details is None and before is not None else details
    return Here(state=state, at=at, details=kept)
