"""kill -9 on two hosts, one of which hands work to the other: each piece of work is done once.

The same settings as in ``test_crash``, with a fourth of its kills.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.core.events import decode
from moot.core.state.run import Run, fold
from moot.store.sqlite import SqliteStore
from tests.support.crash.clients import Caller, chain, delay, node
from tests.support.crash.kills import KILLS, PATIENCE, SEED, TEST_KEY, kill_once, verify
from tests.support.servers import ServerProcess

MINE = max(6, KILLS // 4)
LIVING = "pending,running,paused,waiting"
#: workflow -> how many children it has on the other host
CHILDREN = {"one": 1, "both": 2}


def result(name: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "defaultValue": f"of {name}"}


def workflows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Those of the host that asks, and those of the one that is asked."""
    back = {"outputMapping": {"near": "far"}}
    plan = [{"kind": "next-worker", "nextWorkerIds": ["lab/kid", "lab/kid"]}, {"kind": "terminate"}]
    one = chain("one", node("sub", "core.subWorkflow", config={"workflowId": "lab/kid", **back}))
    both = chain(
        "both",
        node("boss", "core.orchestrator.supervisor", config={"plan": plan}),
        node("hands", "core.dispatch", config={"fanOutPolicy": "parallel", **back}),
    )
    loop = {"id": "back", "sourceNodeId": "hands", "targetNodeId": "boss"}
    both["edges"] = [*both["edges"], loop]
    kid = {**chain("kid", delay("wait", 40), node("n")), "variables": [result("far")]}
    return [{**each, "variables": [result("near")]} for each in (one, both)], [kid]


class Asker(Caller):
    """Begins runs, and cancels one now and then."""

    def __init__(self, server: ServerProcess, name: str, seed: int) -> None:
        super().__init__(server, name, seed)
        self.begun: dict[str, str] = {}
        self.cancelled: set[str] = set()

    def _once(self) -> None:
        workflow = self._chance.choice(list(CHILDREN))
        key = f"{self.name}-{len(self.begun)}"
        run_id = self._begin(key, {"workflowId": workflow, "tags": [key]})
        self.begun[run_id] = workflow
        time.sleep(self._chance.random() * 0.05)
        if self._chance.random() < 0.2:
            self._ask("POST", f"/v1/runs/{run_id}/cancel", {}, f"{key}-c")
            self.cancelled.add(run_id)


@pytest.mark.timeout(300 + 10 * MINE)
def test_work_for_another_host_is_done_once_whoever_dies(
    server: Callable[..., ServerProcess],
) -> None:
    print(f"MOOT_CRASH_SEED={SEED}, {MINE} kills")
    chance = random.Random(SEED)
    far = server(MOOT_BOOTSTRAP_KEY=TEST_KEY)
    near = server(
        "--peer", f"lab={far.url}", MOOT_BOOTSTRAP_KEY=TEST_KEY, MOOT_PEER_LAB_KEY=TEST_KEY
    )
    for host, bodies in zip((near, far), workflows(), strict=True):
        for body in bodies:
            assert host.request("POST", "/v1/host/moot/workflows", body)[0] == 201
    askers = [Asker(near, f"a{n}", SEED + n) for n in range(2)]
    for asker in askers:
        asker.start()
    for _ in range(MINE):
        kill_once(chance.choice((near, far)), chance)
    for asker in askers:
        asker.stopping.set()
    for asker in askers:
        asker.join(PATIENCE)
        assert not asker.is_alive() and asker.trouble == []
    for host in (near, far):
        _wait_for_the_end(host)
    _wait_for_rest(near)
    assert near.stop() == 0 and far.stop() == 0
    parents, children = asyncio.run(_read(near.database)), asyncio.run(_read(far.database))
    _once_each(askers, parents, children)
    verify(near.database)
    verify(far.database)


def _wait_for_the_end(host: ServerProcess) -> None:
    deadline = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < deadline:
        _, answer, _ = host.request("GET", f"/v1/host/moot/runs?status={LIVING}")
        if not answer["runs"]:
            return
        time.sleep(0.05)
    pytest.fail(f"these runs never ended: {answer['runs'][:5]}\n{host.log.read_text()[-3000:]}")


def _wait_for_rest(host: ServerProcess) -> None:
    """Nothing is owed any more: what was cancelled here has been stopped there."""
    deadline = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < deadline:
        if not asyncio.run(_owed(host.database)):
            return
        time.sleep(0.05)
    pytest.fail(f"something is still owed\n{host.log.read_text()[-3000:]}")


async def _owed(database: Path) -> list[Any]:
    store = await SqliteStore.open(database, readonly=True)
    try:
        return await store.work(2**62, 10)
    finally:
        await store.aclose()


async def _read(database: Path) -> dict[str, Run]:
    store = await SqliteStore.open(database, readonly=True)
    try:
        assert await store.verify() == [] and await store.work(2**62, 10) == []
        return {
            run_id: fold(run_id, map(decode, await store.read(tenant, run_id, -1, 100_000)))
            for tenant, run_id in await store.runs()
        }
    finally:
        await store.aclose()


def _once_each(askers: list[Asker], parents: dict[str, Run], children: dict[str, Run]) -> None:
    """No event of a parent has begun two runs; who completed has the result of as many as it
    asked for."""
    origins = [run.origin for run in children.values() if run.origin is not None]
    assert len(origins) == len(children)
    causes = Counter(origin.event_id for origin in origins)
    assert set(causes.values()) <= {1}
    by_parent = Counter(origin.run_id for origin in origins)
    cancelled = set().union(*(asker.cancelled for asker in askers))
    acknowledged = {run_id for asker in askers for run_id in asker.begun}
    assert acknowledged <= set(parents)
    for run_id, run in parents.items():
        assert run.terminal and (run.status == "completed" or run_id in cancelled), run.error
        if run.status == "completed":
            assert run.variables == {"near": "of far"}
            assert by_parent[run_id] == CHILDREN[run.workflow_id]
            assert all(children[name].status == "completed" for name in run.children)
    ends = Counter(run.status.value for run in parents.values())
    print(f"{ends}, {len(children)} children, {sum(a.unanswered for a in askers)} unanswered")
    assert ends["completed"]
