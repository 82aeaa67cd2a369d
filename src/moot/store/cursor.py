"""Opaque cursors: a place in the order of a list, newest first."""

import base64
import struct

from moot.core.errors import BadRequest

#: (created_at, number of the log): the order of ``list_runs``
Position = tuple[int, int]
#: before the first page
FIRST = 2**63 - 1
START: Position = (FIRST, FIRST)


def encode(position: Position) -> str:
    return packed(*position)


def decode(cursor: str | None) -> Position:
    created_at, number = START if cursor is None else unpacked(cursor, 2)
    return created_at, number


def packed(*numbers: int) -> str:
    raw = struct.pack(f">{len(numbers)}q", *numbers)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpacked(cursor: str, count: int) -> tuple[int, ...]:
    """As many numbers as it was made of. Raises BadRequest for what is no cursor."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return struct.unpack(f">{count}q", raw)
    except (ValueError, struct.error):
        raise BadRequest("The cursor is not one this list gave out; start without it.") from None
