"""Looking after what falls due: asked of the store, slept for, and looked at again when told."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moot.clock import Clock
from moot.core.errors import MootError
from moot.engine.tasks import Tasks

log = logging.getLogger("moot.triggers")

#: a clock that is set forward, or another host's doing, is noticed after so long
LONGEST_SLEEP = 60.0
#: after a failure nothing is tried sooner
REST = 1.0

#: when (ms) the first thing falls due
Next = Callable[[], Awaitable[int | None]]
#: does what is due by now (ms); whether there may be more
Tend = Callable[[int], Awaitable[bool]]


class Rounds:
    """One task that never does two rounds at a time. What is due is on disk: a round that fails or
    is cut short is made again."""

    def __init__(self, name: str, clock: Clock, next_due: Next, tend: Tend) -> None:
        self._name, self._clock, self._next, self._tend = name, clock, next_due, tend
        self._told = asyncio.Event()
        self._tasks = Tasks()

    def start(self) -> None:
        if not len(self._tasks):
            self._tasks.start(self._go_round())

    def look(self) -> None:
        """Something may fall due sooner than was thought."""
        self._told.set()

    async def aclose(self) -> None:
        await self._tasks.aclose()

    async def _go_round(self) -> None:
        while True:
            self._told.clear()
            try:
                while await self._tend(self._clock.millis()):
                    pass
                wait = self._wait(await self._next())
            except MootError as refusal:
                log.warning("%s could not be seen to: %s", self._name, refusal)
                wait = REST
            except Exception:
                log.exception("%s could not be seen to", self._name)
                wait = REST
            try:
                async with asyncio.timeout(wait):
                    await self._told.wait()
            except TimeoutError:
                continue

    def _wait(self, due: int | None) -> float:
        if due is None:
            return LONGEST_SLEEP
        return min(max(0, due - self._clock.millis()) / 1000, LONGEST_SLEEP)
