"""Limit how many council members work at once, and track their silence."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from moot.clock import Clock
from moot.core.state.participants import find_participant
from moot.core.state.run import Run


class WorkPermit:
    """The permit of one member to work. A member that waits for a person returns it meanwhile."""

    def __init__(self, permits: asyncio.Semaphore, now: Callable[[], int]) -> None:
        self._permits, self._now, self._held = permits, now, False
        #: time of the last sign of life; None while it waits for the permit
        self._last_sign: int | None = None
        #: the member lost the floor: only the cost of its call is recorded
        self.lost_floor = False

    async def __aenter__(self) -> "WorkPermit":
        await self._enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    async def _enter(self) -> None:
        self._last_sign = None
        await self._permits.acquire()
        self._held = True
        self.stir()

    def _leave(self) -> None:
        if self._held:
            self._held = False
            self._permits.release()

    def stir(self) -> None:
        """Note a sign of life, such as a word or a thought."""
        self._last_sign = self._now()

    def silent_ms(self, at: int) -> int:
        """Return the silence in ms. Waiting for the permit does not count."""
        return 0 if self._last_sign is None else max(0, at - self._last_sign)

    @asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Return the permit for the duration of the block."""
        self._leave()
        yield
        await self._enter()


class WorkPermits:
    """The limited number of permits of the whole host."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._free, self._clock = asyncio.Semaphore(limit), clock
        #: run -> wake id -> its permit, also while it waits for one
        self._of: dict[str, dict[str, WorkPermit]] = {}
        self._began = clock.millis()
        #: the host is stopping; members continue at the next start
        self.stopping = False

    @asynccontextmanager
    async def slot(self, run_id: str, wake_id: str) -> AsyncIterator[WorkPermit]:
        permit = WorkPermit(self._free, self._clock.millis)
        mine = self._of.setdefault(run_id, {})
        mine[wake_id] = permit
        try:
            async with permit:
                yield permit
        finally:
            if mine.get(wake_id) is permit:
                del mine[wake_id]
            if not mine and self._of.get(run_id) is mine:
                del self._of[run_id]

    def take(self, run_id: str, wake_id: str) -> None:
        """Mark the permit's member as having lost the floor."""
        permit = self._of.get(run_id, {}).get(wake_id)
        if permit is not None and not self.stopping:
            permit.lost_floor = True

    def heard(self, run: Run, at: int) -> dict[str, int]:
        """Return wake id -> silence in ms. A member invited by an earlier host gets its full time
        once more."""
        silences = {name: slot.silent_ms(at) for name, slot in self._of.get(run.run_id, {}).items()}
        for conversation in run.conversations.values():
            if conversation.floor is None:
                continue
            first = self._began + conversation.floor.policy.limits.silence * 1000
            for wake_id, wake in conversation.floor.wakes.items():
                member = find_participant(conversation, wake.agent)
                started_before = wake.since < self._began and wake.due < first
                if started_before and member.led and member.driven:
                    silences.setdefault(wake_id, 0)
        return silences
