"""Turns that are held back until a person says whether they are heard. Part of the fold."""

from typing import Any

from moot.core.state.floor import MOST_HELD, Floor


def held(floor: Floor, said: dict[str, Any], sequence: int) -> None:
    """``moot.turn.held``: a person says later whether it is heard."""
    if len(floor.held) < MOST_HELD:
        floor.held[str(said.get("held", sequence))] = said.get("turn", {})


def settled(floor: Floor, said: dict[str, Any]) -> None:
    """``moot.turn.admitted`` and ``moot.turn.dropped``."""
    floor.held.pop(str(said.get("held", "")), None)
