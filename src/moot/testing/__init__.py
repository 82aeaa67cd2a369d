"""For tests of workflows, agents and councils: a real host on a bench, offline, with its own clock.

``Bench`` sets it up; ``BenchRun`` and ``BenchThread`` are what comes of it.
"""

from moot.testing.bench import Bench, BenchError, Tape
from moot.testing.clock import VirtualClock
from moot.testing.hosting import Stuck
from moot.testing.outcome import BenchRun, BenchThread, Replayed, asked, handed_over, happened, said
from moot.testing.story import Handoff, Said

__all__ = [
    "Bench", "BenchError", "BenchRun", "BenchThread", "Handoff", "Replayed", "Said", "Stuck",
    "Tape", "VirtualClock", "asked", "handed_over", "happened", "said",
]  # fmt: skip
