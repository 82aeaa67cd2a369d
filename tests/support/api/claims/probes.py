"""The table of probes, one for each claim of the discovery document."""

from collections.abc import Callable
from typing import Any

from tests.support.api.caller import Api

Probe = Callable[[Api, Any], None]
PROBES: dict[str, Probe] = {}


def claims(*names: str) -> Callable[[Probe], Probe]:
    """The decorated function probes these claims; a name ending in .* takes all below it."""

    def keep(probe: Probe) -> Probe:
        PROBES.update(dict.fromkeys(names, probe))
        return probe

    return keep


def document(api: Api) -> dict[str, Any]:
    return dict(api.get("/.well-known/openwop").json())
