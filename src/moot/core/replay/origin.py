"""Where a fork comes from, as its first event says it."""

from typing import Any

import msgspec
from msgspec import Struct


class Origin(Struct, frozen=True, rename="camel"):
    """The source, the first sequence that is not its history, how and why the fork was made."""

    source_run_id: str
    from_seq: int
    mode: str
    note: str | None = None


def origin(forked_from: Any) -> Origin | None:
    """None for a run that is no fork, and for what nobody can read: a list must not fail by it."""
    try:
        return msgspec.convert(forked_from, Origin)
    except msgspec.ValidationError:
        return None
