"""Members of led conversations that wait for a person's word on a tool, given the log."""

from typing import Any

from moot.core.state.agents import in_brief
from moot.core.state.floor import MOST_HELD, NEVER, Floor, ToolAsk


def asked(floor: Floor, said: dict[str, Any], sequence: int, at: int) -> None:
    """``moot.tool.asked``: the member waits, and its silence does not count."""
    wake_id = str(said.get("wakeId", ""))
    wake = floor.wakes.get(wake_id)
    if wake is not None and len(floor.asks) < MOST_HELD:
        name = str(said.get("askId", ""))
        floor.asks[name] = ToolAsk(
            agent=wake.agent, tool=str(said.get("toolName", "")), wake=wake_id, since=at,
            seq=sequence, given=in_brief(said.get("inputs", {})),
        )  # fmt: skip
        wake.due = NEVER


def reopened(floor: Floor, said: dict[str, Any]) -> None:
    """``moot.tool.reopened``: what was allowed elsewhere is asked here."""
    for name in said.get("askIds", []):
        asked = floor.asks.get(str(name))
        if asked is not None:
            asked.allowed = None
            if asked.wake in floor.wakes:
                floor.wakes[asked.wake].due = NEVER


def answered(floor: Floor, said: dict[str, Any], at: int) -> None:
    """``moot.tool.answered``"""
    asked = floor.asks.get(str(said.get("askId", "")))
    if asked is not None:
        asked.allowed = said.get("allowed") is True
        if asked.wake in floor.wakes:
            floor.wakes[asked.wake].due = at + floor.policy.limits.silence * 1000
