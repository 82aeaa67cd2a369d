"""How many subscriptions a tenant may have: schedules have a limit of their own."""

from pathlib import Path

import pytest

from moot.core.errors import BadRequest, Conflict
from moot.triggers.inbound import subscriptions
from moot.triggers.inbound.queues import Consumer
from moot.triggers.inbound.subscriptions import SubscriptionRequest
from tests.support.engine.schedules import TENANT, turning


async def test_schedules_leave_room_for_queues_and_webhooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST_SUBSCRIPTIONS", 3)
    wanted, takes = SubscriptionRequest(workflow_id="quick"), Consumer(workflow_id="quick")
    async with turning(tmp_path) as timepiece:
        triggers = timepiece.services.triggers
        for _ in range(5):
            await timepiece.made()
        await triggers.queues.bind(TENANT, "leads", takes, "me")
        made = [await triggers.subscriptions.register(TENANT, wanted, "me") for _ in range(2)]
        await triggers.queues.bind(TENANT, "leads", takes, "me")
        with pytest.raises(BadRequest):
            await triggers.queues.bind(TENANT, "others", takes, "me")
        with pytest.raises(BadRequest):
            await triggers.subscriptions.register(TENANT, wanted, "me")
        first = await triggers.subscriptions.must_find(TENANT, made[0].subscription_id)
        await triggers.subscriptions.remove(first, "me")
        await triggers.queues.bind(TENANT, "others", takes, "me")
        assert len(await triggers.subscriptions.inbound(TENANT)) == 3


async def test_queues_made_by_pushes_take_no_room_from_what_people_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST_SUBSCRIPTIONS", 1)
    monkeypatch.setattr(subscriptions, "MOST_IDLE", 2)
    async with turning(tmp_path) as timepiece:
        triggers = timepiece.services.triggers
        queues = triggers.queues
        for name in ("one", "two"):
            await queues.push(TENANT, name, {}, None, "me")
        with pytest.raises(BadRequest):
            await queues.push(TENANT, "three", {}, None, "me")
        await queues.push(TENANT, "one", {}, None, "me")
        bound = await queues.bind(TENANT, "three", Consumer(workflow_id="quick"), "me")
        with pytest.raises(BadRequest):
            await triggers.subscriptions.register(
                TENANT, SubscriptionRequest(workflow_id="quick"), "me"
            )
        await queues.unbind(TENANT, "three", "me")
        await queues.remove(TENANT, "three", "me")
        assert await queues.find(TENANT, str(bound.it.queue)) is None
        await triggers.subscriptions.register(
            TENANT, SubscriptionRequest(workflow_id="quick"), "me"
        )


async def test_an_item_that_comes_while_its_queue_is_removed_is_kept(tmp_path: Path) -> None:
    """It was written after the queue was found empty: what is carried next brings it back."""
    async with turning(tmp_path) as timepiece:
        triggers = timepiece.services.triggers
        handed, seen = await triggers.queues.push(TENANT, "leads", {"a": 1}, None, "me")
        await triggers.subscriptions.end(seen, "me")
        await triggers.deliveries.carry(handed.delivery)
        found, row = await triggers.queues.item(TENANT, "leads", handed.delivery.delivery_id)
        assert (found.it.queue, row.state) == ("leads", "waiting")


async def test_a_queue_that_was_removed_is_made_anew_by_the_next_item(tmp_path: Path) -> None:
    """Also for whoever had found it before."""
    async with turning(tmp_path) as timepiece:
        queues = timepiece.services.triggers.queues
        handed, seen = await queues.push(TENANT, "leads", {"a": 1}, "k", "me")
        with pytest.raises(Conflict):
            await queues.remove(TENANT, "leads", "me")
        await timepiece.services.triggers.deliveries.drop(handed.delivery, "me")
        await queues.remove(TENANT, "leads", "me")
        timepiece.services.triggers.subscriptions._remember(seen)
        again, _ = await queues.push(TENANT, "leads", {"a": 2}, "other", "me")
        assert again.delivery.state == "waiting"
        same, _ = await queues.push(TENANT, "leads", {"a": 1}, "k", "me")
        assert (same.fresh, same.delivery.state) == (False, "dropped")
