"""Test workflows, agents and councils offline on a real host with a virtual clock.

``Bench`` sets up the host; ``BenchRun`` and ``BenchThread`` are its runs and threads.
"""

from moot.testing.bench import Bench, BenchError, Tape
from moot.testing.bench_host import Stuck
from moot.testing.clock import VirtualClock
from moot.testing.log_reading import Handoff, Said
from moot.testing.outcome import BenchRun, BenchThread, Replayed, asked, handed_over, happened, said

__all__ = [
    "Bench", "BenchError", "BenchRun", "BenchThread", "Handoff", "Replayed", "Said", "Stuck",
    "Tape", "VirtualClock", "asked", "handed_over", "happened", "said",
]  # fmt: skip
