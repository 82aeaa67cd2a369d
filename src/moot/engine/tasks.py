"""Background tasks with an owner. None is lost and none fails in silence."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from moot.core.errors import MootError

log = logging.getLogger("moot.engine")

GRACE_SECONDS = 1.0


class Tasks:
    """A set of tasks that ends with its owner."""

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
