"""Deliveries on the real parts: one run each whoever races, nothing lost, nobody woken off duty."""

import asyncio
import os
from typing import Any

import pytest

from moot import NodeContext
from moot import node as user_node
from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import AgentRegistry, DeploymentService
from moot.agents.roster.members import (
    MemberEntry,
    MemberOwner,
    MemberRecord,
    MemberResolver,
    PausePeriod,
    RosterService,
    new_member_guard,
)
from moot.core.errors import StorageFailed
from moot.core.errors.triggers import MemberOffDuty, QueueFull, SubscriptionNotActive
from moot.core.triggers.subscriptions import FAILING_LIMIT, Arrival, TriggerSubscription
from moot.engine.host import Host
from moot.engine.start import AgentPins
from moot.net.outbound import Outbound
from moot.store.protocol import Batch
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers import polling
from moot.triggers.inbound import deliveries
from moot.triggers.inbound.queues import Consumer
from moot.triggers.service import Triggers
from moot.wire.roster import MemberAgentRef
from tests.support.engine.hosts import TENANT, Place, chain, ended, node, registered, soon, sound

FLOW = "sample"
#: of one item, at once; the long form is the promise
TIMES = 1000 if os.environ.get("MOOT_LONG") == "1" else 200
SALLY = "host:sally"


async def triggers_of(place: Place, host: Host) -> Triggers:
    agents = AgentRegistry(host.store, place.clock, lambda *_: None)
    deployments = DeploymentService(host.store, place.clock, agents)
    roster = RosterService(host.store, place.clock)
    instances = MemberResolver(roster, agents, deployments, place.clock)
    await agents.put(TENANT, Agent(name="ada", prompt="Be brief."), by="me")
    pins = AgentPins(instances, place.clock)
    found = Triggers(host, host.store, place.clock, roster, pins, Outbound())
    await found.load()
    found.start()
    return found


async def opened(place: Place, wrapper: Any = None) -> tuple[Host, Triggers]:
    host = place.host(wrapper)
    await registered(host, chain(node("n")))
    return host, await triggers_of(place, host)


async def rows(place: Place, queue: str, triggers: Triggers) -> list[Delivery]:
    seen = await triggers.queues.must_find(TENANT, queue)
    where = DeliveryFilter(subscription=seen.it.subscription_id)
    return (await place.store.deliveries(TENANT, where, None, 1000))[0]


async def hire(triggers: Triggers, **changes: Any) -> None:
    entry = MemberEntry(
        roster_id=SALLY, persona="Sally", agent_ref=MemberAgentRef(agent_id="host:ada"),
        owner=MemberOwner(tenant_id=TENANT), workflows=(FLOW,),
    )  # fmt: skip
    seat = await triggers.roster.find(TENANT, SALLY)
    guard = seat.guard if seat is not None else new_member_guard(TENANT, SALLY)
    hired = MemberRecord(entry=entry, did="changed", hired_at=1, **changes)
    await triggers.roster.put(TENANT, hired, "me", guard)


async def test_an_item_brought_many_times_at_once_to_a_disk_is_one_run(place: Place) -> None:
    _, triggers = await opened(place)
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    handed = await asyncio.gather(
        *(triggers.queues.push(TENANT, "q", {"n": 1}, "the same", "me") for _ in range(TIMES))
    )
    assert len({found.delivery.run_id for found, _ in handed}) == 1
    assert sum(found.fresh for found, _ in handed) == 1
    assert len(await place.store.runs()) == 1
    await triggers.aclose()


