"""Background tasks with an owner, and timers that remind the host of due runs."""

import asyncio
import heapq
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from moot.clock import Clock
from moot.core.errors import MootError

log = logging.getLogger("moot.engine")

GRACE_SECONDS = 1.0
#: the loop sleeps at most this long, to notice a clock that is set forward
LONGEST_SLEEP = 3600.0
#: how many stale entries may pile up before they are swept out
MOST_STALE_ENTRIES = 1024


class Tasks:
    """A set of tasks that ends with its owner. None is lost and none fails in silence."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, MootError):  # its caller gets the error, and owed effects stay owed
            log.warning("A background task was refused: %s", error)
        else:
            log.error("A background task failed", exc_info=error, extra={"action": "task.failed"})

    def __len__(self) -> int:
        return len(self._tasks)

    async def aclose(self) -> None:
        """Cancel every task. One that does not end in time is logged and left behind."""
        left = list(self._tasks)
        for task in left:
            task.cancel()
        if left:
            _, stuck = await asyncio.wait(left, timeout=GRACE_SECONDS)
            for task in stuck:
                log.warning("A task does not end: %r", task, extra={"action": "task.stuck"})


class Timers:
    """One timer of the event loop, set to the earliest due time. The truth is in the log."""

    def __init__(self, clock: Clock, ring: Callable[[str, str], None]) -> None:
        self._clock, self._ring = clock, ring
        self._heap: list[tuple[int, str, str]] = []
        self._due: dict[tuple[str, str], int] = {}
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for: int | None = None

    def set(self, tenant: str, run_id: str, due: int | None) -> None:
        """Set the run's due time, or clear it with None. The new value replaces the old one."""
        if due is None:
            if self._due.pop((tenant, run_id), None) is not None:
                self._sweep()
            return
        if self._due.get((tenant, run_id)) != due:
            self._due[tenant, run_id] = due
            heapq.heappush(self._heap, (due, tenant, run_id))
            if self._armed_for is None or due < self._armed_for:
                self._arm()

    @property
    def next(self) -> int | None:
        return min(self._due.values(), default=None)

    def look(self) -> None:
        """Fire what is due now, after the clock was set forward."""
        self._fire()

    def close(self) -> None:
        self._heap.clear()
        self._due.clear()
        if self._handle is not None:
            self._handle.cancel()

    def __len__(self) -> int:
        return len(self._due)

    def _sweep(self) -> None:
        """Drop stale entries, because most runs end long before they fall due."""
        if len(self._heap) > MOST_STALE_ENTRIES and len(self._heap) > 2 * len(self._due):
            self._heap = [(due, *key) for key, due in self._due.items()]
            heapq.heapify(self._heap)

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._armed_for = self._heap[0][0] if self._heap else None
        if self._armed_for is not None:
            wait = min(max(0, self._armed_for - self._clock.millis()) / 1000, LONGEST_SLEEP)
            self._handle = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        now = self._clock.millis()
        while self._heap and self._heap[0][0] <= now:
            due, tenant, run_id = heapq.heappop(self._heap)
            if self._due.get((tenant, run_id)) == due:
                del self._due[tenant, run_id]
                self._ring(tenant, run_id)
        self._arm()
