"""What a schedule leaves when it is removed, and pauses that are over."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from timepieces import TENANT, Timepiece, turning

from moot.api.schedules.views import schedule_view
from moot.core.errors import BadRequest
from moot.store.protocol import Batch
from moot.store.records import DeliveryFilter
from moot.triggers.schedules import service


async def asking(host: Timepiece, name: str, count: int) -> None:
    """Fires that wait for somebody to look."""
    await host.forward(60)
    [row] = await host.rows(name)
    rows = [
        replace(row, key=f"{name}:slot:{n}", delivery_id=f"dlv_{n}", state="dead", revision=1)
        for n in range(count)
    ]
    await host.store.commit(Batch(deliveries=rows))


async def test_no_fire_of_a_schedule_that_is_removed_asks_for_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PAGE", 5)
    async with turning(tmp_path) as host:
        name = await host.made()
        await asking(host, name, 13)
        await host.schedules.remove(TENANT, name, "key_1")
        where = DeliveryFilter(states=("dead", "missed", "waiting", "retrying"))
        assert await host.store.deliveries(TENANT, where, None, 100) == ([], None)


async def test_a_pause_until_a_time_that_has_passed_is_refused(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        with pytest.raises(BadRequest, match="has passed"):
            await host.schedules.pause(TENANT, name, "key_1", "", host.clock.millis())
        assert schedule_view(await host.case(name)).pause is None


async def test_a_pause_is_shown_only_while_it_holds(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        name = await host.made()
        until = host.clock.millis() + 30_000
        case = await host.schedules.pause(TENANT, name, "key_1", "lunch", until)
        assert schedule_view(case).pause.reason == "lunch"
        await host.forward(31)
        assert schedule_view(await host.case(name)).pause is None