async def test_two_hosts_that_race_for_one_item_begin_one_run(memory: Place) -> None:
    pair = [await opened(memory), await opened(memory)]
    await pair[0][1].queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    handed = await asyncio.gather(
        *(
            triggers.queues.push(TENANT, "q", {"n": 1}, "the same", "me")
            for _ in range(TIMES // 2)
            for _, triggers in pair
        )
    )
    assert len({found.delivery.run_id for found, _ in handed}) == 1
    assert sum(found.fresh for found, _ in handed) == 1
    assert len(await memory.store.runs()) == 1
    for _, triggers in pair:
        await triggers.aclose()


async def test_two_couriers_that_race_begin_one_run_for_each_item(memory: Place) -> None:
    pair = [await opened(memory), await opened(memory)]
    first = pair[0][1]
    for number in range(30):
        await first.queues.push(TENANT, "q", {"n": number}, None, "me")
    await first.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    pair[1][1].courier.look()
    found = await all_delivered(memory, first, 30)
    assert len({row.run_id for row in found}) == len(await memory.store.runs()) == 30
    for _, triggers in pair:
        await triggers.aclose()


async def all_delivered(place: Place, triggers: Triggers, count: int) -> list[Delivery]:
    async with asyncio.timeout(60):
        while True:
            found = await rows(place, "q", triggers)
            if [row.state for row in found] == ["delivered"] * count:
                return found
            await asyncio.sleep(0.01)


async def test_what_comes_for_a_member_off_duty_waits_and_is_taken_when_it_is_back(
    place: Place,
) -> None:
    host, triggers = await opened(place)
    await hire(triggers, pause=PausePeriod(since=1, by="me"))
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW, roster_id=SALLY), "me")
    handed, _ = await triggers.queues.push(TENANT, "q", {"body": "x"}, None, "me")
    assert handed.delivery.state == "waiting" and handed.delivery.attempts == []
    seen = await triggers.queues.must_find(TENANT, "q")
    assert seen.it.state == "active"
    await hire(triggers)
    [row] = await all_delivered(place, triggers, 1)
    run = await ended(host, row.run_id or "")
    assert run.member is not None and run.member.roster_id == SALLY
    await sound(host)
    await triggers.aclose()


async def test_an_item_waits_for_a_member_that_only_a_node_names(memory: Place) -> None:
    host, triggers = await opened(memory)
    await hire(triggers, pause=PausePeriod(since=1, by="me"))
    asks = node("n", "moot.agent", agent={"agentId": SALLY}, config={"prompt": "Well?"})
    await registered(host, chain(asks))
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    handed, _ = await triggers.queues.push(TENANT, "q", {}, None, "me")
    assert handed.delivery.state == "waiting" and SALLY in handed.delivery.reason
    await triggers.aclose()


async def test_a_pause_with_an_end_ends_by_itself(memory: Place) -> None:
    _, triggers = await opened(memory)
    until = memory.clock.millis() + 60_000
    await hire(triggers, pause=PausePeriod(since=1, by="me", until=until))
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW, roster_id=SALLY), "me")
    handed, _ = await triggers.queues.push(TENANT, "q", {}, None, "me")
    assert handed.delivery.state == "waiting"
    memory.clock.ahead_ms = 61_000
    triggers.look()
    await all_delivered(memory, triggers, 1)
    await triggers.aclose()


