"""Counters and fault points of the write path."""

from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum

from moot.engine.streams.hub import Published


class HostMetrics:
    """Counts in memory. No label is a run id, so they stay few."""

    def __init__(self) -> None:
        self.events: defaultdict[str, int] = defaultdict(int)
        self.requests: defaultdict[tuple[str, int], int] = defaultdict(int)

    def count(self, published: list[Published]) -> None:
        events = self.events
        for event in published:
            events[event.type] += 1


class FaultPoint(StrEnum):
    """Points of the write path where a test may make the host fail."""

    BEFORE_APPEND = "before-append"
    AFTER_APPEND = "after-append"  # durable, but no caller is answered yet


class Faults:
    """Planned failures of a test. Without a plan nothing happens."""

    def __init__(self) -> None:
        self.planned: dict[FaultPoint, Callable[[], None]] = {}

    def plan(self, point: FaultPoint, act: Callable[[], None]) -> None:
        self.planned[point] = act

    def at(self, point: FaultPoint) -> None:
        if point in self.planned:
            self.planned[point]()
