"""A slot whose run cannot be begun is tried again, and given up in the open."""

from pathlib import Path
from typing import Any

import pytest

from moot.api.schedules.views import schedule_view
from moot.core.commands import CancelRun
from moot.core.errors import NotFound
from moot.core.errors.triggers import Overtaken
from moot.core.triggers.subscriptions import FAILING_LIMIT
from moot.store.records import Delivery
from tests.support.engine.hosts import log
from tests.support.engine.schedules import MINUTE, TENANT, Timepiece, turning
from tests.support.event_payloads import payload_json

STARTED = ("delivered", "", 1)
WHY = "not_found: There is no such workflow."


def refusing(host: Timepiece, times: int) -> None:
    """No run can be begun, so often."""
    firing, left = host.services.triggers.run_starter, times
    start = firing.start

    async def refuses(order: Any, claim: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            return await start(order, claim)
        raise NotFound("There is no such workflow.")

    firing.start = refuses  # type: ignore[method-assign]


async def tried(host: Timepiece) -> list[Delivery]:
    """What is due to be tried again is carried, as the courier does."""
    host.clock.forward(3)
    now = host.clock.millis()
    found = [
        row
        for lane in await host.store.lanes()
        for row in await host.store.due_deliveries(lane.tenant, lane.subscription, now, 100)
    ]
    for row in found:
        await host.scheduler.again(row)
    return found


async def test_a_run_that_cannot_begin_is_tried_again_and_is_one_delivery(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        refusing(host, 1)
        await host.forward(MINUTE)
        assert await host.fires(name) == [("retrying", WHY, 1)]
        await tried(host)
        [row] = await host.rows(name)
        assert [each.outcome for each in row.attempts] == ["retrying", "delivered"]
        [started, attempted, *_] = await log(host.services.host, row.run_id or "")
        assert started.causation_id == attempted.event_id == row.delivery_id
        assert payload_json(attempted)["attempt"] == 2
        await host.forward(MINUTE)
        assert await host.fires(name) == [STARTED, STARTED]
        assert await tried(host) == []


async def test_a_schedule_whose_run_never_begins_stands_still_until_somebody_resumes_it(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        refusing(host, 3)
        await host.forward(MINUTE)
        await tried(host)
        await tried(host)
        assert await host.fires(name) == [("dead", WHY, 1)]
        case = await host.case(name)
        assert (
            schedule_view(case).state == "dead-lettered" and schedule_view(case).pause.by == "moot"
        )
        listening = host.services.triggers.listening
        seen = await listening.must_find(TENANT, case.plan.subscription)
        assert seen.it.state == "dead-lettered"
        [change] = await listening.changes(seen)
        assert change.payload.reason == "retry-exhausted"
        await host.forward(10 * MINUTE)
        assert await host.fires(name) == [("dead", WHY, 1)] and await host.runs() == []
        [row] = await host.rows(name)
        await host.schedules.run_missed(TENANT, name, row.delivery_id, dry=False)
        assert await host.fires(name) == [STARTED, ("skipped", "paused", 10)]
        assert schedule_view(await host.case(name)).state == "dead-lettered"
        await host.schedules.resume(TENANT, name, "key_1")
        await host.forward(MINUTE)
        states = [each[0] for each in await host.fires(name)]
        assert states == ["delivered", "skipped", "delivered"]
        assert schedule_view(await host.case(name)).state == "active"


async def test_many_that_fail_side_by_side_stop_their_schedule(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(overlap="allow", catchUp="all-within-window")
        refusing(host, 1000)
        await host.forward((FAILING_LIMIT + 5) * MINUTE)
        fires = await host.fires(name)
        assert [each[0] for each in fires].count("retrying") == FAILING_LIMIT
        assert schedule_view(await host.case(name)).state == "failed"
        await tried(host)
        assert {each[:2] for each in await host.fires(name)} == {("skipped", "paused")}


async def test_what_is_paused_meanwhile_is_not_tried_again(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        refusing(host, 1)
        await host.forward(MINUTE)
        await host.schedules.pause(TENANT, name, "key_1", "", None)
        await host.schedules.resume(TENANT, name, "key_1")
        await tried(host)
        assert await host.fires(name) == [("skipped", "paused", 1)]


@pytest.mark.parametrize(("overlap", "becomes"), [("skip", "skipped"), ("buffer-one", "waiting")])
async def test_what_is_tried_again_keeps_to_the_overlap_policy(
    tmp_path: Path, overlap: str, becomes: str
) -> None:
    async with turning(tmp_path) as host:
        name = await host.made(workflowId="endless", overlap=overlap)
        refusing(host, 1)
        await host.forward(MINUTE)
        [by_hand] = await host.schedules.run(TENANT, name, None, dry=False)
        await tried(host)
        [row, _] = await host.rows(name)
        assert row.state == becomes
        enough = CancelRun(host.clock.millis(), "enough")
        await host.services.host.handle(TENANT, by_hand.run_id or "", enough)
        await host.scheduler.look(TENANT, name)
        assert len(await host.runs()) == (1 if becomes == "skipped" else 2)


async def test_what_fails_by_hand_is_told_and_stops_nothing(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        refusing(host, 1)
        [done] = await host.schedules.run(TENANT, name, None, dry=False)
        assert done.run_id is None
        assert await host.fires(name) == [("dead", WHY, 1)]
        await host.forward(MINUTE)
        assert [each[0] for each in await host.fires(name)] == ["dead", "delivered"]


async def test_a_fire_of_a_schedule_that_is_removed_is_not_tried_again(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        refusing(host, 1)
        await host.forward(MINUTE)
        [row] = await host.rows(name)
        await host.schedules.remove(TENANT, name, "key_1")
        assert await tried(host) == []
        with pytest.raises(Overtaken):
            await host.scheduler.again(row)
        assert await host.runs() == []
