"""Where the golden logs are, and what is compared: the folded state without what is default."""

from pathlib import Path
from typing import Any

import msgspec

from moot.core.events import Event, decode
from moot.core.state.run import Run, fold
from tests.support.servers import ROOT

LOGS = ROOT / "tests" / "replay" / "logs"
#: by their digests, what the logs are of
DEFINITIONS = ROOT / "tests" / "replay" / "definitions"


def read_log(path: Path) -> list[Event]:
    return [decode(line) for line in path.read_bytes().splitlines()]


def folded(events: list[Event]) -> Run:
    return fold(events[0].run_id, events)


def shown(run: Run) -> dict[str, Any]:
    """A field that a later version adds does not show until a log says something of it."""
    blank = msgspec.to_builtins(Run(""))
    return {name: value for name, value in msgspec.to_builtins(run).items() if value != blank[name]}


def beside(path: Path) -> Path:
    return path.with_suffix(".json")


def pretty(state: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(state, order="sorted"), indent=2) + b"\n"
