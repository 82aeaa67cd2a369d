"""How many subscriptions a tenant may have: schedules have a limit of their own."""

from pathlib import Path

import pytest
from timepieces import TENANT, turning

from moot.core.errors import BadRequest
from moot.triggers import subscriptions as module
from moot.triggers.subscriptions import Wanted


async def test_schedules_leave_room_for_queues_and_webhooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SUBSCRIPTIONS", 3)
    wanted = Wanted(workflow_id="quick")
    async with turning(tmp_path) as timepiece:
        triggers = timepiece.services.triggers
        for _ in range(5):
            await timepiece.made()
        await triggers.queues.push(TENANT, "leads", {}, None, "me")
        made = [await triggers.subscriptions.register(TENANT, wanted, "me") for _ in range(2)]
        await triggers.queues.push(TENANT, "leads", {}, None, "me")
        with pytest.raises(BadRequest):
            await triggers.queues.push(TENANT, "others", {}, None, "me")
        with pytest.raises(BadRequest):
            await triggers.subscriptions.register(TENANT, wanted, "me")
        first = await triggers.subscriptions.must_find(TENANT, made[0].subscription_id)
        await triggers.subscriptions.remove(first, "me")
        await triggers.queues.push(TENANT, "others", {}, None, "me")
        assert len(await triggers.subscriptions.inbound(TENANT)) == 3
