"""Hosts whose schedules turn under a clock that only the test moves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from hosting import PATIENCE, chain, delay, node

from moot.agents.definitions.manifest import Agent
from moot.agents.models.registry import ModelRegistry, ModelSettings
from moot.agents.roster.members import (
    MemberEntry,
    MemberOwner,
    MemberRecord,
    PausePeriod,
    new_member_guard,
)
from moot.api.server import build_services
from moot.api.services import Services
from moot.config.project import ProjectConfig
from moot.config.settings import Settings
from moot.store.memory.store import MemoryStore
from moot.store.protocol import RunFilter, RunIndexRow
from moot.store.records import Delivery, DeliveryFilter, Guard
from moot.testing.clock import VirtualClock
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.triggers.schedules.snapshot import ScheduleSnapshot
from moot.wire.roster import MemberAgentRef

TENANT = "acme"
SALLY = "host:sally"
MINUTE = 60.0
HOUR = 3600.0

#: workflows that end at once, after ten minutes, and never by themselves
QUICK = chain(node("a"), id="quick")
SLOW = chain(delay(600_000), id="slow")
ENDLESS = chain(node("gate", "core.approvalGate"), id="endless")
FLOWS = (QUICK, SLOW, ENDLESS)


def at(text: str) -> int:
    """Milliseconds of a time in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


class Timepiece:
    """One host; several may share a store and a clock."""

    def __init__(self, services: Services, clock: VirtualClock) -> None:
        self.services, self.clock, self.store = services, clock, services.store
        self.schedules = services.triggers.schedules
        self.scheduler = services.triggers.scheduler
        self.queues = services.triggers.queues

    async def made(self, **body: Any) -> str:
        said = {"workflowId": "quick", "kind": "interval", "intervalSeconds": 60, **body}
        said = {name: value for name, value in said.items() if value is not None}
        case = await self.schedules.make(TENANT, msgspec.json.encode(said), "key_1")
        return case.plan.spec.schedule_id

    async def changed(self, name: str, **patch: Any) -> ScheduleSnapshot:
        return await self.schedules.change(TENANT, name, msgspec.json.encode(patch), "key_1")

    async def case(self, name: str) -> ScheduleSnapshot:
        return await self.schedules.find(TENANT, name)

    async def forward(self, seconds: float) -> None:
        """All at once, as for a machine that was asleep; then what is due is decided."""
        self.clock.forward(seconds)
        await self.decided()

    async def decided(self) -> None:
        while await self.scheduler._round(self.clock.millis()):
            pass

    async def runs(self, **where: Any) -> list[RunIndexRow]:
        """Oldest first."""
        found, _ = await self.store.list_runs(TENANT, RunFilter(**where), None, 1000)
        return found[::-1]

    async def rows(self, name: str) -> list[Delivery]:
        """Oldest first."""
        where = DeliveryFilter(subscription=(await self.case(name)).plan.subscription)
        found, _ = await self.store.deliveries(TENANT, where, None, 1000)
        return found[::-1]

    async def fires(self, name: str) -> list[tuple[str, str, int]]:
        """(state, reason, how many slots) of every row, oldest first."""
        return [(row.state, row.reason, fire_from_row(row).count) for row in await self.rows(name)]

    async def until_runs(self, count: int, *statuses: str) -> list[RunIndexRow]:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await self.runs(statuses=statuses)
                if len(found) >= count:
                    return found
                await asyncio.sleep(0.002)

    async def hired(self, **fields: Any) -> MemberRecord:
        """Sally as she is from now on."""
        pause: PausePeriod | None = fields.pop("pause", None)
        guard: Guard | None = fields.pop("guard", None)
        usual: dict[str, Any] = {"workflows": ("quick", "slow", "endless"), **fields}
        entry = MemberEntry(
            roster_id=SALLY, persona="Sally", agent_ref=MemberAgentRef(agent_id="host:ada"),
            owner=MemberOwner(tenant_id=TENANT), **usual,
        )  # fmt: skip
        hired = MemberRecord(entry=entry, did="hired", hired_at=self.clock.millis(), pause=pause)
        await self.services.agents.put(TENANT, Agent(name="ada", prompt="Be brief."), by="key_1")
        seat = await self.services.roster.find(TENANT, SALLY)
        if guard is None:
            guard = new_member_guard(TENANT, SALLY) if seat is None else seat.guard
        await self.services.roster.put(TENANT, hired, "key_1", guard)
        return hired


async def timepiece(store: Any, clock: VirtualClock, folder: Path) -> Timepiece:
    settings = Settings(database=str(folder / "moot.db"), agents=str(folder))
    book = ModelRegistry({}, lambda _: "", clock, ModelSettings(demo_wps=0), {})
    services = await build_services(settings, store, clock, ProjectConfig(), book)
    for flow in FLOWS:
        await services.host.flows.register(TENANT, msgspec.json.encode(flow))
    return Timepiece(services, clock)


@asynccontextmanager
async def turning(folder: Path, start: str = "2030-01-01T00:00") -> AsyncIterator[Timepiece]:
    clock = VirtualClock(micros=at(start) * 1000)
    found = await timepiece(MemoryStore(), clock, folder)
    yield found
    await found.services.aclose()
