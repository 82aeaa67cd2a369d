"""Find time zones by their names in the IANA list."""

import re
from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from moot.core.text.nearest import nearest_word

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
#: entries of the zone database that are not zones
_NOT_ZONES = ("right", "posix", "posixrules", "localtime", "Factory")


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo | None:
    if name in ("UTC", "Etc/UTC"):
        return UTC
    if len(name) > 64 or not _ZONE.fullmatch(name) or name.split("/")[0] in _NOT_ZONES:
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a missing file, a folder, or a missing key
        return None


def nearest_zone(name: str) -> str | None:
    """Return the zone whose name or city is nearest to this one."""
    zones = _zones_by_word()
    word = name.casefold().replace(" ", "_")
    nearest = nearest_word(word, zones)
    return zones[nearest] if nearest is not None else None


@lru_cache(maxsize=1)
def _zones_by_word() -> dict[str, str]:
    zones = sorted(zone for zone in available_timezones() if "/" in zone)
    cities = {zone.rsplit("/")[-1].casefold(): zone for zone in zones}
    return {**cities, **{zone.casefold(): zone for zone in zones}}
