"""The opaque cursor of ``list_runs``: a run's place in the order newest first."""

import base64
import struct

from moot.core.errors import BadRequest

#: (created_at, number of the log): the order of the list
Position = tuple[int, int]
#: before the first page
START: Position = (2**63 - 1, 2**63 - 1)

_FORM = struct.Struct(">qq")


def encode(position: Position) -> str:
    return base64.urlsafe_b64encode(_FORM.pack(*position)).decode().rstrip("=")


def decode(cursor: str | None) -> Position:
    if cursor is None:
        return START
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        created_at, number = _FORM.unpack(raw)
    except (ValueError, struct.error):
        raise BadRequest("The cursor is not one this list gave out; start without it.") from None
    return created_at, number
