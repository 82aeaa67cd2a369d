"""Counters of what was committed; rendered for Prometheus only when somebody asks."""

from collections import defaultdict

from moot.engine.streams.hub import Published


class Metrics:
    """Plain counts in memory: no label is a run id, so they stay few."""

    def __init__(self) -> None:
        self.events: defaultdict[str, int] = defaultdict(int)
        self.requests: defaultdict[tuple[str, int], int] = defaultdict(int)

    def count(self, published: list[Published]) -> None:
        events = self.events
        for event in published:
            events[event.type] += 1
