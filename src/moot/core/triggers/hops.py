"""Count how often an event left this host and came back to start a run.

A webhook that leads back to an address where runs start would feed itself forever. Each call
carries its number of hops, the run that it starts records it, and above a limit no run starts.
Pure.
"""

from msgspec import Struct, json

HEADER = "X-Moot-Hops"
#: the most hops with which a run may still start
MOST_HOPS = 5
#: the most digits of a number that is accepted
MAX_DIGITS = 6


class _StartPayload(Struct, rename="camel"):
    """The fields of a run's first payload that matter here."""

    hops: int = 0
    parent_run_id: str | None = None


class _RunStarted(Struct):
    """The first event of a run."""

    payload: _StartPayload


_decode = json.Decoder(_RunStarted).decode


def parse_hops(header: str | None) -> int:
    """Return the number in the header, or 0 without a valid one."""
    text = (header or "").strip()
    valid = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if valid else 0


def hops_from_start(start: bytes) -> tuple[int, str | None]:
    """Return the hops in a run's first event, and the id of its parent run."""
    payload = _decode(start).payload
    return payload.hops, payload.parent_run_id
