"""Events on their way out, on the real parts: nobody waits for another's receiver, nothing is
lost when one fails, and one call finds out whether it is back."""

import asyncio
from typing import Any

import pytest

from moot.core.errors import BadRequest, Conflict
from moot.core.errors.triggers import Overtaken
from moot.core.triggers import webhooks as rules
from moot.net.dns import LookupNotStarted
from moot.net.outbound import OutboundRequest
from moot.store.protocol import Batch
from moot.triggers import courier
from moot.triggers.inbound.queues import Consumer
from moot.triggers.webhooks import registrations
from tests.support.engine.hosts import TENANT, Place, Recording, chain, node, registered, soon
from tests.support.engine.receivers import ahead, come_to, hook, opened, owe, rows, states


async def test_a_slow_receiver_keeps_nobody_else_waiting(place: Place) -> None:
    async with opened(place) as (triggers, world):
        told = asyncio.Event()

        async def slow(order: OutboundRequest) -> int:
            await told.wait()
            return 200

        world.answers["slow"] = slow
        late = await hook(triggers, "slow")
        await owe(place, triggers, late, 60)
        await soon(lambda: world.at_once.get("slow") == courier.WIDTH)
        mine, other = await hook(triggers, "mine"), await hook(triggers, "other", "elsewhere")
        await owe(place, triggers, mine, 3)
        await owe(place, triggers, other, 3, "elsewhere")
        await soon(lambda: world.called.count("mine") == world.called.count("other") == 3)
        assert world.called.count("slow") == courier.WIDTH
        told.set()
        await come_to(place, late, {})
        assert world.called.count("slow") == 60


async def test_tenants_share_the_room_there_is_whoever_came_first(
    memory: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "MOST", 12)
    monkeypatch.setattr(courier, "SHARE", 8)
    async with opened(memory) as (triggers, world):
        tokens = asyncio.Semaphore(0)

        async def when_let(order: OutboundRequest) -> int:
            await tokens.acquire()
            return 200

        for name in ("a1", "a2", "b1", "c1"):
            world.answers[name] = when_let
            made = await hook(triggers, name, f"tenant-{name[0]}")
            await owe(memory, triggers, made, 30, f"tenant-{name[0]}")
        await soon(lambda: sum(world.at_once.values()) == 12)
        of_a = world.at_once.get("a1", 0) + world.at_once.get("a2", 0)
        assert of_a <= 8
        for _ in range(24):
            tokens.release()
        await soon(lambda: len(world.called) == 36)
        assert world.at_once["c1"] >= 3 and world.at_once["b1"] >= 3
        for _ in range(200):
            tokens.release()


async def test_what_comes_in_does_not_wait_for_what_goes_out(
    memory: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "MOST", 4)
    async with opened(memory) as (triggers, world):
        never = asyncio.Event()
        world.answers["slow"] = lambda order: never.wait()
        await owe(memory, triggers, await hook(triggers, "slow"), 20)
        await soon(lambda: world.at_once.get("slow") == 4)
        await registered(memory.hosts[-1], chain(node("n")))
        await triggers.queues.push(TENANT, "q", {}, None, "me")
        seen = await triggers.queues.bind(TENANT, "q", Consumer(workflow_id="sample"), "me")
        async with asyncio.timeout(60):
            while "delivered" not in await memory.store.delivery_counts(
                TENANT, seen.it.subscription_id
            ):
                await asyncio.sleep(0.005)
        never.set()


async def test_every_failure_counts_once_and_one_call_finds_out_whether_it_is_back(
    place: Place,
) -> None:
    async with opened(place) as (triggers, world):
        world.answers["bad"] = lambda order: 500
        bad = await hook(triggers, "bad")
        await owe(place, triggers, bad, 60)
        name = TENANT, bad.webhook_id
        await soon(lambda: len(world.called) >= rules.FAILURES_OPEN)
        circuit = await shut(triggers, *name)
        assert len(world.called) <= courier.WIDTH + rules.FAILURES_OPEN
        for probes in range(1, 4):
            before, world.most = len(world.called), {}
            ahead(place, triggers, rules.LONGEST_BREAK)
            await soon(lambda before=before: len(world.called) > before)  # type: ignore[misc]
            after = await shut(triggers, *name)
            assert len(world.called) == before + 1 and world.most == {"bad": 1}
            assert after.row == circuit.row + probes
        assert len(after.failures) == len(world.called)
        assert after.error == "The receiver answered 500."
        tried = [row for row in await rows(place, bad) if row.attempts]
        assert sum(len(row.attempts) for row in tried) == len(world.called)
        world.answers["bad"] = lambda order: 200
        ahead(place, triggers, rules.LONGEST_BREAK)
        await come_to(place, bad, {})


