"""Times that a request names."""

from datetime import datetime

from moot.core.errors import BadRequest
from moot.core.schedules.calendar import LAST_INSTANT


def to_come(text: str | None, now: int) -> int | None:
    """The end of a pause (ms), which is yet to come."""
    if text is None:
        return None
    until = _instant(text)
    if until <= now:
        raise BadRequest("until has passed; name a time to come.", field="until")
    return until


def _instant(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise BadRequest(f"'{text[:64]}' is no ISO time.", field="until") from None
    if found.tzinfo is None:
        raise BadRequest("until needs a time zone, such as Z or +01:00.", field="until")
    at = round(found.timestamp() * 1000)
    if not 0 <= at < LAST_INSTANT:
        raise BadRequest(f"'{text[:64]}' is outside of this host's calendar.", field="until")
    return at
