"""Sleep until something falls due, handle it, and repeat."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moot.clock import Clock
from moot.core.errors import MootError
from moot.engine.tasks import Tasks

log = logging.getLogger("moot.triggers")

#: a clock set forward, or a change by another host, is noticed after this long
LONGEST_SLEEP = 60.0
#: pause after a failure
REST = 1.0

#: when (ms) the first thing falls due
FindNextDue = Callable[[], Awaitable[int | None]]
#: handles what is due by now (ms) and returns whether there may be more
HandleDue = Callable[[int], Awaitable[bool]]


class PollingLoop:
    """One task that runs rounds one after the other. Due work is on disk, so a failed or
    interrupted round is repeated."""

    def __init__(self, name: str, clock: Clock, next_due: FindNextDue, tend: HandleDue) -> None:
        self._name, self._clock, self._next_due, self._handle = name, clock, next_due, tend
        self._woken = asyncio.Event()
        self._tasks = Tasks()

    def start(self) -> None:
        if not len(self._tasks):
            self._tasks.start(self._go_round())

    def look(self) -> None:
        """Start a round soon, because something may be due sooner than expected."""
        self._woken.set()

    async def aclose(self) -> None:
        await self._tasks.aclose()

    async def _go_round(self) -> None:
        while True:
            self._woken.clear()
            try:
                while await self._handle(self._clock.millis()):
                    pass
                wait = self._wait(await self._next_due())
            except MootError as refusal:
                log.warning("%s could not be seen to: %s", self._name, refusal)
                wait = REST
            except Exception:
                log.exception("%s could not be seen to", self._name)
                wait = REST
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                continue

    def _wait(self, due: int | None) -> float:
        if due is None:
            return LONGEST_SLEEP
        return min(max(0, due - self._clock.millis()) / 1000, LONGEST_SLEEP)