async def test_a_receiver_that_fails_at_once_is_left_alone_after_few_calls(
    memory: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(memory) as (triggers, world):
        read = memory.store.due_deliveries

        async def once_all_are_home(*asked: Any) -> Any:
            await soon(lambda: not triggers.courier.busy)
            return await read(*asked)

        monkeypatch.setattr(memory.store, "due_deliveries", once_all_are_home)
        world.answers["bad"] = lambda order: 500
        bad = await hook(triggers, "bad")
        await owe(memory, triggers, bad, 60)
        await soon(lambda: (TENANT, bad.webhook_id) in triggers.courier._rests)
        assert len(world.called) < courier.WIDTH + rules.FAILURES_OPEN


async def shut(triggers: Any, tenant: str, name: str) -> rules.Circuit:
    """Waits until nobody is called and the receiver is left alone."""
    async with asyncio.timeout(60):
        while True:
            if not triggers.courier._on_the_way:
                circuit: rules.Circuit = await triggers.webhook_deliveries.circuit(tenant, name)
                if circuit.failing:
                    return circuit
            await asyncio.sleep(0.005)


async def test_what_waits_for_a_webhook_that_fails_for_good_is_dead_and_not_gone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "FAILURES_END", 4)
    async with opened(place) as (triggers, world):
        world.answers["bad"] = lambda order: 500
        bad = await hook(triggers, "bad")
        await owe(place, triggers, bad, 60)
        await come_to(place, bad, {"dead": 60})
        assert triggers.webhooks.must_find(TENANT, bad.webhook_id).state == "failed"
        letter = (await rows(place, bad))[0]
        assert letter.reason
        with pytest.raises(Conflict):
            await triggers.webhook_deliveries.again(TENANT, bad.webhook_id, letter.delivery_id)
        with pytest.raises(Conflict, match="register it again"):
            await triggers.webhook_deliveries.resume(TENANT, bad.webhook_id, "me")
        await triggers.webhook_deliveries.drop(TENANT, bad.webhook_id, letter.delivery_id, "me")
        assert await states(place, bad) == {"dead": 59, "dropped": 1}
        with pytest.raises(Conflict, match="no dead letter"):
            await triggers.webhook_deliveries.drop(TENANT, bad.webhook_id, letter.delivery_id, "me")


async def test_a_name_that_this_host_did_not_come_to_look_up_is_no_failure_of_the_receiver(
    memory: Place,
) -> None:
    async with opened(memory) as (triggers, world):
        world.answers["good"] = lambda order: LookupNotStarted("Too many names.", sent=False)
        good = await hook(triggers, "good")
        await owe(memory, triggers, good, 3)
        await soon(lambda: len(world.called) == 3 and not triggers.courier._on_the_way)
        assert await triggers.webhook_deliveries.circuit(TENANT, good.webhook_id) == rules.Circuit()
        assert not [row for row in await rows(memory, good) if row.attempts]
        world.answers["good"] = lambda order: 200
        ahead(memory, triggers, 10_000)
        await come_to(memory, good, {})


async def test_a_paused_webhook_is_called_by_nobody_costs_no_write_and_misses_nothing(
    memory: Place,
) -> None:
    async with opened(memory, Recording) as (triggers, world):
        made = await hook(triggers, "quiet")
        await triggers.webhook_deliveries.pause(TENANT, made.webhook_id, "me")
        await owe(memory, triggers, made, 20)
        store: Any = triggers.webhook_deliveries._store
        before = len(store.batches)
        for _ in range(10):
            ahead(memory, triggers, 600_000)
            await asyncio.sleep(0.01)
        assert world.called == [] and len(store.batches) == before
        await triggers.webhook_deliveries.resume(TENANT, made.webhook_id, "me")
        await come_to(memory, made, {})
        assert len(world.called) == 20


async def test_a_person_who_says_that_it_is_back_need_not_wait_for_the_break_to_end(
    memory: Place,
) -> None:
    async with opened(memory) as (triggers, world):
        world.answers["bad"] = lambda order: 500
        bad = await hook(triggers, "bad")
        await owe(memory, triggers, bad, 5)
        await shut(triggers, TENANT, bad.webhook_id)
        world.answers["bad"] = lambda order: 200
        await triggers.webhook_deliveries.resume(TENANT, bad.webhook_id, "me")
        ahead(memory, triggers, 2000)  # a failed one waits a second before it is tried again
        await come_to(memory, bad, {})


async def test_only_a_dead_letter_is_sent_again_and_a_call_for_one_that_is_gone_ends(
    memory: Place,
) -> None:
    async with opened(memory) as (triggers, world):
        told = asyncio.Event()

        async def slow(order: OutboundRequest) -> int:
            await told.wait()
            return 200

        world.answers["slow"] = slow
        made = await hook(triggers, "slow")
        await owe(memory, triggers, made, 1)
        await soon(lambda: world.called == ["slow"])
        [row] = await rows(memory, made)
        with pytest.raises(Conflict, match="no dead letter"):
            await triggers.webhook_deliveries.again(TENANT, made.webhook_id, row.delivery_id)
        moved = Batch(
            deliveries=[registrations.replace(row, revision=2, due_at=None, state="dead")]
        )
        await memory.store.commit(moved)
        told.set()
        await soon(lambda: not triggers.courier._on_the_way)
        assert await states(memory, made) == {"dead": 1}


async def test_of_two_who_change_the_secret_one_is_told_that_it_does_not_count(
    sqlite: Place,
) -> None:
    async with opened(sqlite) as (triggers, _):
        made = await hook(triggers, "one")
        change = triggers.webhooks.rotate
        told = await asyncio.gather(
            *(change(TENANT, made.webhook_id, f"by {n}") for n in range(2)), return_exceptions=True
        )
        [kept] = [each for each in told if not isinstance(each, BaseException)]
        assert [type(each) for each in told if isinstance(each, BaseException)] == [Overtaken]
        assert triggers.webhooks.must_find(TENANT, made.webhook_id) == kept
        again = await change(TENANT, made.webhook_id, "me")
        assert again.earlier == kept.secret


async def test_however_many_register_at_once_there_is_an_end_to_webhooks(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrations, "MOST_HOOKS", 5)
    async with opened(place) as (triggers, _):
        asked = [
            triggers.webhooks.register(TENANT, "http://a.example/", ("*",), (), "me")
            for _ in range(20)
        ]
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(each, BadRequest) for each in told) == 15
        assert len(triggers.webhooks.all(TENANT)) == 5
