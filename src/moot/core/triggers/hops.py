"""How often what happened here was told outside and came back as something that begins a run.

A webhook that leads, straight or by way of others, to an address where runs begin would feed
itself for ever. Each call says how many such steps lie behind it, the run that it begins keeps
that, and beyond a bound no run begins. Pure.
"""

from msgspec import Struct, json

HEADER = "X-Moot-Hops"
#: steps behind what may still begin a run
MOST_HOPS = 5
#: digits of a number that is believed
LONGEST = 6


class _Said(Struct, rename="camel"):
    hops: int = 0
    parent_run_id: str | None = None


class _Start(Struct):
    payload: _Said


_decode = json.Decoder(_Start).decode


def hops_of(header: str | None) -> int:
    """What a call says; one that says nothing sensible comes from somewhere else."""
    given = (header or "").strip()
    plain = given.isascii() and given.isdecimal() and len(given) <= LONGEST
    return int(given) if plain else 0


def behind(start: bytes) -> tuple[int, str | None]:
    """How many steps a run's first event tells of, and the run whose child it is."""
    said = _decode(start).payload
    return said.hops, said.parent_run_id