async def at_rest(triggers: Triggers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the courier has looked, found nothing, and sleeps."""
    nexts, whole = [0], triggers.courier.rounds._wait

    def wait(due: int | None) -> float:
        nexts[0] += 1
        return whole(due)

    monkeypatch.setattr(triggers.courier.rounds, "_wait", wait)
    triggers.courier.look()
    await soon(lambda: nexts[0])


@pytest.mark.parametrize("whose", ["queue", "member"])
async def test_what_comes_during_a_pause_with_an_end_is_taken_up_then(
    memory: Place, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Though nobody says that it has come."""
    monkeypatch.setattr(polling, "LONGEST_SLEEP", 3600.0)
    _, triggers = await opened(memory)
    until = memory.clock.millis() + 500
    await hire(
        triggers, pause=PausePeriod(since=1, by="me", until=until if whose == "member" else 1)
    )
    consumer = Consumer(workflow_id=FLOW, roster_id=SALLY)
    seen = await triggers.queues.bind(TENANT, "q", consumer, "me")
    if whose == "queue":
        await triggers.subscriptions.pause(seen, "me", until=until)
    await at_rest(triggers, monkeypatch)
    handed, _ = await triggers.queues.push(TENANT, "q", {}, None, "me")
    assert handed.delivery.state == "waiting" or memory.clock.millis() >= until
    await all_delivered(memory, triggers, 1)
    await triggers.aclose()


async def test_a_webhook_for_a_member_off_duty_is_refused_and_leaves_no_row(memory: Place) -> None:
    _, triggers = await opened(memory)
    await hire(triggers, pause=PausePeriod(since=1, by="me"))
    made = TriggerSubscription(
        subscription_id="sub_x", source="webhook", workflow_id=FLOW, roster_id=SALLY, owner="me"
    )
    seen = await triggers.subscriptions.ensure(TENANT, made, "me")
    with pytest.raises(MemberOffDuty):
        await triggers.deliveries.take(seen, Arrival(content={}), "k")
    paused = await triggers.subscriptions.pause(seen, "me")
    with pytest.raises(SubscriptionNotActive):
        await triggers.deliveries.take(paused, Arrival(content={}), "k")
    await hire(triggers)
    with pytest.raises(SubscriptionNotActive):  # also for who has not heard of it yet
        await triggers.deliveries.take(seen, Arrival(content={}), "k")
    assert await memory.store.delivery_counts(TENANT, "sub_x") == {}
    await triggers.aclose()


async def test_deliveries_that_fail_side_by_side_stop_the_subscription_until_it_is_resumed(
    memory: Place,
) -> None:
    _, triggers = await opened(memory)
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    seen = await triggers.queues.must_find(TENANT, "q")
    await triggers.subscriptions.change(seen, "me", "other", workflow_id="nothing")
    for _ in range(FAILING_LIMIT):
        await triggers.queues.push(TENANT, "q", {}, None, "me")
    seen = await triggers.queues.must_find(TENANT, "q")
    assert seen.it.state == "failed"
    handed, _ = await triggers.queues.push(TENANT, "q", {"n": 1}, None, "me")
    assert handed.delivery.state == "waiting"
    seen = await triggers.subscriptions.change(seen, "me", "other", workflow_id=FLOW)
    resumed = await triggers.subscriptions.resume(seen, "me")
    await triggers.queues.wake(resumed)
    memory.clock.ahead_ms = 60_000
    triggers.look()
    await all_delivered(memory, triggers, FAILING_LIMIT + 1)
    await triggers.aclose()


async def test_a_full_queue_takes_no_more(memory: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _, triggers = await opened(memory)
    triggers.deliveries._waiting._most = 3
    for _ in range(3):
        await triggers.queues.push(TENANT, "q", {}, None, "me")
    with pytest.raises(QueueFull):
        await triggers.queues.push(TENANT, "q", {}, None, "me")
    [kept, *_] = await rows(memory, "q", triggers)
    await triggers.deliveries.drop(kept, "me")
    await triggers.queues.push(TENANT, "q", {}, None, "me")
    assert deliveries.MOST_WAITING == 10_000
    await triggers.aclose()


async def test_what_a_member_that_is_gone_listened_to_rests(memory: Place) -> None:
    _, triggers = await opened(memory)
    await hire(triggers)
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW, roster_id=SALLY), "me")
    seat = await triggers.roster.find(TENANT, SALLY)
    assert seat is not None
    await triggers.roster.put(TENANT, seat.hired, "me", seat.guard, gone=True)
    async with asyncio.timeout(60):
        while (seen := await triggers.queues.must_find(TENANT, "q")).it.state == "active":
            await asyncio.sleep(0.005)
    assert (seen.it.state, seen.it.reason) == ("paused", "source-removed")
    handed, _ = await triggers.queues.push(TENANT, "q", {}, None, "me")
    assert handed.delivery.state == "waiting"
    await triggers.aclose()


