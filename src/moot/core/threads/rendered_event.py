"""The form of a thread's events in Agent Bridge."""

from typing import Any

from msgspec import Struct, field


class RenderedEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a thread. ``seq`` is the cursor, ``turn`` the number of a turn."""

    id: str
    ts: str
    thread: str
    seq: int
    type: str
    sender: str = field(name="from")
    to: str
    content: Any
    meta: dict[str, Any]
    turn: int | None = None
