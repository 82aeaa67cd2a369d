"""Limits of standing agents that are reached: said to people once, whoever says it."""

import pytest

from moot.agents.roster.members import (
    MemberEntry,
    MemberOwner,
    MemberRecord,
    RosterService,
    new_member_guard,
)
from moot.core.errors.models import MemberBudgetUsedUp
from moot.engine.effects.budgets import AgentBudgets
from moot.store.memory.store import MemoryStore
from moot.store.records import DeliveryFilter
from moot.testing.clock import VirtualClock
from moot.wire.roster import MemberAgentRef, MemberBudget

TENANT, SALLY = "acme", "host:sally"
DAY = 86_400.0


class Spent(MemoryStore):
    tokens = 0

    async def member_spending(
        self, tenant: str, member: str, first: int, last: int
    ) -> tuple[int, int]:
        return self.tokens, 0


async def test_a_limit_is_a_notice_once_a_day_over_restarts_and_for_each_height() -> None:
    store, clock, rung = Spent(), VirtualClock(), list[str]()
    roster = RosterService(store, clock)
    entry = MemberEntry(
        roster_id=SALLY, persona="Sally", agent_ref=MemberAgentRef(agent_id="host:ada"),
        owner=MemberOwner(tenant_id=TENANT),
    )  # fmt: skip

    async def limited(tokens: int) -> None:
        budget = MemberBudget(tokens_per_day=tokens)
        hired = MemberRecord(entry=entry, did="hired", hired_at=1, budget=budget)
        seat = await roster.find(TENANT, SALLY)
        await roster.put(
            TENANT, hired, "me", seat.guard if seat else new_member_guard(TENANT, SALLY)
        )

    async def said() -> list[str]:
        rows, _ = await store.deliveries(TENANT, DeliveryFilter(states=("notice",)), None, 10)
        return [row.subject for row in rows]

    def started() -> AgentBudgets:
        found = AgentBudgets(store, clock, roster)
        found.ring = rung.append
        return found

    await limited(100)
    store.tokens = 79
    assert await started().check(TENANT, SALLY) is None and await said() == []
    store.tokens = 80
    for _ in range(2):  # also after a restart
        assert "80%" in str(await started().check(TENANT, SALLY))
    assert await said() == ["warned"] and (await store.inbox(TENANT, 1))[1] == 1
    store.tokens = 100
    for host in (started(), started()):
        for _ in range(2):
            with pytest.raises(MemberBudgetUsedUp):
                await host.check(TENANT, SALLY)
    assert await said() == ["stopped", "warned"] and (await store.inbox(TENANT, 1))[1] == 2
    await limited(110)
    await started().check(TENANT, SALLY)
    clock.forward(DAY)
    await started().check(TENANT, SALLY)
    assert await said() == ["warned", "warned", "stopped", "warned"]
    assert set(rung) == {TENANT}
