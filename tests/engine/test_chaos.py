"""Random workflows on a host with too little memory, a disk that refuses, and a habit of dying."""

import asyncio
import os
import random
from typing import Any

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.catalogue import TERMINAL_TYPES
from moot.core.commands import CancelRun, PauseRun, ResumeRun, SetVariables
from moot.core.errors import MootError, StorageFailed, Unavailable
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.recovery import Recovery
from tests.support.engine.hosts import (
    TENANT,
    Place,
    Wrapped,
    another,
    definition,
    delay,
    edge,
    log,
    node,
    registered,
    sound,
    sub,
    variable,
)
from tests.support.event_payloads import payload_json

SEEDS = range(300 if os.environ.get("MOOT_LONG") == "1" else 8)
RULES = ("all_success", "any_success", "all_complete", "none_failed", "any_failed")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recovery, "pause_s", 0.005)


class Moody(Wrapped):
    """Refuses now and then, and takes its time."""

    def __init__(self, store: Any, chance: random.Random) -> None:
        super().__init__(store)
        self._chance = chance
        self.moody = True
        self._line = asyncio.Lock()

    async def commit(self, batch: Any) -> None:
        async with self._line:
            if self.moody:
                await asyncio.sleep(self._chance.choice([0, 0, 0.001]))
                if self._chance.random() < 0.05:
                    raise StorageFailed("The disk refused the write; nothing of it was kept.")
            await self.inner.commit(batch)

    async def read(self, *args: Any) -> Any:
        if self.moody and self._chance.random() < 0.03:
            raise StorageFailed("The disk refused to read.")
        return await self.inner.read(*args)


@node_function("acme.work")
async def work(ctx: NodeContext, key: str = "") -> dict[str, Any]:
    chance = random.Random(f"{ctx.run_id}{ctx.node_id}{ctx.attempt}")

    async def call(_: str) -> int:
        await asyncio.sleep(chance.choice([0, 0.001]))
        return chance.randrange(10)

    await asyncio.sleep(chance.choice([0, 0, 0.002]))
    await ctx.write("c", ctx.node_id, "append")
    if chance.random() < 0.3:
        await ctx.set_variable("v", ctx.node_id)
    found = await ctx.effect("outside", call)
    if chance.random() < 0.2:
        raise RuntimeError("bad luck")
    return {"found": found, "key": len(key)}


def body(chance: random.Random, name: str, children: list[str]) -> dict[str, Any]:
    nodes = []
    for number in range(chance.randint(1, 6)):
        here = f"n{number}"
        settings = {"maxRetries": chance.randint(0, 2), "retryDelayMs": chance.randint(0, 3)}
        made = chance.choice(
            [
                node(here),
                delay(chance.randint(0, 8), here),
                node(here, "acme.work", inputs={"key": variable("secret")}),
                node(here, "acme.work"),
                node(here, "core.fail", config={"retryable": True}),
                node(here, "core.setVariable", config={"name": "v", "value": number}),
                *(sub(child, here, onChildFailure="absorb") for child in children),
                *(
                    node(here, "moot.forEach", config={"workflowId": child, "items": [1, 2]})
                    for child in children
                ),
            ]
        )
        nodes.append({**made, "settings": settings})
    edges = [
        edge(a["id"], b["id"], chance.choice(RULES))
        for n, b in enumerate(nodes)
        for a in nodes[:n]
        if chance.random() < 0.4
    ]
    secret = [
        {"name": "secret", "type": "string", "sensitive": True, "defaultValue": "s3cr3t-hush"}
    ]
    return definition(nodes, edges, id=name, variables=secret)


async def meddle(host: Host, run_id: str, chance: random.Random) -> None:
    at = host.clock.millis()
    command = chance.choice(
        [
            PauseRun(at, "immediate"),
            PauseRun(at, "drain-current-node"),
            ResumeRun(at),
            ResumeRun(at),
            SetVariables({"v": chance.randrange(9)}, at),
            *([CancelRun(at)] if chance.random() < 0.2 else []),
        ]
    )
    try:
        await host.handle(TENANT, run_id, command)
    except MootError:
        return


async def finish(host: Host) -> None:
    """Whoever paused a run lets it go on, until all of them are over or none moves any more."""
    moved = before = 0
    while True:
        async with asyncio.timeout(30):  # a slow machine may take longer for all of them
            while moved == before:
                alive, moved = False, 0
                for _, run_id in await host.store.runs():
                    run = (await host.view(TENANT, run_id)).run
                    if run.status is Status.PAUSED:
                        await host.handle(TENANT, run_id, ResumeRun(host.clock.millis()))
                    alive = alive or not run.terminal
                    moved += run.next_sequence
                if not alive:
                    return
                await asyncio.sleep(0.01)
        before = moved


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_happens_every_run_comes_to_one_end(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    place.knows(work)
    options = {"heads": chance.choice([1, 2, 4096]), "activities": chance.choice([1, 2, 256])}
    host = place.host(lambda store: Moody(store, chance), **options)
    bodies = [
        body(chance, "leaf", []),
        body(chance, "middle", ["leaf"]),
        body(chance, "top", ["middle", "leaf"]),
    ]
    await registered(host, *bodies)
    runs: list[str] = []
    for _ in range(chance.randint(20, 50)):
        act = chance.random()
        if act < 0.35 or not runs:
            flow = await host.flows.newest(TENANT, chance.choice(["leaf", "middle", "top"]))
            try:
                runs.append(await another(host, flow))
            except Unavailable:
                continue
        elif act < 0.8:
            await meddle(host, chance.choice(runs), chance)
        elif act < 0.95:
            await asyncio.sleep(chance.choice([0, 0.002, 0.01]))
        else:
            await place.crash(host)
            host = place.host(lambda store: Moody(store, chance), **options)
            await host.recover()
    store: Any = host.store
    store.moody = False
    try:
        await finish(host)
    except TimeoutError:
        stuck = []
        for _, run_id in await host.store.runs():
            events = await log(host, run_id)
            if events[-1].type not in TERMINAL_TYPES:
                stuck.append((run_id, [(e.type, e.node_id) for e in events][-6:]))
        raise AssertionError(f"seed {seed}: stuck {stuck}") from None
    known = {name for _, name in await host.store.runs()}
    assert set(runs) <= known
    await sound(host)
    for name in known:
        for event in await log(host, name):
            assert "s3cr3t-hush" not in str(payload_json(event))
