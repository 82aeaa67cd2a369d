"""Schedules and members that are away: whoever is missed, every slot comes to one thing."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moot.agents.roster.members import PausePeriod
from moot.core.commands import CancelRun
from moot.core.errors.schedules import ScheduleOff
from moot.core.errors.triggers import MemberOffDuty
from tests.support.engine.hosts import chain, node
from tests.support.engine.schedules import SALLY, TENANT, Timepiece, turning

STARTED = ("delivered", "", 1)


async def named(host: Timepiece, *before: dict[str, Any]) -> None:
    """A workflow that names Sally at one of its nodes; it is none of her portfolio."""
    work = node("a", "moot.agent", config={"agent": "sally", "prompt": "x"})
    flow = chain(*before, work, id="named")
    await host.services.host.flows.register(TENANT, msgspec.json.encode(flow))


async def away(host: Timepiece, how: str) -> None:
    if how == "paused":
        await host.hired(pause=PausePeriod(since=host.clock.millis(), by="me"))
    else:
        await host.hired(enabled=False)


@pytest.mark.parametrize("how", ["paused", "disabled"])
async def test_a_schedule_whose_workflow_names_who_is_away_skips_its_slots(
    tmp_path: Path, how: str
) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        await named(host)
        name = await host.made(workflowId="named")
        await away(host, how)
        for _ in range(3):
            await host.forward(60)
        assert await host.fires(name) == [("skipped", how, 3)]
        await host.changed(name, overlap="allow")
        with pytest.raises((MemberOffDuty, ScheduleOff)):
            await host.schedules.run(TENANT, name, None, dry=False)
        await host.hired()
        await host.forward(60)
        assert await host.fires(name) == [("skipped", how, 3), STARTED]


async def test_what_is_going_is_not_cancelled_for_a_run_that_cannot_begin(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        await named(host, node("gate", "core.approvalGate"))
        name = await host.made(workflowId="named", overlap="cancel-other")
        await host.forward(60)
        [going] = await host.until_runs(1, "waiting-approval")
        await away(host, "paused")
        with pytest.raises(MemberOffDuty):
            await host.schedules.run(TENANT, name, None, dry=False)
        await host.forward(60)
        assert [run.run_id for run in await host.runs(statuses=("waiting-approval",))] == [
            going.run_id
        ]


@pytest.mark.parametrize("how", ["paused", "disabled"])
@pytest.mark.parametrize("bound", [True, False])
async def test_who_was_away_at_a_slot_does_not_do_it_when_back_before_the_look(
    tmp_path: Path, how: str, bound: bool
) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        await named(host)
        name = await host.made(**({"rosterId": SALLY} if bound else {"workflowId": "named"}))
        host.clock.forward(59)
        await away(host, how)
        host.clock.forward(2)
        await host.hired()
        await host.decided()
        assert await host.fires(name) == [("skipped", how, 1)]
        await host.forward(60)
        assert await host.fires(name) == [("skipped", how, 1), STARTED]


async def test_work_that_was_taken_from_its_member_at_a_slot_is_not_done_later(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY)
        host.clock.forward(59)
        await host.hired(workflows=("slow",))
        host.clock.forward(2)
        await host.hired()
        await host.decided()
        assert await host.fires(name) == [("skipped", "disabled", 1)]


async def test_a_members_pause_drops_what_waits_however_short_it_was(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(rosterId=SALLY, workflowId="endless", overlap="buffer-one")
        await host.forward(60)
        [going] = await host.until_runs(1)
        await host.forward(60)
        assert await host.fires(name) == [STARTED, ("waiting", "", 1)]
        await away(host, "paused")
        host.clock.forward(5)
        await host.hired()
        enough = CancelRun(host.clock.millis(), "enough")
        await host.services.host.handle(TENANT, going.run_id, enough)
        await host.scheduler.look(TENANT, name)
        assert await host.fires(name) == [STARTED, ("skipped", "paused", 1)]
        assert len(await host.runs()) == 1