async def test_what_was_to_be_tried_again_is_dropped_with_its_subscription(memory: Place) -> None:
    _, triggers = await opened(memory)
    made = TriggerSubscription(
        subscription_id="sub_x", source="webhook", workflow_id="nothing", owner="me"
    )
    seen = await triggers.subscriptions.ensure(TENANT, made, "me")
    handed = await triggers.deliveries.take(seen, Arrival(content={}), "k")
    assert handed.delivery.state == "retrying"
    await triggers.subscriptions.remove(seen, "me")
    memory.clock.ahead_ms = 60_000
    triggers.look()
    async with asyncio.timeout(60):
        while (row := await memory.store.delivery(TENANT, "sub_x", "k")) is None or row.due_at:
            await asyncio.sleep(0.005)
    assert row.state == "dropped" and row.body == b""
    await triggers.aclose()


async def test_nodes_and_expressions_see_what_came_in(memory: Place) -> None:
    seen: list[Any] = []

    @user_node("acme.sees")
    async def sees(ctx: NodeContext) -> dict[str, Any]:
        seen.append(ctx.trigger)
        return {"subject": ctx.inputs["subject"]}

    memory.knows(sees)
    host, triggers = await opened(memory)
    subject = {"type": "expression", "expression": "trigger.queue.subject"}
    flow = chain(node("n", "acme.sees", inputs={"subject": subject}))
    await registered(host, flow)
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    handed, _ = await triggers.queues.push(TENANT, "q", {"subject": "ACME"}, None, "me")
    run = await ended(host, handed.delivery.run_id or "")
    assert run.nodes["n"].outputs == {"subject": "ACME"}, run.error
    assert seen[0]["queue"] == {"subject": "ACME"} and seen[0]["contentTrust"] == "untrusted"
    assert run.trigger == seen[0]
    await triggers.aclose()


class Refusing:
    """A disk that refuses what begins runs, for as long as it is told to."""

    def __init__(self, store: Any) -> None:
        self.inner, self.refuses = store, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def commit(self, batch: Batch) -> None:
        if self.refuses and batch.appends:
            raise StorageFailed("The disk refused the write; nothing of it was kept.")
        await self.inner.commit(batch)


async def test_a_disk_that_refuses_is_no_failed_try_and_loses_nothing(memory: Place) -> None:
    doors: list[Refusing] = []

    def door(store: Any) -> Refusing:
        doors.append(Refusing(store))
        return doors[-1]

    _, triggers = await opened(memory, door)
    await triggers.queues.push(TENANT, "q", {}, None, "me")
    doors[0].refuses = True
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    with pytest.raises(StorageFailed):
        await triggers.queues.push(TENANT, "q", {}, "later", "me")
    await soon(lambda: triggers.courier._on_the_way)
    [row] = await rows(memory, "q", triggers)
    assert row.state == "waiting" and row.attempts == []
    doors[0].refuses = False
    await all_delivered(memory, triggers, 1)
    await triggers.aclose()


async def test_what_came_in_stands_in_no_log_where_an_input_of_it_is_secret(memory: Place) -> None:
    host, triggers = await opened(memory)
    secret = {"name": "token", "type": "string", "sensitive": True}
    await registered(host, chain(node("n"), variables=[secret]))
    await triggers.queues.bind(TENANT, "q", Consumer(workflow_id=FLOW), "me")
    handed, _ = await triggers.queues.push(TENANT, "q", {"token": "s3cr3t-canary"}, None, "me")
    run_id = handed.delivery.run_id or ""
    await ended(host, run_id)
    log = b"".join(await memory.store.read(TENANT, run_id, -1, 100))
    assert b"s3cr3t-canary" not in log and b'"trigger"' in log
    await triggers.aclose()
