"""kill -9 while items come in: each becomes one run, none is lost, what cannot be is listed.

``MOOT_CRASH_DELIVERY_KILLS`` says how often (6), ``MOOT_CRASH_SEED`` makes the moments the same.
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from moot.core.events import decode
from moot.store.records import DeliveryFilter
from moot.store.sqlite import SqliteStore
from tests.support.crash.clients import Caller, chain, node
from tests.support.crash.kills import PATIENCE, SEED, kill_once, verify
from tests.support.servers import ServerProcess

KILLS = int(os.environ.get("MOOT_CRASH_DELIVERY_KILLS", "6"))
CLIENTS = 3
QUEUES = "/v1/host/moot/queues"
#: items of the first are taken at once, of the second when somebody comes, of the third never
TAKEN, LATER, NEVER = "taken", "later", "never"


class Pusher(Caller):
    """Puts items in under keys of its own, and repeats itself."""

    def __init__(self, server: ServerProcess, name: str, seed: int) -> None:
        super().__init__(server, name, seed)
        #: (queue, key) -> the item and, where it was told, the run
        self.acknowledged: dict[tuple[str, str], tuple[str, str | None]] = {}

    def _once(self) -> None:
        queue = self._chance.choice([TAKEN, TAKEN, LATER, NEVER])
        key = f"{self.name}-{len(self.acknowledged)}"
        found = self._push(queue, key)
        self.acknowledged[queue, key] = found
        if self._chance.random() < 0.3:
            again = self._push(queue, key)
            if again[0] != found[0] or (None not in (again[1], found[1]) and again != found):
                self.trouble.append(f"{key}: {found} and {again}")
        time.sleep(self._chance.random() * 0.01)

    def _push(self, queue: str, key: str) -> tuple[str, str | None]:
        body = {"subject": key, "body": "x"}
        status, answer = self._ask("POST", f"{QUEUES}/{queue}/items", body, key)
        if status != 202:
            raise AssertionError(f"{status} {answer}")
        return answer["itemId"], answer.get("runId")


@pytest.mark.timeout(300 + 10 * KILLS)
def test_every_item_is_one_run_or_a_dead_letter(
    server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    print(f"MOOT_CRASH_SEED={SEED} MOOT_CRASH_DELIVERY_KILLS={KILLS}")
    chance = random.Random(SEED)
    host = server()
    host.request("POST", "/v1/host/moot/workflows", chain("takes", node("n")))
    picky = {**chain("picky", node("n")), "variables": [
        {"name": "missing", "type": "string", "required": True}]}  # fmt: skip
    host.request("POST", "/v1/host/moot/workflows", picky)
    bind(host, TAKEN, "takes")
    bind(host, NEVER, "picky")
    clients = [Pusher(host, f"p{n}", SEED + n) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    for number in range(KILLS):
        kill_once(host, chance)
        if number == KILLS // 2:
            bind(host, LATER, "takes")
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join(PATIENCE)
        assert not client.is_alive() and client.trouble == []
    settled(host)
    assert host.stop() == 0
    asyncio.run(check(host.database, clients))
    verify(host.database)


def bind(host: ServerProcess, queue: str, workflow: str) -> None:
    policy = {"maxAttempts": 2, "backoff": "none"}
    body = {"workflowId": workflow, "retryPolicy": policy}
    status, answer, _ = host.request("PUT", f"{QUEUES}/{queue}", body)
    assert status == 200, answer


def settled(host: ServerProcess) -> None:
    """Until nothing is owed: what never can be waits behind its subscription's end."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        _, answer, _ = host.request("GET", QUEUES)
        counts = {row["name"]: row["items"] for row in answer["queues"]}
        done = set(counts[TAKEN]) == set(counts[LATER]) == {"delivered"}
        if done and set(counts.get(NEVER, {})) <= {"dead", "waiting"}:
            return
        time.sleep(0.05)
    pytest.fail(f"items never came to rest: {counts}\n{host.log.read_text()[-3000:]}")


async def check(database: Path, clients: list[Pusher]) -> None:
    store = await SqliteStore.open(database, readonly=True)
    try:
        rows, cursor = [], None
        while True:
            page, cursor = await store.deliveries("default", DeliveryFilter(), cursor, 500)
            rows += page
            if cursor is None:
                break
        by_run = {row.run_id: row for row in rows if row.run_id is not None}
        runs = await store.runs()
        assert {run_id for _, run_id in runs} == set(by_run), "a run without its item"
        for tenant, run_id in runs:
            started = decode((await store.read(tenant, run_id, -1, 1))[0])
            assert started.causation_id == by_run[run_id].delivery_id
    finally:
        await store.aclose()
    by_id = {row.delivery_id: row for row in rows}
    assert len({(row.subscription, row.key) for row in rows}) == len(rows) == len(by_id)
    assert max(Counter(row.subject for row in rows).values()) == 1, "an item twice"
    told = 0
    for client in clients:
        for (queue, key), (item_id, run_id) in client.acknowledged.items():
            row = by_id[item_id]
            assert row.subject == key
            assert run_id in (None, row.run_id)
            assert row.state in (("dead", "waiting") if queue == NEVER else ("delivered",))
            told += 1
    print(f"{told} items acknowledged of {len(rows)}, {Counter(row.state for row in rows)}")
    assert any(row.state == "dead" for row in rows)
