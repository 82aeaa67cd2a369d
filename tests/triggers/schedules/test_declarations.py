"""Schedules that workflows declare follow their triggers."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moot.core.errors import BadRequest
from tests.support.engine.hosts import chain, node
from tests.support.engine.schedules import MINUTE, TENANT, Timepiece, turning

MORNINGS = {"id": "mornings", "type": "schedule", "config": {"words": "every 1 minute"}}


async def registered(host: Timepiece, *triggers: dict[str, Any]) -> list[str]:
    """The ids of its schedules afterwards."""
    body = msgspec.json.encode(chain(node("a"), id="brief", triggers=list(triggers)))
    await host.services.triggers.declared.register(TENANT, body, "key_1")
    return [plan.spec.schedule_id for plan in await host.schedules.all(TENANT)]


async def test_a_trigger_becomes_a_schedule_and_ends_with_it(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        [name] = await registered(host, MORNINGS)
        await host.forward(MINUTE)
        [run] = await host.runs()
        assert run.workflow_id == "brief"
        assert await registered(host, MORNINGS) == [name]
        assert await registered(host, {"id": "manual", "type": "manual"}) == []
        assert await registered(host, MORNINGS) == [name]


async def test_what_was_changed_by_hand_stays_until_the_trigger_changes(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        [name] = await registered(host, MORNINGS)
        await host.changed(name, overlap="allow", enabled=False)
        await registered(host, MORNINGS)
        assert (await host.case(name)).plan.spec.overlap == "allow"
        other = {**MORNINGS, "config": {"cronExpr": "0 8 * * *", "timezone": "Europe/Berlin"}}
        await registered(host, other)
        spec = (await host.case(name)).plan.spec
        assert (spec.kind, spec.words, spec.overlap, spec.enabled) == ("cron", None, "skip", True)


@pytest.mark.parametrize(
    "config",
    [{}, {"words": "sometimes"}, {"words": "daily", "workflowId": "other"},
     {"words": "daily", "cronExpr": "* * * * *"}, {"words": "daily", "rosterId": "host:nobody"}],
)  # fmt: skip
async def test_a_trigger_that_cannot_be_meant_refuses_the_definition(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    async with turning(tmp_path) as host:
        with pytest.raises(BadRequest) as refusal:
            await registered(host, {**MORNINGS, "config": config})
        assert refusal.value.details["field"] == "triggers.mornings"
        assert await host.store.definition(TENANT, "brief") is None


async def test_a_trigger_that_is_off_may_be_meant_for_another_host(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        assert await registered(host, {**MORNINGS, "config": {"a": 1}, "enabled": False}) == []
        assert await host.store.definition(TENANT, "brief") is not None
        await registered(host, MORNINGS)
        assert await registered(host, {**MORNINGS, "config": {"a": 1}, "enabled": False}) == []
