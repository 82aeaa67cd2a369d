"""Schedules on a real host: every slot once, with its run, and nothing while switched off."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moot.agents.roster.members import PausePeriod
from moot.core.commands import CancelRun
from moot.core.errors import NotFound
from moot.core.errors.schedules import ScheduleBusy, ScheduleOff, ScheduleRefused
from moot.core.errors.triggers import MemberOffDuty
from moot.store.memory.store import MemoryStore
from moot.testing.clock import VirtualClock
from moot.triggers.schedules.fire_rows import fire_from_row
from tests.support.engine.hosts import log
from tests.support.engine.schedules import (
    HOUR,
    MINUTE,
    SALLY,
    TENANT,
    Timepiece,
    at,
    timepiece,
    turning,
)
from tests.support.event_payloads import payload_json

STARTED = ("delivered", "", 1)


async def test_each_slot_starts_one_run_that_says_what_began_it(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY)
        for _ in range(3):
            await host.forward(MINUTE)
            await host.until_runs(1, "completed")
            await host.decided()
        runs, rows = await host.runs(), await host.rows(name)
        assert [row.run_id for row in rows] == [run.run_id for run in runs]
        assert {run.member for run in runs} == {SALLY}
        events = await log(host.services.host, runs[0].run_id)
        assert [event.type for event in events[:3]] == [
            "run.started", "roster.run.initiated", "trigger.delivery.attempted",
        ]  # fmt: skip
        assert events[0].causation_id == events[2].event_id == rows[0].delivery_id
        assert payload_json(events[1])["triggerSource"] == "schedule"
        assert payload_json(events[1])["triggerSubscriptionId"] == rows[0].subscription
        assert payload_json(events[0])["trigger"]["schedule"]["scheduleId"] == name
        slots = [fire_from_row(row).slot for row in rows]
        assert [b - a for a, b in pairwise(slots)] == [60_000, 60_000]
        case = await host.case(name)
        assert case.book.last_run == runs[-1].run_id


async def test_two_hosts_on_one_store_start_each_slot_once(tmp_path: Path) -> None:
    store, clock = MemoryStore(), VirtualClock()
    one = await timepiece(store, clock, tmp_path)
    two = await timepiece(store, clock, tmp_path)
    names = [await one.made() for _ in range(20)]
    for _ in range(5):
        clock.forward(MINUTE)
        await asyncio.gather(one.decided(), two.decided(), one.decided(), two.decided())
        await one.until_runs(0)
    for name in names:
        slots = [fire_from_row(row).slot for row in await one.rows(name) if row.run_id]
        assert len(slots) == len(set(slots))
        decided = sum(fire_from_row(row).count for row in await one.rows(name))
        assert decided == 5
    runs = await one.runs()
    assert len(runs) == len({run.run_id for run in runs})
    claimed = [row.run_id for name in names for row in await one.rows(name) if row.run_id]
    assert sorted(claimed) == sorted(run.run_id for run in runs)
    for host in (two, one):
        await host.services.host.activities.aclose()
        await host.services.triggers.aclose()
    await one.services.aclose()


async def test_a_run_and_its_claim_are_one_transaction(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        batches = []
        commit = host.store.commit

        async def kept(batch: Any) -> None:
            await commit(batch)
            batches.append(batch)

        host.store.commit = kept  # type: ignore[method-assign]
        await host.forward(MINUTE)
        [batch] = [each for each in batches if any(a.first == 0 for a in each.appends)]
        assert [ledger.name for ledger in batch.ledgers] == [name]
        assert [row.run_id for row in batch.deliveries] == [batch.appends[0].run_id]
        assert {guard.kind for guard in batch.guards} == {"schedule"}


@pytest.mark.parametrize("who", ["schedule", "member", "subscription"])
async def test_what_is_switched_off_between_decision_and_commit_starts_nothing(
    tmp_path: Path, who: str
) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY)
        start = host.services.host.create

        async def meanwhile(*args: Any, **given: Any) -> Any:
            host.services.host.create = start  # type: ignore[method-assign]
            if who == "schedule":
                await host.changed(name, enabled=False)
            elif who == "member":
                await host.hired(enabled=False)
            else:
                await held(host, name)
            return await start(*args, **given)

        host.services.host.create = meanwhile  # type: ignore[method-assign]
        await host.forward(MINUTE)
        assert await host.runs() == []
        reason = "paused" if who == "subscription" else "disabled"
        assert await host.fires(name) == [("skipped", reason, 1)]


async def held(host: Timepiece, name: str) -> None:
    """Somebody pauses the subscription of a schedule."""
    listening = host.services.triggers.listening
    seen = await listening.must_find(TENANT, (await host.case(name)).plan.subscription)
    assert (await listening.pause(seen, "key_1")).it.state == "paused"


async def test_a_member_off_duty_starts_nothing_and_goes_on_with_the_next_slot(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY)
        await host.hired(pause=PausePeriod(since=host.clock.millis(), by="me"))
        for _ in range(3):
            await host.forward(MINUTE)
        assert await host.runs() == []
        assert await host.fires(name) == [("skipped", "paused", 3)]
        with pytest.raises(MemberOffDuty):
            await host.schedules.run(TENANT, name, None, dry=False)
        await host.hired(workflows=("slow",))
        await host.forward(MINUTE)
        await host.hired()
        await host.forward(MINUTE)
        assert len(await host.runs()) == 1
        assert [row[1] for row in await host.fires(name)] == ["paused", "disabled", ""]


async def test_nothing_wakes_for_who_is_let_go(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        hired = await host.hired()
        name = await host.made(rosterId=SALLY)
        seat = await host.services.roster.must_find(TENANT, SALLY)
        await host.services.roster.put(TENANT, hired, "key_1", seat.guard, gone=True)
        await host.decided()
        assert await host.store.next_ledger("schedule") is None
        await host.forward(HOUR)
        assert await host.runs() == [] and await host.fires(name) == []


async def test_a_pause_starts_nothing_and_is_never_caught_up(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        until = host.clock.millis() + 10 * 60_000 + 30_000
        await host.schedules.pause(TENANT, name, "key_1", "quarter close", until)
        await host.forward(9.5 * MINUTE)
        assert await host.runs() == []
        assert (await host.case(name)).ledger.due_at == until
        await host.forward(MINUTE)
        await host.forward(MINUTE)
        assert len(await host.runs()) == 1
        await host.changed(name, enabled=False)
        await host.forward(HOUR)
        assert (await host.case(name)).ledger.due_at is None
        await host.changed(name, enabled=True)
        await host.forward(0)
        assert len(await host.runs()) == 1
        history = await host.schedules.history(TENANT, name)
        assert [record.version for record in history] == ["changed", "changed", "paused", "made"]


# -- overlap -------------------------------------------------------------------------------------


async def end(host: Timepiece, run_id: str) -> None:
    command = CancelRun(host.clock.millis(), "enough")
    await host.services.host.handle(TENANT, run_id, command)


async def test_with_skip_a_run_that_outlasts_its_interval_stays_alone(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(workflowId="endless")
        for _ in range(5):
            await host.forward(MINUTE)
        [run] = await host.runs()
        assert await host.fires(name) == [STARTED, ("skipped", "overlap", 4)]
        with pytest.raises(ScheduleBusy):
            await host.schedules.run(TENANT, name, None, dry=False)
        await end(host, run.run_id)
        await host.forward(MINUTE)
        assert len(await host.runs()) == 2


async def test_what_waits_begins_when_the_run_before_it_ends(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        host.services.triggers.start()
        name = await host.made(workflowId="endless", overlap="buffer-one")
        for _ in range(4):
            await host.forward(MINUTE)
        [run] = await host.runs()
        assert await host.fires(name) == [STARTED, ("waiting", "", 1), ("skipped", "overlap", 2)]
        await end(host, run.run_id)
        [later] = await host.until_runs(1, "waiting-approval")
        assert later.run_id != run.run_id
        rows = await host.rows(name)
        assert [row.run_id for row in rows] == [run.run_id, later.run_id, None]


async def test_what_waits_survives_a_restart_and_a_missed_end(tmp_path: Path) -> None:
    store, clock = MemoryStore(), VirtualClock()
    host = await timepiece(store, clock, tmp_path)
    name = await host.made(workflowId="endless", overlap="buffer-all", intervalSeconds=3600)
    for _ in range(3):
        await host.forward(HOUR)
    host.services.host.endings.clear()
    [run] = await host.runs()
    await end(host, run.run_id)
    fresh = await timepiece(store, clock, tmp_path)
    await fresh.forward(MINUTE + 1)
    assert len(await fresh.runs()) == 2
    assert [row[0] for row in await fresh.fires(name)][:3] == ["delivered", "delivered", "waiting"]
    await fresh.services.aclose()


async def test_cancel_other_ends_what_is_going_first(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await host.made(workflowId="endless", overlap="cancel-other")
        for _ in range(3):
            await host.forward(MINUTE)
        statuses = [run.status for run in await host.runs()]
        assert statuses == ["cancelled", "cancelled", "waiting-approval"]


async def test_allowed_runs_go_side_by_side_also_those_that_are_caught_up(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(
            workflowId="endless", overlap="allow", catchUp="all-within-window",
            catchUpWindowSeconds=3600,
        )  # fmt: skip
        await host.forward(10 * MINUTE)
        assert len(await host.runs()) == 10
        slots = [fire_from_row(row).slot for row in await host.rows(name)]
        assert slots == sorted(set(slots))


# -- times nobody was there ----------------------------------------------------------------------


async def test_after_an_outage_one_run_is_started_and_the_rest_is_on_record(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(intervalSeconds=600)
        await host.forward(5 * HOUR + 5 * MINUTE)
        assert len(await host.runs()) == 1
        assert await host.fires(name) == [("skipped", "missed", 29), STARTED]
        assert [row.run_id is None for row in await host.rows(name)] == [True, False]


async def test_a_missed_slot_nobody_stood_in_for_asks_a_person(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        daily = {"kind": "words", "words": "daily 08:30", "intervalSeconds": None}
        name = await host.made(**daily, catchUp="none", timezone="Europe/Berlin")
        await host.forward(20 * HOUR)
        assert await host.fires(name) == [("missed", "missed", 1)]
        [row] = await host.rows(name)
        done = await host.schedules.run_missed(TENANT, name, row.delivery_id, dry=True)
        assert done[0].run_id is None and await host.runs() == []
        await host.schedules.run_missed(TENANT, name, row.delivery_id, dry=False)
        assert len(await host.runs()) == 1
        assert sorted(await host.fires(name)) == [STARTED, ("skipped", "missed", 1)]
        with pytest.raises(ScheduleRefused):
            await host.schedules.run_missed(TENANT, name, row.delivery_id, dry=False)


async def test_wall_times_keep_to_the_wall_when_clocks_change(tmp_path: Path) -> None:
    async with turning(tmp_path, "2030-03-29T00:00") as host:
        words = {"kind": "words", "words": "daily 08:30 Europe/Berlin", "intervalSeconds": None}
        name = await host.made(**words)
        for _ in range(4 * 24):
            await host.forward(HOUR)
        slots = [fire_from_row(row).slot for row in await host.rows(name)]
        assert slots == [
            at("2030-03-29T07:30"), at("2030-03-30T07:30"),
            at("2030-03-31T06:30"), at("2030-04-01T06:30"),
        ]  # fmt: skip


# -- by hand -------------------------------------------------------------------------------------


async def test_by_hand_a_slot_is_left_out_run_now_and_filled_in_later(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(intervalSeconds=3600)
        first = host.clock.millis()
        slot = await host.schedules.skip(TENANT, name, "key_1", dry=True)
        assert slot == await host.schedules.skip(TENANT, name, "key_1", dry=False)
        await host.forward(HOUR)
        assert await host.fires(name) == [("skipped", "asked", 1)]
        [now] = await host.schedules.run(TENANT, name, None, dry=False)
        await host.until_runs(1, "completed")
        between = (first, host.clock.millis())
        dry = await host.schedules.backfill(TENANT, name, between, None, dry=True)
        assert [done.fire.slot for done in dry] == [slot]
        [filled] = await host.schedules.backfill(TENANT, name, between, None, dry=False)
        assert await host.schedules.backfill(TENANT, name, between, None, dry=False) == []
        assert [run.run_id for run in await host.runs()] == [now.run_id, filled.run_id]


async def test_a_schedule_that_is_off_is_not_run_by_hand_and_a_removed_one_is_unknown(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(enabled=False)
        with pytest.raises(ScheduleOff):
            await host.schedules.run(TENANT, name, None, dry=False)
        await host.schedules.remove(TENANT, name, "key_1")
        await host.forward(HOUR)
        with pytest.raises(NotFound):
            await host.case(name)
        assert await host.runs() == [] and await host.store.next_ledger("schedule") is None


# -- conditions and failures ---------------------------------------------------------------------


async def test_without_work_nobody_is_woken(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(condition={"queue": "leads"})
        other = await host.made(condition={"expression": "hour >= 1 && going == 0"})
        for _ in range(3):
            await host.forward(MINUTE)
        assert await host.runs() == []
        assert await host.fires(name) == await host.fires(other) == [("skipped", "no-work", 3)]
        await host.forward(HOUR)
        assert len(await host.runs()) == 1
        with pytest.raises(ScheduleRefused):
            await host.made(condition={"expression": "hour >="})


async def test_what_lies_in_a_queue_is_work(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(condition={"queue": "leads"})
        await host.forward(MINUTE)
        assert await host.fires(name) == [("skipped", "no-work", 1)]
        await host.services.triggers.queues.push(TENANT, "leads", {"n": 1}, None, "me")
        await host.forward(MINUTE)
        assert len(await host.runs()) == 1
