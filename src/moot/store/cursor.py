"""Opaque cursors: a place in the order of a list, newest first."""

import base64
import hashlib
import struct

from moot.core.errors import BadRequest

#: (created_at, or updated_at of threads, and the number of the log): the order of ``list_runs``
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
        raise not_ours() from None


def bound(cursor: str | None, *of: str | None) -> str | None:
    """For the list of this name alone."""
    return None if cursor is None else cursor + _seal(of)


def unbound(cursor: str | None, *of: str | None) -> str | None:
    """What was bound. Raises BadRequest for what another list gave out."""
    if cursor is None:
        return None
    seal = _seal(of)
    if not cursor.endswith(seal):
        raise not_ours()
    return cursor.removesuffix(seal)


def not_ours() -> BadRequest:
    return BadRequest("The cursor is not one this list gave out; start without it.")


def _seal(of: tuple[str | None, ...]) -> str:
    """Keeps mistakes away, not forgers: a cursor reaches nothing that its list does not show."""
    digest = hashlib.blake2b(repr(of).encode(), digest_size=6).digest()
    return "." + base64.urlsafe_b64encode(digest).decode()
