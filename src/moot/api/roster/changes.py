"""What was changed of a standing agent: each field as it was and as it is."""

from typing import Any

import msgspec

from moot.agents.roster.members import Hired


def differences(was: Hired, now: Hired) -> list[dict[str, Any]]:
    """In the order in which fields are shown; None stands for what is not there."""
    before, after = _fields(was), _fields(now)
    return [
        {"field": name, "from": before.get(name), "to": after.get(name)}
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _fields(hired: Hired) -> dict[str, Any]:
    entry: dict[str, Any] = msgspec.to_builtins(hired.entry)
    entry = {"workflows": [], "enabled": True, **entry}
    limits: dict[str, Any] = msgspec.to_builtins(hired.budget) if hired.budget is not None else {}
    return {**entry, **limits}
