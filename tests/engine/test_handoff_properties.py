"""Whatever the workers do: every handoff is told whole, and nothing flows that must not."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from moot.engine.replay.replay import replay_run
from tests.support.engine.handoffs import Plan, chains, check, lived, plans
from tests.support.engine.hosts import TENANT, Place


async def _tried(kind: str, plan: Plan, again: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(kind, Path(folder))
        await place.open()
        try:
            host, run, events = await lived(place, plan)
            children = {name: (await host.view(TENANT, name)).run for name in run.children}
            check(plan, run, events, children)
            if again:
                fork = await replay_run(host, TENANT, run.run_id, 0)
                told = await host.runs.log(await host.view(TENANT, fork.run_id))
                assert [event.type for event in told] == [event.type for event in events]
                assert fork.variables == run.variables, "merged in the recorded order"
                assert len(chains(told)) == len(chains(events))
        finally:
            await place.aclose()


@given(plans())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_plan_in_memory(plan: Plan) -> None:
    asyncio.run(_tried("memory", plan, again=True))


@given(plans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_plan_on_disk(plan: Plan) -> None:
    asyncio.run(_tried("sqlite", plan, again=False))
