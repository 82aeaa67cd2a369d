"""A disk that refuses now and then: the host goes on working, and memory never lies."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import CancelRun, PauseRun, ResumeRun, SetVariables
from moot.core.errors import MootError, RunAlreadyActive, StorageFailed, Unavailable
from moot.core.runs.start import StartRun
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.engine.host import Host
from moot.engine.recovery import Recovery
from tests.support.engine.hosts import (
    TENANT,
    Failing,
    Gated,
    Place,
    all_over,
    another,
    begun,
    chain,
    definition,
    delay,
    edge,
    ended,
    node,
    registered,
    soon,
    sound,
    sub,
    variable,
)  # fmt: skip


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host looks again after a second; here, after a hundredth."""
    monkeypatch.setattr(Recovery, "pause_s", 0.01)


KID = chain(
    delay(1), node("set", "core.setVariable", config={"name": "answer", "value": 42}),
    id="kid", variables=[{"name": "answer", "type": "number"}],
)  # fmt: skip


@node_function("acme.effect")
async def effectful(ctx: NodeContext) -> Any:
    async def call(_: str) -> str:
        return "made"

    await ctx.log("info", "about to")
    return await ctx.effect("outside", call)


def story() -> dict[str, Any]:
    nodes = [
        node("act", "acme.effect"),
        delay(2),
        sub("kid", outputMapping={"got": "answer"}),
        node("last", "core.identity", inputs={"got": variable("got")}),
    ]
    edges = [edge("act", "sub"), edge("wait", "last"), edge("sub", "last")]
    return definition(nodes, edges)


async def _story(host: Host) -> None:
    """One use of the host, told as a caller would: what is refused is asked for again."""
    flow = await insist(lambda: registered(host, KID, story()))
    run_id = await insist(lambda: another(host, flow))
    change = SetVariables({"v": 1}, host.clock.millis())
    changed = await insist(lambda: host.handle(TENANT, run_id, change))
    in_time = "v" in changed.variables
    run = await settled(host, run_id)
    assert run.status is Status.COMPLETED, run.error
    assert run.outputs == {"got": 42} and ("v" in run.variables) is in_time
    other = await insist(lambda: another(host, flow))
    await insist(lambda: host.handle(TENANT, other, PauseRun(host.clock.millis(), "immediate")))
    if not (await insist(lambda: host.view(TENANT, other))).run.terminal:
        await insist(lambda: host.handle(TENANT, other, ResumeRun(host.clock.millis())))
    await insist(lambda: host.handle(TENANT, other, CancelRun(host.clock.millis())))
    assert (await settled(host, other)).terminal


async def insist(ask: Any) -> Any:
    for _ in range(50):
        try:
            return await ask()
        except Unavailable:
            await asyncio.sleep(0.01)
        except MootError as refusal:
            return refusal
    raise AssertionError("refused fifty times")


async def settled(host: Host, run_id: str) -> Run:
    async with asyncio.timeout(60):
        while True:
            found = await insist(lambda: host.view(TENANT, run_id))
            if found.run.terminal:
                return found.run  # type: ignore[no-any-return]
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("what", ["commit", "everything"])
@pytest.mark.parametrize("block", range(4))
async def test_whichever_operation_fails_the_host_goes_on_and_memory_is_the_log(
    memory: Place, what: str, block: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Each operation of the story in turn, until the story has no more of them."""
    memory.knows(effectful)
    counted = ("commit",) if what == "commit" else Failing.COUNTED
    nth, told = block + 1, True
    while told:
        failing: list[Failing] = []

        def wrap(store: Any, nth: int = nth, failing: list[Failing] = failing) -> Failing:
            failing.append(Failing(store, nth, counted))
            return failing[-1]

        memory.store = None
        await memory.open()
        host = memory.host(wrap, heads=4096 if what == "commit" else 1)
        await asyncio.gather(*(_story(host) for _ in range(1 if what == "commit" else 3)))
        told = failing[0].failed is not None
        failing[0].nth = 0
        await all_over(host)
        await sound(host)
        assert not _unexpected(caplog), f"operation {nth} ({failing[0].failed})"
        await memory.crash(host)
        nth += 4
    assert nth > (15 if what == "commit" else 40), "the story has that many operations"


def _unexpected(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Only what waits for the disk may be logged; a failed background task is a bug."""
    found = [
        record.getMessage()
        for record in caplog.records
        if record.levelname == "ERROR" and not _of_the_disk(record)
    ]
    caplog.clear()
    return found


def _of_the_disk(record: Any) -> bool:
    return bool(record.exc_info) and isinstance(record.exc_info[1], Unavailable)


async def test_a_failing_file_leaves_the_host_working(sqlite: Place) -> None:
    """The same with the real store, for a few of the places."""
    sqlite.knows(effectful)
    for nth in (1, 2, 3, 5, 8, 13):
        host = sqlite.host(lambda store, nth=nth: Failing(store, nth))
        await _story(host)
        await all_over(host)
        await sound(host)
        await sqlite.crash(host)


# -- pipelined commits ---------------------------------------------------------------------------


@pytest.fixture
async def gated(memory: Place) -> AsyncIterator[tuple[Place, Host, Gated]]:
    memory.knows(effectful)
    host = memory.host(Gated)
    store: Any = host.store
    yield memory, host, store
    store.gate.set()


async def test_a_failed_commit_takes_those_behind_it_along_and_they_are_decided_again(
    gated: tuple[Place, Host, Gated],
) -> None:
    _, host, store = gated
    run_id = await begun(host, chain(delay(60_000)))
    store.gate.clear()
    writes = [
        asyncio.ensure_future(
            host.handle(TENANT, run_id, SetVariables({f"v{n}": n}, host.clock.millis()))
        )
        for n in range(5)
    ]
    await soon(lambda: store.waiting == 5)
    with refusing(store, at=1):
        store.gate.set()
        found = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(each) for each in found[:3]] == [Run, StorageFailed, Run]
    run = (await host.view(TENANT, run_id)).run
    assert run.variables == {"v0": 0, "v2": 2, "v3": 3, "v4": 4}
    await sound(host)


