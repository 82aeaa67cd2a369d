"""A schedule that waits for work is given it: the items of its queue, in the run that it starts."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moot.store.records import Delivery
from moot.triggers.inbound.queues import Consumer
from moot.triggers.schedules import queue_items
from tests.support.engine.hosts import chain, log, node
from tests.support.engine.schedules import MINUTE, SALLY, TENANT, Timepiece, turning
from tests.support.event_payloads import payload_json

BY_QUEUE = {"condition": {"queue": "leads"}}


async def pushed(host: Timepiece, *subjects: str) -> list[str]:
    names = []
    for subject in subjects:
        host.clock.forward(0.001)
        found, _ = await host.queues.push(TENANT, "leads", {"subject": subject}, None, "key_1")
        names.append(found.delivery.delivery_id)
    return names


async def item(host: Timepiece, name: str) -> Delivery:
    found = await host.store.delivery_by_id(TENANT, name)
    assert found is not None
    return found


async def collecting(host: Timepiece, **variable: Any) -> None:
    """A workflow that wants items."""
    items = {"name": "items", "type": "array", "required": True, **variable}
    flow = chain(node("a"), id="collect", variables=[items])
    await host.services.host.flows.register(TENANT, msgspec.json.encode(flow))


async def test_the_items_of_its_queue_are_given_to_the_run_with_its_beginning(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        await host.hired(workflows=("collect",))
        await collecting(host)
        name = await host.made(workflowId="collect", rosterId=SALLY, **BY_QUEUE)
        await host.forward(MINUTE)
        assert await host.fires(name) == [("skipped", "no-work", 1)]
        names = await pushed(host, "one", "two")
        await host.forward(MINUTE)
        [run] = await host.runs()
        started, *_ = await log(host.services.host, run.run_id)
        told = payload_json(started)["trigger"]["schedule"]["items"]
        assert [each["itemId"] for each in told] == names
        assert [each["item"]["subject"] for each in told] == ["one", "two"]
        assert payload_json(started)["inputs"]["items"] == told
        for one in names:
            row = await item(host, one)
            assert (row.state, row.run_id, row.member) == ("delivered", run.run_id, SALLY)
            assert row.attempts[-1].event_id == started.causation_id and row.body == b""
        await host.forward(MINUTE)
        assert len(await host.runs()) == 1


async def test_what_is_more_than_one_run_is_given_waits_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_items, "LONGEST", 60)
    async with turning(tmp_path) as host:
        await host.made(**BY_QUEUE)
        first, second = await pushed(host, "x" * 30, "y" * 30)
        await host.forward(MINUTE)
        assert (await item(host, first)).state == "delivered"
        assert (await item(host, second)).state == "waiting"
        await host.forward(MINUTE)
        assert (await item(host, second)).state == "delivered"
        assert len(await host.runs()) == 2


async def test_a_queue_that_is_bound_gives_its_items_there_and_none_to_a_schedule(
    tmp_path: Path,
) -> None:
    async with turning(tmp_path) as host:
        await host.hired()
        name = await host.made(**BY_QUEUE)
        await host.queues.bind(TENANT, "leads", Consumer(workflow_id="quick"), "key_1")
        seen = await host.queues.must_find(TENANT, "leads")
        await host.services.triggers.subscriptions.pause(seen, "key_1")
        [one] = await pushed(host, "one")
        await host.forward(MINUTE)
        assert await host.fires(name) == [("skipped", "no-work", 1)]
        assert (await item(host, one)).state == "waiting"


async def test_an_item_is_one_runs_alone_whoever_looks(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        first = await host.made(**BY_QUEUE)
        second = await host.made(**BY_QUEUE)
        [one] = await pushed(host, "one")
        await host.forward(MINUTE)
        states = [(await host.fires(name))[-1] for name in (first, second)]
        assert sorted(states) == [("delivered", "", 1), ("skipped", "no-work", 1)]
        [run] = await host.runs()
        assert (await item(host, one)).run_id == run.run_id


async def test_items_that_are_secret_stand_in_no_log(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await collecting(host, sensitive=True)
        await host.made(workflowId="collect", **BY_QUEUE)
        await pushed(host, "canary")
        await host.forward(MINUTE)
        [run] = await host.runs()
        events = await log(host.services.host, run.run_id)
        assert b"canary" not in msgspec.json.encode([payload_json(each) for each in events])


async def test_a_run_by_hand_has_what_there_is_and_begins_without(tmp_path: Path) -> None:
    async with turning(tmp_path) as host:
        await collecting(host)
        name = await host.made(workflowId="collect", **BY_QUEUE)
        await host.schedules.run(TENANT, name, None, dry=False)
        [run] = await host.runs()
        started, *_ = await log(host.services.host, run.run_id)
        assert payload_json(started)["inputs"]["items"] == []
