"""What was found by looking hard: acknowledgement, secrets, snapshots, recovery."""

import asyncio
from typing import Any

import pytest

from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.errors import StorageFailed
from moot.core.state.run import FOLD_VERSION
from moot.core.state.status import Status
from moot.core.workflows.channels import ChannelRule, check_write
from moot.core.workflows.node_types import Artifact, Completed, NodeCall, NodeKind, NodeType
from moot.engine import transaction
from moot.store.protocol import Receipt
from tests.support.engine.hosts import (
    TENANT,
    Gated,
    Place,
    another,
    begun,
    chain,
    definition,
    delay,
    ended,
    log,
    node,
    registered,
    soon,
    sub,
    variable,
)
from tests.support.event_payloads import payload_json

SECRET = "the-very-secret-word"


async def test_a_repeat_is_acknowledged_no_sooner_than_what_it_repeats(memory: Place) -> None:
    gated: list[Gated] = []

    def wrap(store: Any) -> Any:
        gated.append(Gated(store))
        return gated[0]

    host = memory.host(wrap)
    run_id = await begun(host, definition([delay(60_000)]))
    gated[0].gate.clear()
    at = host.clock.millis()
    first = asyncio.ensure_future(host.handle(TENANT, run_id, CancelRun(at)))
    await soon(lambda: gated[0].waiting == 1)
    second = asyncio.ensure_future(host.handle(TENANT, run_id, CancelRun(at)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not second.done()
    gated[0].gate.set()
    assert (await first).status is (await second).status is Status.CANCELLED


async def test_a_repeat_of_what_the_disk_refused_is_decided_again(memory: Place) -> None:
    gated: list[Gated] = []

    def wrap(store: Any) -> Any:
        gated.append(Gated(store))
        return gated[0]

    host = memory.host(wrap)
    run_id = await begun(host, definition([delay(60_000)]))
    gated[0].gate.clear()
    refused: list[Any] = []
    gated[0].refuse = lambda batch: not refused and (refused.append(batch) or True)
    at = host.clock.millis()
    first = asyncio.ensure_future(host.handle(TENANT, run_id, CancelRun(at)))
    await soon(lambda: gated[0].waiting == 1)
    second = asyncio.ensure_future(host.handle(TENANT, run_id, CancelRun(at)))
    await asyncio.sleep(0)
    gated[0].gate.set()
    with pytest.raises(StorageFailed):
        await first
    assert (await second).status is Status.CANCELLED
    assert (await log(host, run_id))[-1].type == "run.cancelled"


async def test_an_answer_tells_the_state_its_command_led_to(memory: Place) -> None:
    host = memory.host()
    run_id = await begun(host, definition([delay(60_000)]))
    seen: list[int] = []

    def note(run: Any, events: Any) -> Receipt | None:
        seen.append(run.paused_at)
        return None

    at = host.clock.millis()
    pause = host.handle(TENANT, run_id, PauseRun(at, "immediate"), note)
    resume = host.handle(TENANT, run_id, ResumeRun(at))
    await asyncio.gather(pause, resume)
    assert seen[0] >= at


async def test_a_secret_handed_to_a_child_stands_in_no_log(place: Place) -> None:
    host = place.host()
    child = definition(
        [node("echo", "core.identity", inputs={"word": variable("word")})], id="child"
    )
    parent = definition(
        [sub("child", inputMapping={"word": "password"})],
        variables=[{"name": "password", "type": "string", "sensitive": True}],
    )
    run_id = await begun(host, child, parent, inputs={"password": SECRET})
    assert (await ended(host, run_id)).status is Status.COMPLETED
    for tenant, name in await host.store.runs():
        for row in await host.store.read(tenant, name, -1, 1000):
            assert SECRET.encode() not in row


async def test_a_secret_does_not_leave_in_an_artifact(place: Place) -> None:
    def leak(call: NodeCall) -> Completed:
        artifact = Artifact(artifact_type="note", data={"word": call.variables["password"]})
        return Completed({}, artifacts=(artifact,))

    place.knows(NodeType(type_id="acme.leak", kind=NodeKind.INSTANT, instant=leak))
    host = place.host()
    flow = definition(
        [node("n", "acme.leak")],
        variables=[{"name": "password", "type": "string", "sensitive": True}],
    )
    run_id = await begun(host, flow, inputs={"password": SECRET})
    made = next(e for e in await log(host, run_id) if e.type == "artifact.created")
    body = await host.store.artifact(TENANT, run_id, payload_json(made)["artifactId"])
    assert body is not None and SECRET.encode() not in body


async def test_a_run_read_in_again_and_again_is_still_snapshotted(
    memory: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "SNAPSHOT_EVERY", 4)
    host = memory.host(heads=1)
    flow = await registered(host, chain(*[delay(0, f"w{n}") for n in range(6)]))
    other = await registered(host, definition([node("n")], id="other"))
    run_id = await another(host, flow)
    while not (await host.view(TENANT, run_id)).run.terminal:
        await another(host, other)  # pushes it out of memory
        await asyncio.sleep(0)
    assert await host.store.snapshot(TENANT, run_id, FOLD_VERSION) is not None


async def test_one_run_that_cannot_be_read_keeps_no_other_waiting(memory: Place) -> None:
    host = memory.host()
    flow = await registered(host, definition([delay(1, "w")]))
    names = [await another(host, flow) for _ in range(12)]
    await memory.crash(host)
    bad = memory.store._logs[names[0]]
    bad.events[-1] = b"not an event"
    fresh = memory.host()
    await fresh.recover()
    for run_id in names[1:]:
        assert (await ended(fresh, run_id)).status is Status.COMPLETED


def test_a_counter_stays_a_number() -> None:
    rule = ChannelRule("counter")
    assert check_write(rule, 1e308, 1e308) is not None
    assert check_write(rule, 10**400, 1.5) is not None
    assert check_write(rule, 1, 2) is None
