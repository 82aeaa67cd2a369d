"""Named points in the write path where a test may let the host fail. Nothing happens otherwise."""

from collections.abc import Callable
from enum import StrEnum


class FaultPoint(StrEnum):
    BEFORE_APPEND = "before-append"
    AFTER_APPEND = "after-append"  # durable, nobody told yet


class Faults:
    def __init__(self) -> None:
        self._planned: dict[FaultPoint, Callable[[], None]] = {}

    def plan(self, point: FaultPoint, act: Callable[[], None]) -> None:
        self._planned[point] = act

    def at(self, point: FaultPoint) -> None:
        if self._planned and point in self._planned:
            self._planned[point]()
