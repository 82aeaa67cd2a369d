"""A disk that refuses at any one place: what is remembered and what the logs tell stay the same."""

import asyncio
from typing import Any

import pytest

from moot.core.errors import Unavailable
from moot.core.state.status import Status
from moot.engine.recovery import Recovery
from tests.support.engine.hosts import TENANT, Failing, Place, begun, chain, log, sound
from tests.support.engine.memory_nodes import remembering

COUNTED = (*Failing.COUNTED, "memory_revision", "notes", "note", "late_notes", "written")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host looks again after a second; here, after a hundredth."""
    monkeypatch.setattr(Recovery, "pause_s", 0.01)


async def story(memory: Any) -> None:
    one = await memory.put("one", memory_id="one", ref="desk")
    await memory.put("two", memory_id="two", ref="desk")
    assert await memory.delete("two", ref="desk")
    assert await memory.list("desk") == [one]
    assert await memory.get("one", ref="desk") == one


async def insist(ask: Any) -> Any:
    for _ in range(50):
        try:
            return await ask()
        except Unavailable:
            await asyncio.sleep(0.01)
    raise AssertionError("refused fifty times")


async def test_whichever_operation_fails_each_write_is_made_once(memory: Place) -> None:
    memory.knows(remembering)
    nth, told = 1, True
    while told:
        failing: list[Failing] = []

        def wrap(store: Any, nth: int = nth, failing: list[Failing] = failing) -> Failing:
            failing.append(Failing(store, nth, COUNTED))
            return failing[-1]

        memory.store = None
        await memory.open()
        host = memory.host(wrap)
        run_id = await insist(lambda host=host: begun(host, chain(remembering.scene(story))))
        async with asyncio.timeout(60):
            view = lambda host=host, run_id=run_id: host.view(TENANT, run_id)  # noqa: E731
            while not (run := (await insist(view)).run).terminal:
                await asyncio.sleep(0.005)
        told = failing[0].failed is not None
        failing[0].nth = 0
        assert run.status is Status.COMPLETED, f"{failing[0].failed}, operation {nth}: {run.error}"
        written = [e.sequence for e in await log(host, run_id) if e.type == "memory.written"]
        notes = await host.store.memory_rows_after(TENANT, "desk", 0, (run_id,))
        assert [note.sequence for note in notes] == written
        assert [note.memory_id for note in notes] == ["one", "two", "two"]
        await sound(host)
        await memory.crash(host)
        nth += 1
    assert nth > 15, "the story has that many operations"
