"""Parse the content of a thread control: targets, switches and durations.

The code that checks a control and the code that applies it both parse it here, so they agree.
"""

import re
from typing import Any

import msgspec

from moot.core.json.nesting import is_too_deep
from moot.core.text.names import full_name

#: a hundred years; a longer duration is refused
LONGEST_SECONDS = 100 * 365 * 86_400
#: a duration in words: 90s, 10m, 2h, 1d
_SPAN = re.compile(r"([0-9]{1,9}) ?([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

#: names in one control, characters of one name, and names of one kind in the state
MOST_TARGETS = 256
LONGEST_TARGET = 256
MOST_NAMES = 1024


def parse_control(content: Any) -> Any:
    """Return the content as an object when it is JSON text, with a mute's duration in seconds.

    Content that cannot be parsed is returned unchanged.
    """
    if not isinstance(content, str):
        return _parse_mute_duration(content)
    try:
        body = content.encode()
        parsed = None if is_too_deep(body) else msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return content
    return _parse_mute_duration(parsed) if isinstance(parsed, dict) else content


def _parse_mute_duration(content: Any) -> Any:
    """``{"mute": ["id"], "for": "10m"}`` and ``{"mute": ["id"], "seconds": 600}`` both become
    ``{"mute": {"targets": ["id"], "seconds": 600}}``. An unreadable duration stays as it is, so
    that a typing error never mutes a participant for good."""
    if not isinstance(content, dict) or "mute" not in content:
        return content
    value = content["mute"]
    mute = value if isinstance(value, dict) else {"targets": value}
    source = mute if "for" in mute else content
    if "seconds" in mute or not {"for", "seconds"} & source.keys():
        return content
    seconds = _parse_seconds(source["for"]) if "for" in source else source["seconds"]
    rest_of_mute = {key: each for key, each in mute.items() if key != "for"}
    rest = {key: each for key, each in content.items() if key not in ("for", "seconds")}
    return {**rest, "mute": {**rest_of_mute, "seconds": seconds}}


def _parse_seconds(words: Any) -> Any:
    parts = _SPAN.fullmatch(words) if isinstance(words, str) else None
    return words if parts is None else int(parts[1]) * _UNITS[parts[2]]


def control_targets(value: Any) -> list[str]:
    """Return the names in ``["id"]`` or ``{"targets": ["id"]}``; an empty list for other values."""
    names = value.get("targets") if isinstance(value, dict) else value
    if not isinstance(names, list) or len(names) > MOST_TARGETS:
        return []
    texts = [name for name in names if isinstance(name, str)]
    return [full_name(name) for name in texts if 0 < len(name) <= LONGEST_TARGET]


def switch_value(value: Any) -> bool | None:
    """Return the state in ``true``, ``{"on": true}`` or ``{}``; None for other values."""
    state = value.get("on", True) if isinstance(value, dict) else value
    return state if isinstance(state, bool) else None


def duration_ms(seconds: Any) -> int | None:
    """Return None for a value that is not a duration, or a longer one than a hundred years."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return int(seconds * 1000) if 0 < seconds <= LONGEST_SECONDS else None


def is_switch(value: Any) -> bool:
    return switch_value(value) is not None


def is_duration(value: Any) -> bool:
    return duration_ms(value) is not None
