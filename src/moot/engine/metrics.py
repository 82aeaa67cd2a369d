"""Counters of what was committed; rendered for Prometheus only when somebody asks."""

from collections import Counter

from moot.engine.hub import Published


class Metrics:
    """Plain counts in memory: no label is a run id, so they stay few."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.requests: Counter[tuple[str, int]] = Counter()

    def count(self, published: list[Published]) -> None:
        for event in published:
            self.events[event.type] += 1
