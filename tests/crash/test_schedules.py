"""kill -9 while schedules turn: every slot comes to one thing, and every run has one slot.

``MOOT_CRASH_SCHEDULE_KILLS`` says how often (3), ``MOOT_CRASH_SEED`` makes the moments the same.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.core.events import decode, millis
from moot.store.protocol import RunFilter
from moot.store.records import DeliveryFilter
from moot.store.sqlite import SqliteStore
from moot.triggers.schedules.fire_rows import fire_from_row
from moot.triggers.schedules.records import (
    SCHEDULE_KIND,
    schedule_from_record,
    schedule_ledger_from_row,
)
from tests.support.crash.kills import PATIENCE, SEED, TEST_KEY, kill_once, verify
from tests.support.servers import ServerProcess

KILLS = int(os.environ.get("MOOT_CRASH_SCHEDULE_KILLS", "3"))
POLICIES = ("skip", "buffer-one", "buffer-all", "cancel-other", "allow")
TENANT = "default"


def flow(name: str, type_id: str, **config: Any) -> dict[str, Any]:
    node = {"id": "n", "typeId": type_id, "name": "n", "config": config, "inputs": {},
            "position": {"x": 0, "y": 0}}  # fmt: skip
    rest: dict[str, Any] = {"edges": [], "triggers": [], "variables": [], "metadata": {}}
    return {"id": name, "name": name, "version": "1.0", "nodes": [node], "settings": {}, **rest}


@pytest.mark.timeout(300 + 10 * KILLS)
def test_no_slot_is_lost_or_doubled_however_often_the_host_dies(
    server: Callable[..., ServerProcess],
) -> None:
    print(f"MOOT_CRASH_SEED={SEED} MOOT_CRASH_SCHEDULE_KILLS={KILLS}")
    chance = random.Random(SEED)
    host = server(MOOT_BOOTSTRAP_KEY=TEST_KEY)
    for body in (flow("quick", "core.noop"), flow("slow", "core.delay", ms=1500)):
        assert host.request("POST", "/v1/host/moot/workflows", body)[0] == 201
    for number, overlap in enumerate(POLICIES * 4):
        name = "slow" if number % 2 else "quick"
        body = {"workflowId": name, "kind": "interval", "intervalSeconds": 1, "overlap": overlap}
        assert host.request("POST", "/v1/host/moot/schedules", body)[0] == 201
    for _ in range(KILLS):
        kill_once(host, chance)
    wait_for_a_fire(host)
    assert host.stop() == 0
    asyncio.run(check(host.database))
    verify(host.database)


def wait_for_a_fire(host: ServerProcess) -> None:
    """It still turns."""
    deadline = time.monotonic() + PATIENCE
    before = host.request("GET", "/v1/host/moot/schedules")[1]["schedules"]
    while time.monotonic() < deadline:
        after = host.request("GET", "/v1/host/moot/schedules")[1]["schedules"]
        pairs = zip(before, after, strict=True)
        if sum(was.get("lastRunId") != now.get("lastRunId") for was, now in pairs) >= 4:
            return
        time.sleep(0.05)
    pytest.fail(host.log.read_text()[-3000:])


async def check(database: Path) -> None:
    store = await SqliteStore.open(database, readonly=True)
    try:
        claimed: list[str] = []
        for record in await store.records(TENANT, SCHEDULE_KIND):
            claimed += await check_one(store, record)
        runs = {run_id for _, run_id in await store.runs()}
        assert len(claimed) == len(set(claimed)) and set(claimed) == runs
        rows, _ = await store.list_runs(TENANT, RunFilter(), None, 1)
        assert rows, "nothing was ever started"
    finally:
        await store.aclose()


async def check_one(store: SqliteStore, record: Any) -> list[str]:
    """Every slot up to the last decided one is in exactly one row."""
    plan, ledger = (
        schedule_from_record(record),
        await store.ledger(TENANT, SCHEDULE_KIND, record.name),
    )
    assert ledger is not None
    where, cursor, found = DeliveryFilter(subscription=plan.subscription), None, []
    while True:
        page, cursor = await store.deliveries(TENANT, where, cursor, 1000)
        found += page
        if cursor is None:
            break
    fires = [fire_from_row(row) for row in found]
    decided = (
        schedule_ledger_from_row(ledger).decided.decided - millis(plan.spec.created_at)
    ) // 1000
    assert sum(fire.count for fire in fires) == decided
    slots = [fire.slot for fire in fires]
    assert len(slots) == len(set(slots))
    for row in found:
        if row.run_id is not None:
            first = decode((await store.read(TENANT, row.run_id, -1, 1))[0])
            assert first.causation_id == row.delivery_id
        else:
            assert row.state in ("waiting", "skipped", "missed")
    return [row.run_id for row in found if row.run_id is not None]
