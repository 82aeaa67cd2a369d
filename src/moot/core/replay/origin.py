"""The origin of a fork, as its first event records it."""

from typing import Any

import msgspec
from msgspec import Struct


class ForkOrigin(Struct, frozen=True, rename="camel"):
    """The source of a fork, the first sequence of its own, its mode and a note."""

    source_run_id: str
    from_seq: int
    mode: str
    note: str | None = None


def fork_origin(forked_from: Any) -> ForkOrigin | None:
    """Return None for a run that is not a fork, and for a malformed origin. Never raise."""
    if forked_from is None:
        return None
    try:
        return msgspec.convert(forked_from, ForkOrigin)
    except msgspec.ValidationError:
        return None
