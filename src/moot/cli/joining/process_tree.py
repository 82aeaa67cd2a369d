"""Child processes and theirs: nothing that a program has started outlives it.

On Linux an orphan becomes our child, whatever session it has moved to, and a program ends when we
do, however that happens. Elsewhere the program's process group ends.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: prctl options
DIES_WITH_PARENT, TAKES_IN_ORPHANS = 1, 36
#: the most rounds of killing: this also ends children that fork as fast as they are killed
MAX_ROUNDS = 200
PAUSE = 0.01


class ProcessFamily:
    """Adopts the orphans of a program. Processes that were children before are left alone."""

    def __init__(self) -> None:
        self._prctl = _load_prctl()
        self._adopts = self._prctl is not None and self._prctl(TAKES_IN_ORPHANS, 1, 0, 0, 0) == 0
        self._earlier_children = set(_child_pids())

    @property
    def tie(self) -> Callable[[], None] | None:
        """Return the function that a child runs first, so that it does not outlive us."""
        prctl, parent = self._prctl, os.getpid()
        if prctl is None:
            return None

        def tied() -> None:
            prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # we ended in between
                os._exit(1)

        return tied

    def end_orphans(self) -> None:
        """Kill all descendants of a program that has ended."""
        for _ in range(MAX_ROUNDS if self._adopts else 0):
            pids = [pid for pid in _child_pids() if pid not in self._earlier_children]
            if not pids:
                return
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(PAUSE)


def _load_prctl() -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # slow to import, so only where it is needed

    try:
        prctl: Callable[..., int] = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return prctl


def _child_pids() -> list[int]:
    """Return the processes whose parent is this one."""
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # the name in brackets may hold anything; state and parent come after it
            parent = int(stat.read_bytes().rpartition(b")")[2].split()[1])
            if parent == os.getpid():
                pids.append(int(stat.parent.name))
    return pids
