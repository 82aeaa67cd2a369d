"""Any order of things that happen to a schedule on two hosts keeps its promises.

Few chances by default; with ``MOOT_LONG`` many.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moot.agents.roster.members import PausePeriod
from moot.core.commands import CancelRun
from moot.core.errors import MootError
from moot.core.events import millis
from moot.store.memory.store import MemoryStore
from moot.testing.clock import VirtualClock
from moot.triggers.schedules.fire_rows import fire_from_row
from tests.support.engine.schedules import TENANT, Timepiece, timepiece

SEEDS = range(200 if os.environ.get("MOOT_LONG") else 8)
OVERLAPS = ("skip", "buffer-one", "buffer-all", "cancel-other", "allow")
CATCH_UPS = ("one", "none", "all-within-window")
STEPS = 40


class Life:
    """A schedule of one slot a minute, and what may happen to it."""

    def __init__(self, seed: int, hosts: list[Timepiece]) -> None:
        self.chance, self.hosts = random.Random(f"life {seed}"), hosts
        self.name = ""
        #: (since, until) in which nothing may start, and since when it is so: by whom it is
        self.off: list[tuple[int, int]] = []
        self.since: dict[str, int] = {}

    @property
    def host(self) -> Timepiece:
        return self.chance.choice(self.hosts)

    async def begin(self) -> None:
        await self.host.hired()
        self.name = await self.host.made(
            rosterId="host:sally", workflowId=self.chance.choice(["quick", "endless"]),
            overlap=self.chance.choice(OVERLAPS), catchUp=self.chance.choice(CATCH_UPS),
            catchUpWindowSeconds=600, jitterSeconds=self.chance.choice([0, 30]),
        )  # fmt: skip

    async def step(self) -> None:
        doings: list[Callable[[], Awaitable[None]]] = [
            *[self.tick] * 4, self.sleep, self.switch, self.duty, self.end,
        ]  # fmt: skip
        await self.chance.choice(doings)()

    async def tick(self) -> None:
        self.host.clock.forward(self.chance.choice([1, 20, 60, 61, 180]))
        await self.race()

    async def sleep(self) -> None:
        self.host.clock.forward(self.chance.choice([600, 4000, 90_000]))
        await self.race()

    async def race(self) -> None:
        await asyncio.gather(*(host.decided() for host in self.hosts * 2))

    async def switch(self) -> None:
        """Off or on, while others decide what is due."""
        host = self.host
        on = (await host.case(self.name)).plan.spec.enabled
        host.clock.forward(self.chance.choice([0, 30, 60]))
        await asyncio.gather(host.changed(self.name, enabled=not on), self.race())
        self.note("schedule", off=on)

    def note(self, who: str, off: bool) -> None:
        now = self.host.clock.millis()
        if off:
            self.since.setdefault(who, now)
        elif who in self.since:
            self.off.append((self.since.pop(who), now))

    async def duty(self) -> None:
        """Away or back, perhaps before anybody has looked at what fell due meanwhile."""
        host = self.host
        host.clock.forward(self.chance.choice([0, 30, 60]))
        away = (
            PausePeriod(since=host.clock.millis(), by="me") if self.chance.random() < 0.5 else None
        )
        try:
            await asyncio.gather(host.hired(pause=away), self.race())
        except MootError:
            return  # somebody was quicker
        self.note("member", off=away is not None)

    async def end(self) -> None:
        host = self.host
        for run_id in (await host.case(self.name)).seen.going:
            command = CancelRun(host.clock.millis(), "enough")
            await host.services.host.handle(TENANT, run_id, command)
        await self.race()

    async def check(self) -> None:
        host = self.host
        case, rows = await host.case(self.name), await host.rows(self.name)
        fires = [fire_from_row(row) for row in rows]
        decided = case.book.decided.decided - millis(case.plan.spec.created_at)
        assert sum(fire.count for fire in fires) == decided // 60_000, "a slot lost or doubled"
        started = [row for row in rows if row.run_id is not None]
        runs = await host.runs()
        assert sorted(row.run_id or "" for row in started) == sorted(run.run_id for run in runs)
        self.off += [(since, host.clock.millis() + 1) for since in self.since.values()]
        for run in runs:
            assert not self.was_off(run.created_at), "started while off"
        for fire in map(fire_from_row, started):
            assert not self.was_off(fire.due), "started what fell due while off"

    def was_off(self, at: int) -> bool:
        return any(since < at < until for since, until in self.off)


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_happens_each_slot_comes_to_one_thing_and_never_while_off(
    tmp_path: Path, seed: int
) -> None:
    store, clock = MemoryStore(), VirtualClock(str(seed))
    hosts = [await timepiece(store, clock, tmp_path) for _ in range(2)]
    life = Life(seed, hosts)
    await life.begin()
    for _ in range(STEPS):
        await life.step()
    await life.check()
    for host in hosts:
        await host.services.host.activities.aclose()
        await host.services.triggers.aclose()
    await hosts[0].services.aclose()
