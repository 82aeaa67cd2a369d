"""Who is let go takes nothing along and leaves nothing that wakes a stranger."""

import asyncio
from pathlib import Path

import pytest
from hosting import PATIENCE
from msgspec.structs import replace
from timepieces import SALLY, TENANT, Timepiece, turning

from moot.agents.roster.members import PausePeriod
from moot.core.errors.triggers import MemberGone, Overtaken
from moot.store.protocol import Batch
from moot.triggers.inbound.queues import Consumer

CONSUMER = Consumer(workflow_id="quick", roster_id=SALLY)


async def let_go(host: Timepiece) -> None:
    seat = await host.services.roster.must_find(TENANT, SALLY)
    gone = replace(seat.hired, did="dismissed")
    await host.services.roster.put(TENANT, gone, "key_1", seat.guard, gone=True)


async def rehired(host: Timepiece) -> None:
    """Somebody else of the same name."""
    roster = host.services.roster
    [last, *_] = await roster.history(TENANT, SALLY)
    assert last.gone
    await host.hired(guard=await roster.guard(TENANT, SALLY))


async def states(host: Timepiece, name: str) -> tuple[bool, str]:
    """Whether the schedule is paused, and the state of the queue."""
    case, seen = await host.case(name), await host.queues.must_find(TENANT, "leads")
    return case.plan.pause is not None, seen.it.state


async def test_what_wakes_a_member_rests_from_the_commit_that_lets_it_go(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY)
        await host.queues.bind(TENANT, "leads", CONSUMER, "key_1")
        batches: list[Batch] = []
        commit = host.store.commit

        async def noted(batch: Batch) -> None:
            batches.append(batch)
            await commit(batch)

        host.store.commit = noted  # type: ignore[method-assign]
        host.services.roster.told.clear()  # as if the host went down right after
        await let_go(host)
        [batch] = batches
        assert {record.kind for record in batch.records} == {"member", "schedule", "subscription"}
        assert await states(host, name) == (True, "paused")
        handed, _ = await host.queues.push(TENANT, "leads", {"body": "x"}, None, "key_1")
        assert handed.delivery.state == "waiting" and handed.delivery.attempts == []


async def test_somebody_new_of_the_same_name_takes_over_only_what_is_resumed(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY)
        await host.schedules.pause(TENANT, name, "key_1", "", host.clock.millis() + 30_000)
        await host.queues.bind(TENANT, "leads", CONSUMER, "key_1")
        await let_go(host)
        await rehired(host)
        handed, _ = await host.queues.push(TENANT, "leads", {"body": "x"}, None, "key_1")
        await host.forward(120)
        assert await host.runs() == [] and handed.delivery.state == "waiting"
        left = await host.services.triggers.leaving.left(TENANT, SALLY)
        assert {(each.source, each.state) for each in left} == {
            ("schedule", "paused"), ("queue", "paused"),
        }  # fmt: skip
        await host.schedules.resume(TENANT, name, "key_1")
        await host.forward(60)
        assert [run.workflow_id for run in await host.runs()] == ["quick"]


async def test_nothing_of_who_has_gone_is_resumed_for_nobody(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY)
        await host.queues.bind(TENANT, "leads", CONSUMER, "key_1")
        await let_go(host)
        with pytest.raises(MemberGone):
            await host.schedules.resume(TENANT, name, "key_1")
        subscriptions = host.services.triggers.subscriptions
        with pytest.raises(MemberGone):
            await subscriptions.resume(await host.queues.must_find(TENANT, "leads"), "key_1")
        assert await states(host, name) == (True, "paused")
        await host.changed(name, rosterId=None)
        await host.schedules.resume(TENANT, name, "key_1")
        await host.forward(60)
        assert len(await host.runs()) == 1


async def test_a_dismissal_takes_along_what_changes_while_it_is_made(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        made: list[str] = []
        commit = host.store.commit

        async def meddled(batch: Batch) -> None:
            if any(record.gone for record in batch.records) and len(made) < 2:
                made.append("")
                made[-1] = await host.made(rosterId=SALLY)
            await commit(batch)

        host.store.commit = meddled  # type: ignore[method-assign]
        await host.queues.bind(TENANT, "leads", CONSUMER, "key_1")
        seen = await host.queues.must_find(TENANT, "leads")
        await let_go(host)
        for name in made:
            assert (await host.case(name)).plan.pause is not None
        with pytest.raises(Overtaken):
            await host.services.triggers.subscriptions.change(seen, "key_1", "handed")


async def kept_back(host: Timepiece) -> bool:
    """What waits is not even tried."""
    [lane] = await host.store.lanes()
    gate = host.services.triggers.courier.carriers[lane.source].gate
    return (await gate(lane, host.clock.millis())).width == 0


async def test_an_item_for_nobody_who_is_here_waits_as_for_one_off_duty(tmp_path: Path) -> None:
    """However it came about: a host that was switched to keep no roster, a record of before."""
    async with turning(tmp_path) as host:
        await host.hired()
        await host.queues.bind(TENANT, "leads", CONSUMER, "key_1")
        host.services.roster.leaving.clear()
        await let_go(host)
        handed, _ = await host.queues.push(TENANT, "leads", {"body": "x"}, None, "key_1")
        row = handed.delivery
        assert (row.state, row.attempts) == ("waiting", [])
        assert (await host.queues.must_find(TENANT, "leads")).it.state == "active"
        await host.services.triggers.deliveries.carry(row)
        found = await host.store.delivery_by_id(TENANT, row.delivery_id)
        assert found is not None and found.state == "waiting"
        assert await kept_back(host)


async def test_an_item_waits_while_its_workflow_is_not_its_members(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        host.services.triggers.start()
        await host.hired()
        await host.queues.bind(TENANT, "leads", CONSUMER, "key_1")
        past = PausePeriod(since=0, by="key_1", until=1)
        await host.hired(workflows=("slow",), pause=past)
        handed, _ = await host.queues.push(TENANT, "leads", {"body": "x"}, None, "key_1")
        row = handed.delivery
        assert (row.state, row.attempts) == ("waiting", [])
        assert await kept_back(host)
        await host.hired()
        async with asyncio.timeout(PATIENCE):
            while not await host.runs():
                await asyncio.sleep(0.005)
