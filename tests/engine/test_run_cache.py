"""Races that were met over the wire, made certain in one process."""

import asyncio
from typing import Any, cast

import pytest

from moot.core.state.run import Run
from moot.engine.head import Head
from moot.engine.run_cache import RunCache


class Slow(RunCache):
    """Reads every run in when the gate opens."""

    def __init__(self, gate: "asyncio.Future[None]") -> None:
        super().__init__(cast(Any, None), cast(Any, None), 10)
        self._gate = gate

    async def _load(self, tenant: str, run_id: str) -> Head:
        await self._gate
        return Head(Run(run_id, tenant=tenant), cast(Any, None))


@pytest.mark.timeout(60)
async def test_who_asks_in_the_moment_a_run_has_been_read_gets_it_too() -> None:
    """It once spun for ever, and with it the whole server."""
    gate = asyncio.get_running_loop().create_future()
    runs = Slow(gate)

    async def late() -> Head:
        await gate  # resumed right after the reading task, before anything it has called for
        return await runs.head("t", "r")

    async with asyncio.TaskGroup() as group:
        first = group.create_task(runs.head("t", "r"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second = group.create_task(late())
        await asyncio.sleep(0)
        gate.set_result(None)
    assert first.result() is second.result()
