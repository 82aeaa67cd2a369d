"""What a branch does to the world, and what its history has already done."""

import asyncio
from typing import Any

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.errors import MootError
from moot.core.ids import logical_invocation_id
from moot.core.state.status import Status
from moot.engine.effects.ledger import Effect, ReplayEffectRefused
from moot.engine.replay.ancestry import read_inherited_artifact
from moot.engine.replay.replay import replay_run
from tests.support.engine.branches import forked
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    definition,
    ended,
    log,
    node,
    order,
    sound,
    sub,
    until,
)
from tests.support.engine.replays import answer, call, calls, put, quickly, waits
from tests.support.event_payloads import payload_json

#: the names under which the outside was called, and whether it answers
names: list[str] = []
doors: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _nobody_called() -> None:
    calls.clear()
    names.clear()
    doors[:] = [asyncio.Event()]


async def _pay(name: str) -> str:
    names.append(name)
    await doors[0].wait()
    return "paid"


@node_function("acme.pay")
async def pay(ctx: NodeContext) -> Any:
    return {"said": await ctx.effect("bank:pay", _pay)}


@node_function("acme.pay-once")
async def pay_once(ctx: NodeContext) -> Any:
    return {"said": await ctx.effect("bank:pay", _pay, idempotent=False)}


async def _under_way(place: Place, type_id: str) -> tuple[Any, str, int]:
    """A host, a run that is just paying, and where that stands."""
    place.knows(pay, pay_once)
    host = place.host()
    source = await begun(host, chain(node("pay", type_id), put("x", 1)))
    await until(host, source, lambda run: run.next_sequence == 3)
    assert (await order(host, source))[-1] == "moot.effect.started pay"
    return host, source, 3


async def test_a_call_under_way_at_the_fork_is_made_by_the_name_it_has(place: Place) -> None:
    host, source, cut = await _under_way(place, "acme.pay")
    run = await forked(host, source, cut)
    await until(host, run.run_id, lambda run: run.next_sequence > cut)
    doors[0].set()
    for each in (source, run.run_id):
        assert (await ended(host, each)).nodes["pay"].outputs == {"said": "paid"}
    assert names == [logical_invocation_id(TENANT, source, "pay", 1, "bank:pay")] * 2
    await sound(host)


async def test_what_must_not_happen_twice_is_not_begun_by_a_branch(place: Place) -> None:
    host, source, cut = await _under_way(place, "acme.pay-once")
    run = await forked(host, source, cut)
    done = await ended(host, run.run_id)
    assert done.error is not None and done.error.code == "effect_outcome_unknown"
    assert len(names) == 1
    doors[0].set()
    assert (await ended(host, source)).status is Status.COMPLETED


async def test_an_end_that_only_the_source_knows_is_taken_from_there(place: Place) -> None:
    host, source, cut = await _under_way(place, "acme.pay-once")
    doors[0].set()
    await ended(host, source)
    run = await forked(host, source, cut)
    done = await ended(host, run.run_id)
    assert done.nodes["pay"].outputs == {"said": "paid"}
    assert len(names) == 1
    assert (await order(host, run.run_id))[cut] == "moot.effect.finished pay"
    before = await forked(host, source, cut - 1)
    assert (await ended(host, before.run_id)).status is Status.COMPLETED
    own = logical_invocation_id(TENANT, before.run_id, "pay", 1, "bank:pay")
    assert names[1:] == [own], "what comes after the fork is a call of its own"
    await sound(host)


async def test_artifacts_of_the_history_can_be_read_and_later_ones_cannot(place: Place) -> None:
    place.knows(call)
    host = place.host()
    one, two = (quickly(name, "acme.call") for name in ("one", "two"))
    nodes = [one, node("ok", "core.approvalGate"), two]
    source = await begun(host, chain(*nodes, channels={"log": {"reducer": "append"}}))
    await until(host, source, waits)
    cut = len(await log(host, source))
    await answer(host, source, "ok", {"action": "accept"})
    await ended(host, source)
    made = [payload_json(e)["artifactId"] for e in await log(host, source) if "artifact" in e.type]
    run = await forked(host, await _again(host, source, cut), cut)
    first, second = [
        await read_inherited_artifact(host.store, TENANT, run.run_id, each) for each in made
    ]
    assert first == await host.store.artifact(TENANT, source, made[0]) is not None
    assert second is None
    assert await read_inherited_artifact(host.store, "other", run.run_id, made[0]) is None


async def _again(host: Any, source: str, cut: int) -> str:
    return (await forked(host, source, cut)).run_id


async def test_no_door_to_the_world_is_open_to_a_replay(place: Place) -> None:
    """Whatever came that far would be refused: by the ledger itself, not only by who calls it."""
    host = place.host()
    source = await begun(host, chain(put("x", 1)))
    await ended(host, source)
    run = await replay_run(host, TENANT, source, 0)

    class Reporter:
        tenant, run_id, node_id = TENANT, run.run_id, "n"
        attempt, earlier, inherited = 1, 0, run.inherited

        async def recorded(self, *events: Any) -> None:
            raise AssertionError("nothing is recorded")

    with pytest.raises(ReplayEffectRefused):
        await host.activities.ledger.once(Reporter(), Effect(1, "bank:pay", _pay))
    assert not names


async def test_a_family_with_effects_is_forked_without_making_them_again(place: Place) -> None:
    place.knows(call)
    host = place.host()
    channels = {"log": {"reducer": "append"}}
    kid = chain(quickly("c", "acme.call"), node("ok", "core.approvalGate"), id="kid",
                channels=channels)  # fmt: skip
    top = definition([sub("kid"), quickly("mine", "acme.call")], id="top", channels=channels)
    source = await begun(host, kid, top)
    run = await until(host, source, lambda run: bool(run.mirrored) and "mine" not in run.active)
    assert calls["effect"] == 2
    branch = await forked(host, source, run.next_sequence)
    [own] = branch.children
    await answer(host, own, "ok", {"action": "accept"})
    assert (await ended(host, branch.run_id)).status is Status.COMPLETED
    assert calls["effect"] == 2
    await sound(host)


async def test_forks_of_forks_come_to_an_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.engine.replay.ancestry.MOST_GENERATIONS", 3)
    host = place.host()
    run_id = await begun(host, chain(put("x", 1)))
    await ended(host, run_id)
    with pytest.raises(MootError) as refusal:
        for _ in range(10):
            run_id = (await forked(host, run_id, 1)).run_id
            await ended(host, run_id)
    assert refusal.value.status == 422
    assert len(await host.store.runs()) == 5