@contextmanager
def refusing(store: Gated, at: int) -> Iterator[None]:
    count = -1

    def refuse(_: Any) -> bool:
        nonlocal count
        count += 1
        return count == at

    store.refuse = refuse
    yield
    store.refuse = lambda _: False


async def test_nothing_is_shown_that_a_failed_commit_takes_back(
    gated: tuple[Place, Host, Gated],
) -> None:
    _, host, store = gated
    run_id = await begun(host, chain(delay(60_000)))
    store.gate.clear()
    writing = asyncio.ensure_future(
        host.handle(TENANT, run_id, SetVariables({"v": 1}, host.clock.millis()))
    )
    await soon(lambda: store.waiting == 1)
    viewing = asyncio.ensure_future(host.view(TENANT, run_id))
    await asyncio.sleep(0.01)
    assert not viewing.done(), "the reader waits for the disk"
    with refusing(store, at=0):
        store.gate.set()
        assert "v" not in (await viewing).run.variables
        with pytest.raises(StorageFailed):
            await writing


async def test_what_was_owed_is_done_though_a_later_command_failed(
    gated: tuple[Place, Host, Gated],
) -> None:
    """A cancel follows a node's start so closely that the start is only seen after it."""
    place, host, store = gated
    flow = await registered(host, chain(delay(60_000), node("act", "acme.effect")))
    run_id = await another(host, flow)
    store.gate.clear()
    place.clock.ahead_ms += 60_000
    host.timers.look()
    await soon(lambda: store.waiting == 1)  # the delay is over, the activity begins
    cancelling = asyncio.ensure_future(host.handle(TENANT, run_id, CancelRun(host.clock.millis())))
    await soon(lambda: store.waiting == 2)
    with refusing(store, at=1):
        store.gate.set()
        with pytest.raises(StorageFailed):
            await cancelling
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED
    await sound(host)


async def test_what_is_at_work_is_not_stopped_by_an_end_that_never_came_to_disk(
    gated: tuple[Place, Host, Gated],
) -> None:
    _, host, store = gated
    calls, go = [], asyncio.Event()

    @node_function("acme.worker")
    async def work(ctx: NodeContext) -> str:
        calls.append(ctx.attempt)
        await go.wait()
        await ctx.write("c", "still there", "append")
        return "done"

    host.flows.types = {**host.flows.types, "acme.worker": work.node_type}  # type: ignore[attr-defined]
    run_id = await begun(host, chain(node("n", "acme.worker")))
    await soon(lambda: calls)
    store.gate.clear()
    at = host.clock.millis()
    writing = asyncio.ensure_future(host.handle(TENANT, run_id, SetVariables({"v": 1}, at)))
    cancelling = asyncio.ensure_future(host.handle(TENANT, run_id, CancelRun(at)))
    await soon(lambda: store.waiting == 2)
    with refusing(store, at=1):
        store.gate.set()
        await writing
        with pytest.raises(StorageFailed):
            await cancelling
    go.set()
    run = await ended(host, run_id)
    assert run.outputs == {"output": "done"} and calls == [1]
    assert run.channels == {"c": ["still there"]}
    await sound(host)


async def test_who_gives_up_waiting_for_the_disk_takes_nothing_with_him(
    gated: tuple[Place, Host, Gated],
) -> None:
    """The caller of a create goes away; the run was written all the same and must go on."""
    _, host, store = gated
    flow = await registered(host, chain(delay(5), node("act", "acme.effect")))
    store.gate.clear()
    creating = asyncio.ensure_future(another(host, flow))
    await soon(lambda: store.waiting == 1)
    inner: Any = store.inner
    commit = inner.commit
    written = asyncio.Event()

    async def slowly(batch: Any) -> None:
        await commit(batch)
        written.set()
        await asyncio.sleep(0.05)

    inner.commit = slowly
    store.gate.set()
    await written.wait()
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    inner.commit = commit
    (run_id,) = [run for _, run in await host.store.runs()]
    assert (await ended(host, run_id)).status is Status.COMPLETED
    await sound(host)


async def test_a_create_that_failed_leaves_its_scope_free(
    gated: tuple[Place, Host, Gated],
) -> None:
    _, host, store = gated
    flow = await registered(host, chain(delay(60_000)))
    command = StartRun(tenant=TENANT, principal="p", at=0, limits=host.limits, scope_id="s")
    with refusing(store, at=0), pytest.raises(StorageFailed):
        await host.create(flow, command, dedup=True)
    await host.create(flow, command, dedup=True)
    with pytest.raises(RunAlreadyActive):
        await host.create(flow, command, dedup=True)


async def test_a_disk_that_refuses_for_long_is_asked_once_in_a_while_and_not_more_and_more(
    gated: tuple[Place, Host, Gated],
) -> None:
    _, host, store = gated
    body = chain(*(node(f"n{n}") for n in range(600)), delay(1), node("act", "acme.effect"))
    flow = await registered(host, body)
    asked = 0

    def refuse(batch: Any) -> bool:
        nonlocal asked
        asked += 1
        return True

    run_id = await another(host, flow)
    store.refuse = refuse
    await asyncio.sleep(0.4)
    assert asked <= 2 * 45, "every failure led to more than one try"
    assert len(host.recovery.waiting) <= 1
    store.refuse = lambda _: False
    assert (await ended(host, run_id)).status is Status.COMPLETED
    await sound(host)
