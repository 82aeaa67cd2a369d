"""A run of two hundred events, forked at each of them on a real file."""

import asyncio
from itertools import zip_longest
from typing import Any

import pytest

from moot.core.errors import StorageFailed
from moot.core.events import Event
from moot.core.replay.compare import is_same_event
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.store.protocol import Batch
from tests.support.engine.branches import forked
from tests.support.engine.hosts import (
    TENANT,
    Place,
    begun,
    chain,
    delay,
    edge,
    ended,
    log,
    node,
    order,
    sound,
    sub,
    until,
    variable,
)
from tests.support.engine.replays import CHAIR, answer, call, calls, council, put, quickly, waits
from tests.support.event_payloads import payload_json

EVENTS = 200


def everything() -> list[dict[str, Any]]:
    """Pure nodes in plenty, and one of each kind that is not."""
    copies = [
        node(f"copy{n}", "core.identity", inputs={"payload": variable("x")}) for n in range(78)
    ]
    kid = chain(delay(1), put("x", 7), id="kid")
    top = chain(
        put("x", 1), quickly("call", "acme.call"), node("ok", "core.approvalGate"),
        council(), sub("kid", outputMapping={"y": "x"}), delay(1, "nap"), *copies, put("z", 3),
        id="top", channels={"log": {"reducer": "append"}, "conversation": {"reducer": "message"}},
    )  # fmt: skip
    top["nodes"].append(node("never"))
    top["edges"].append(edge("ok", "never", sourceOutput="reject"))
    return [kid, top]


async def lived(host: Host) -> str:
    run_id = await begun(host, *everything())
    await live_on(host, run_id)
    return run_id


async def live_on(host: Host, run_id: str) -> Run:
    """Whatever is asked is answered, until it is over."""
    while True:
        run = await until(host, run_id, lambda run: waits(run) or run.terminal)
        if run.terminal:
            return run
        if "ok" in run.interrupts:
            await answer(host, run_id, "ok", {"action": "accept"})
        elif run.conversations["talk"].turns < 2:
            said = {"role": "agent", "speakerId": "host:ada", "content": "June"}
            await answer(host, run_id, "talk", said)
        else:
            await answer(host, run_id, "talk", {"operation": "close", "outcome": "June"})


def first_difference(before: list[Event], told: list[Event]) -> int | None:
    for number, (was, now) in enumerate(zip_longest(before, told)):
        if was is None or now is None or not is_same_event(was, now):
            return number
    return None


@pytest.mark.timeout(180)
async def test_a_long_run_is_forked_at_every_event(sqlite: Place) -> None:
    calls.clear()
    sqlite.knows(call)
    host = sqlite.host()
    source = await lived(host)
    before, whole = await log(host, source), await order(host, source)
    assert len(before) >= EVENTS
    begun_at = whole.index("moot.effect.started call")
    for from_seq in range(len(before) + 1):
        made = calls["effect"]
        run = await forked(host, source, from_seq)
        done = await live_on(host, run.run_id)
        assert done.status is Status.COMPLETED
        assert calls["effect"] - made == (from_seq <= begun_at)
        assert {"x": 1, "y": 7, "z": 3}.items() <= done.variables.items()
        assert [e.type for e in await log(host, run.run_id)].count("run.started") == 1
    assert await log(host, source) == before
    await sound(host)


@pytest.mark.timeout(180)
async def test_an_edit_is_the_first_difference_wherever_it_is_made(sqlite: Place) -> None:
    calls.clear()
    sqlite.knows(call)
    host = sqlite.host()
    source = await lived(host)
    before = await log(host, source)
    for from_seq in range(1, len(before)):
        run = await forked(host, source, from_seq, edit={"variables": {"probe": from_seq}})
        told = await log(host, run.run_id)
        place = run.inherited
        assert from_seq <= place <= from_seq + 12, "a decision has a few events at most"
        extra = [e.type for e in told[place:]].index("variable.changed")
        assert {e.type for e in told[place : place + extra]} <= {"moot.child.forked"}
        assert first_difference(before, told) == place
        assert payload_json(told[place + extra])["by"] == CHAIR.principal


async def test_a_fork_that_the_disk_refuses_leaves_nothing(place: Place) -> None:
    refuse = False

    class Refusing:
        def __init__(self, store: Any) -> None:
            self.inner = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def commit(self, batch: Batch) -> None:
            if refuse:
                raise StorageFailed("The disk refused the write; nothing of it was kept.")
            await self.inner.commit(batch)

    host = place.host(Refusing)
    source = await begun(host, chain(put("x", 1), put("y", 2)))
    length = (await ended(host, source)).next_sequence
    refuse = True
    with pytest.raises(StorageFailed):
        await forked(host, source, length - 3)
    refuse = False
    assert [run_id for _, run_id in await host.store.runs()] == [source]
    run = await forked(host, source, length - 3)
    assert (await ended(host, run.run_id)).status is Status.COMPLETED
    assert (await host.view(TENANT, source)).run.next_sequence == length
    await sound(host)


async def test_two_forks_at_once_are_two_runs(place: Place) -> None:
    host = place.host()
    source = await begun(host, chain(put("x", 1), node("ok", "core.approvalGate")))
    await until(host, source, waits)
    length = len(await log(host, source))
    runs = await asyncio.gather(*(forked(host, source, length) for _ in range(10)))
    assert len({run.run_id for run in runs}) == 10
    for run in runs:
        await answer(host, run.run_id, "ok", {"action": "accept"})
        assert (await ended(host, run.run_id)).status is Status.COMPLETED
    await sound(host)
