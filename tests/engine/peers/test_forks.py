"""Branches of runs with children on other hosts: each run has its own there."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from moot.core.commands import CancelRun
from moot.core.state.run import Run
from moot.core.state.status import Status
from moot.core.verify.walk import verify
from moot.engine.host import Host
from moot.engine.peers import remote_runs, watch
from moot.engine.replay.replay import replay_run
from tests.support.engine.branches import forked
from tests.support.engine.hosts import TENANT, Place, begun, ended, log, soon, sound, until
from tests.support.engine.peers import (
    DONE,
    StrangePeer,
    above,
    hand,
    knowing,
    led,
    said,
    strange_peer,
)
from tests.support.engine.replays import same

CREATE, CANCEL = ("POST", "/v1/runs"), ("POST", "/v1/runs/*/cancel")
FLOWS = [
    led(hand("lab/w"), DONE),
    led(hand("lab/w", "lab/v"), DONE, fanOutPolicy="parallel"),
    above(),
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_runs, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(remote_runs, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.01)


@pytest.fixture
async def lab() -> AsyncIterator[StrangePeer]:
    async with strange_peer() as found:
        yield found


def followed(run: Run) -> bool:
    return bool(run.abroad) and all(each.child for each in run.abroad.values())


def theirs(run: Run) -> set[str]:
    return {str(each.child) for each in run.abroad.values()}


async def branched(host: Host, source: str) -> Run:
    """A branch at the newest event, once it has its own children."""
    place = (await host.view(TENANT, source)).run.next_sequence
    fork = await forked(host, source, place)
    return await until(host, fork.run_id, followed)


async def cancelled(host: Host, run_id: str) -> None:
    await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))


async def verified(host: Host, run_id: str) -> None:
    head = await host.view(TENANT, run_id)
    assert verify(head.flow, TENANT, run_id, await log(host, run_id)) is None
    await sound(host)


@pytest.mark.parametrize("flow", FLOWS)
async def test_a_branch_asks_for_children_of_its_own(
    memory: Place, lab: StrangePeer, flow: dict[str, Any]
) -> None:
    host = knowing(memory, lab)
    source = await until(host, await begun(host, flow), followed)
    fork = await branched(host, source.run_id)
    again = await branched(host, fork.run_id)
    mine = [theirs(run) for run in (source, fork, again)]
    assert len(set.union(*mine)) == sum(map(len, mine)) == len(lab.runs)
    bodies = [each.body for each in lab.asked if (each.method, each.path) == CREATE]
    assert bodies[: len(mine[0])] * 3 == bodies
    await cancelled(host, source.run_id)
    await cancelled(host, again.run_id)
    unwanted = mine[0] | mine[2]
    await soon(lambda: all(lab.runs[each]["status"] == "cancelled" for each in unwanted))
    for name in mine[1]:
        assert lab.runs[name]["status"] == "running"
        lab.become(name, "completed")
    over = await ended(host, fork.run_id)
    assert over.status is Status.COMPLETED and over.variables == {"result": "far"}
    for run in (source, fork, again):
        await verified(host, run.run_id)


@pytest.mark.parametrize("flow", FLOWS)
async def test_a_child_that_was_not_there_yet_is_asked_for_under_another_name(
    memory: Place, lab: StrangePeer, flow: dict[str, Any]
) -> None:
    lab.says(*CREATE, said(503, {}))
    host = knowing(memory, lab)
    source = await until(host, await begun(host, flow), lambda run: bool(run.abroad))
    place = source.next_sequence
    fork = await forked(host, source.run_id, place)
    assert not set(source.abroad) & set(fork.abroad)
    lab.says(*CREATE, "proper")
    for run in (source, fork):
        await until(host, run.run_id, followed)
    assert len(lab.runs) == 2 * len(source.abroad)
    for name in lab.runs:
        lab.become(name, "completed")
    for run in (source, fork):
        assert (await ended(host, run.run_id)).status is Status.COMPLETED
        await verified(host, run.run_id)


async def test_a_branch_whose_child_cannot_begin_fails_alone(
    memory: Place, lab: StrangePeer
) -> None:
    host = knowing(memory, lab)
    source = await until(host, await begun(host, FLOWS[0]), followed)
    lab.says(*CREATE, said(403, {"error": "forbidden", "message": "No."}))
    fork = await forked(host, source.run_id, source.next_sequence)
    over = await ended(host, fork.run_id)
    assert over.error is not None and over.error.code == "peer_refused"
    assert not lab.count(*CANCEL) and lab.runs["far_0"]["status"] == "running"
    lab.become("far_0", "completed")
    assert (await ended(host, source.run_id)).status is Status.COMPLETED
    await verified(host, fork.run_id)


# -- replays ---------------------------------------------------------------------------------------


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
        assert copy.error is not None and copy.error.code == "replay_source_missing"
        assert copy.abroad == {}
        assert lab.runs["far_0"]["status"] == "running"
        await host.handle(TENANT, run_id, CancelRun(host.clock.millis()))
        await soon(lambda: lab.runs["far_0"]["status"] == "cancelled")
