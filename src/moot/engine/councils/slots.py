"""The places at which members of led conversations work, and when each was last heard of."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from moot.clock import Clock
from moot.core.state.run import Run


class Slot:
    """One of the places at which members work. Who waits for a person leaves it meanwhile."""

    def __init__(self, slots: asyncio.Semaphore, now: Callable[[], int]) -> None:
        self._slots, self._now, self._held = slots, now, False
        #: when it was last heard of; None while it waits for its place
        self._heard: int | None = None
        #: the floor was taken from it: what its call has cost is told, and nothing else
        self.over = False

    async def __aenter__(self) -> "Slot":
        await self._enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    async def _enter(self) -> None:
        self._heard = None
        await self._slots.acquire()
        self._held = True
        self.stir()

    def _leave(self) -> None:
        if self._held:
            self._held = False
            self._slots.release()

    def stir(self) -> None:
        """A word, a thought, any sign of life."""
        self._heard = self._now()

    def silent_ms(self, at: int) -> int:
        """Waiting for a place is no silence."""
        return 0 if self._heard is None else max(0, at - self._heard)

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        self._leave()
        yield
        await self._enter()


class Slots:
    """So many at a time in the whole host."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._free, self._clock = asyncio.Semaphore(limit), clock
        #: run -> wake -> who works on it, or waits for a place
        self._of: dict[str, dict[str, Slot]] = {}
        self._began = clock.millis()
        #: what is under way is gone on with at the next start
        self.stopping = False

    @asynccontextmanager
    async def slot(self, run_id: str, wake_id: str) -> AsyncIterator[Slot]:
        found = Slot(self._free, self._clock.millis)
        mine = self._of.setdefault(run_id, {})
        mine[wake_id] = found
        try:
            async with found:
                yield found
        finally:
            if mine.get(wake_id) is found:
                del mine[wake_id]
            if not mine and self._of.get(run_id) is mine:
                del self._of[run_id]

    def take(self, run_id: str, wake_id: str) -> None:
        """The floor was taken from whoever works there."""
        found = self._of.get(run_id, {}).get(wake_id)
        if found is not None and not self.stopping:
            found.over = True

    def heard(self, run: Run, at: int) -> dict[str, int]:
        """Wake -> for how long nothing was heard of it. Whom a host before this one has woken gets
        its time anew, once."""
        found = {name: slot.silent_ms(at) for name, slot in self._of.get(run.run_id, {}).items()}
        for talk in run.conversations.values():
            if talk.floor is None:
                continue
            first = self._began + talk.floor.policy.limits.silence * 1000
            for wake_id, wake in talk.floor.wakes.items():
                member = talk.floor.members.get(wake.agent)
                anew = wake.since < self._began and wake.due < first
                if anew and member is not None and member.driven:
                    found.setdefault(wake_id, 0)
        return found
