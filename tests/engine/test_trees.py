"""Runs that start runs that start runs."""

from hosting import Place, begun, definition, ended, sub

from moot.core.starting import Limits
from moot.core.status import Status


async def test_a_tree_of_runs_is_bounded_in_breadth_too(memory: Place) -> None:
    host = memory.host(limits=Limits(tree=60))
    broad = definition(
        [sub("broad", f"s{n}", onChildFailure="absorb") for n in range(3)], id="broad"
    )
    run_id = await begun(host, broad)
    assert (await ended(host, run_id)).status is Status.COMPLETED
    assert len(await host.store.runs()) <= 60
