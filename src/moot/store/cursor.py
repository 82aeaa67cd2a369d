"""Opaque cursors that mark a place in a list, newest first."""

import base64
import hashlib
import struct

from moot.core.errors import BadRequest

#: (created_at, or updated_at for threads; number of the log): the order of ``list_runs``
Position = tuple[int, int]
#: the position before the first page
FIRST = 2**63 - 1
START: Position = (FIRST, FIRST)


def encode_position(position: Position) -> str:
    return pack_numbers(*position)


def decode_position(cursor: str | None) -> Position:
    created_at, number = START if cursor is None else unpack_numbers(cursor, 2)
    return created_at, number


def pack_numbers(*numbers: int) -> str:
    raw = struct.pack(f">{len(numbers)}q", *numbers)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpack_numbers(cursor: str, count: int) -> tuple[int, ...]:
    """Return the ``count`` numbers of a cursor. Raise BadRequest when it is malformed."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return struct.unpack(f">{count}q", raw)
    except (ValueError, struct.error):
        raise foreign_cursor_error() from None


def bind_cursor(cursor: str | None, *list_name: str | None) -> str | None:
    """Return the cursor marked as one of the named list."""
    return None if cursor is None else cursor + _list_seal(list_name)


def unbind_cursor(cursor: str | None, *list_name: str | None) -> str | None:
    """Return the cursor without its mark. Raise BadRequest for a cursor of another list."""
    if cursor is None:
        return None
    seal = _list_seal(list_name)
    if not cursor.endswith(seal):
        raise foreign_cursor_error()
    return cursor.removesuffix(seal)


def foreign_cursor_error() -> BadRequest:
    return BadRequest("The cursor is not one this list gave out; start without it.")


def _list_seal(list_name: tuple[str | None, ...]) -> str:
    """Return a short digest of the name. It catches mistakes, not forgery.

    A forged cursor is harmless: it reaches only rows that its list shows anyway.
    """
    digest = hashlib.blake2b(repr(list_name).encode(), digest_size=6).digest()
    return "." + base64.urlsafe_b64encode(digest).decode()
