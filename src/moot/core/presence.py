"""Who is here: what somebody says of himself, for as long as it counts. It is in no log."""

from typing import Any, Literal, get_args

from msgspec import Struct

State = Literal["listening", "thinking", "typing", "idle", "online", "offline"]
STATES: tuple[str, ...] = get_args(State)

#: after so long without a word somebody is gone
TTL_MS = 120_000


class Here(Struct, frozen=True, kw_only=True):
    """What was last heard of somebody. Details stay until there are others."""

    state: State
    #: µs
    at: int
    details: dict[str, Any] | None = None

    def stale(self, now: int) -> bool:
        return now - self.at > TTL_MS * 1000

    def shown(self, now: int) -> State:
        return "offline" if self.stale(now) else self.state


def heard(before: Here | None, state: State, details: dict[str, Any] | None, at: int) -> Here:
    kept = before.details if details is None and before is not None else details
    return Here(state=state, at=at, details=kept)
