"""A replay of a run with children elsewhere says what was recorded, and asks nobody."""

import pytest

from moot.core.commands import CancelRun
from moot.engine.replay.replay import replay_run
from tests.support.engine.hosts import TENANT, Place, begun, ended, log, soon, until
from tests.support.engine.peers import DONE, above, hand, knowing, led, strange_peer
from tests.support.engine.replays import same


@pytest.mark.parametrize("flow", [
    led(hand("lab/w"), DONE),
    led(hand("lab/w", "lab/w"), hand("lab/w"), DONE, fanOutPolicy="parallel"),
    above(),
])  # fmt: skip
async def test_from_everywhere_it_is_the_same_and_nobody_is_asked(
    memory: Place, flow: dict[str, object]
) -> None:
    async with strange_peer() as lab:
        lab.first = "completed"
        host = knowing(memory, lab)
        run_id = await begun(host, flow)
        await ended(host, run_id)
        asked = len(lab.asked)
        for from_seq in range(len(await log(host, run_id)) + 1):
            await same(host, run_id, from_seq)
        assert len(lab.asked) == asked and not len(host.peers)


async def test_what_was_not_over_has_no_record_and_its_child_is_left_alone(memory: Place) -> None:
    async with strange_peer() as lab:
        host = knowing(memory, lab)
        run_id = await begun(host, led(hand("lab/w"), DONE))
        await until(host, run_id, lambda run: any(e.child for e in run.abroad.values()))
        copy = await replay_run(host, TENANT, run_id, 0)
        assert copy.error is not None and copy.error["code"] == "replay_source_missing"
        assert copy.abroad == {}
        assert lab.runs["far_0"]["status"] == "running"
        await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
        await soon(lambda: lab.runs["far_0"]["status"] == "cancelled")
