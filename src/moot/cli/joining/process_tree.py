"""Children of this process, and theirs: nothing that a program has started outlives it.

Where the system can (Linux), whoever loses its parent becomes a child of ours, whatever session it
has fled to, and a program ends when we do, however that happens. Elsewhere a program's group ends.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: names of the system for what it is asked
DIES_WITH_PARENT, TAKES_IN_ORPHANS = 1, 36
#: how often it is looked again: children that fork as fast as they are ended come to an end here
MOST_ROUNDS = 200
PAUSE = 0.01


class Family:
    """Takes in whoever a program leaves behind; those that were here before are left alone."""

    def __init__(self) -> None:
        self._ask = _system()
        self._adopts = self._ask is not None and self._ask(TAKES_IN_ORPHANS, 1, 0, 0, 0) == 0
        self._others = set(_children())

    @property
    def tie(self) -> Callable[[], None] | None:
        """What a child of ours does before it becomes a program: it will not outlive us."""
        ask, parent = self._ask, os.getpid()
        if ask is None:
            return None

        def tied() -> None:
            ask(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # we ended in between
                os._exit(1)

        return tied

    def end_orphans(self) -> None:
        """Ends what is left of a program that has ended, children of children as well."""
        for _ in range(MOST_ROUNDS if self._adopts else 0):
            found = [pid for pid in _children() if pid not in self._others]
            if not found:
                return
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(PAUSE)


def _system() -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # not for those who only ask for help

    try:
        found: Callable[..., int] = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return found


def _children() -> list[int]:
    """Processes whose parent is this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # its name is in brackets and may hold anything; state and parent come after it
            parent = int(stat.read_bytes().rpartition(b")")[2].split()[1])
            if parent == os.getpid():
                found.append(int(stat.parent.name))
    return found
