"""kill -9 at random moments while clients write: nothing acknowledged is lost, nothing doubled.

``MOOT_CRASH_KILLS`` says how often (12), ``MOOT_CRASH_SEED`` makes the moments the same again.
"""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from moot.core.catalogue import TERMINAL_TYPES
from moot.core.events import Event, decode
from moot.core.state.run import Run, fold
from moot.store.sqlite import SqliteStore
from tests.support.crash.clients import ENDS, Client, workflows
from tests.support.crash.kills import KILLS, PATIENCE, SEED, TEST_KEY, kill_once, verify
from tests.support.event_payloads import payload_json
from tests.support.servers import ROOT, ServerProcess

CLIENTS = 4
NODES = ROOT / "tests" / "support" / "crash" / "nodes.py"


@pytest.mark.timeout(300 + 10 * KILLS)
def test_nothing_acknowledged_is_lost_and_nothing_is_doubled(
    server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    print(f"MOOT_CRASH_SEED={SEED} MOOT_CRASH_KILLS={KILLS}")
    chance = random.Random(SEED)
    book = tmp_path / "book.txt"
    book.touch()
    host = server("--conformance", "--nodes", str(NODES), MOOT_BOOTSTRAP_KEY=TEST_KEY)
    for body in workflows(str(book)):
        status, answer, _ = host.request("POST", "/v1/host/moot/workflows", body)
        assert status == 201, answer
    clients = [Client(host, f"c{n}", SEED + n) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    began = time.monotonic()
    for _ in range(KILLS):
        kill_once(host, chance)
    print(f"{KILLS} kills in {time.monotonic() - began:.1f} s")
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join(PATIENCE)
        assert not client.is_alive()
        assert client.trouble == []
    _wait_for_the_end(host)
    assert host.stop() == 0
    asyncio.run(_check(host.database, clients, book.read_text().split("\n")))
    verify(host.database)


def _wait_for_the_end(host: ServerProcess) -> None:
    """Every run the host knows of, also those whose clients were never answered."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        _, answer, _ = host.request("GET", "/v1/host/moot/runs?status=pending,running,paused")
        if not answer["runs"]:
            return
        time.sleep(0.05)
    pytest.fail(f"these runs never ended: {answer['runs'][:5]}\n{host.log.read_text()[-3000:]}")


async def _check(database: Path, clients: list[Client], book: list[str]) -> None:
    store = await SqliteStore.open(database, readonly=True)
    try:
        runs: dict[str, Run] = {}
        for tenant, run_id in await store.runs():
            events = [decode(row) for row in await store.read(tenant, run_id, -1, 100_000)]
            runs[run_id] = _whole(run_id, events)
            row = await store.find_run(tenant, run_id)
            assert row is not None and row.next_sequence == len(events)
            assert row.status == runs[run_id].status.value
            await _remembered(store, tenant, events)
        assert await store.work(2**62, 10) == []
        assert await store.verify() == []
    finally:
        await store.aclose()
    _acknowledged(clients, runs)
    _families(runs)
    _effects(runs, book)
    unanswered = sum(client.unanswered for client in clients)
    print(f"{len(runs)} runs, {Counter(run.status.value for run in runs.values())},"
          f" {sum(c.asked for c in clients)} requests, {unanswered} without an answer")  # fmt: skip


def _whole(run_id: str, events: list[Event]) -> Run:
    """Dense from 0, begun once, ended once and with its last event."""
    assert [event.sequence for event in events] == list(range(len(events)))
    types = [event.type for event in events]
    assert types.count("run.started") == 1 and types[0] == "run.started"
    assert [n for n, type_ in enumerate(types) if type_ in TERMINAL_TYPES] == [len(types) - 1]
    ended: Counter[str] = Counter()
    for event in events:
        if event.type in ("node.completed", "node.failed", "node.skipped", "node.cancelled"):
            ended[str(event.node_id)] += 1
    assert set(ended.values()) <= {1}, f"{run_id}: a node ended twice"
    return fold(run_id, events)


async def _remembered(store: SqliteStore, tenant: str, events: list[Event]) -> None:
    """An event and a row for every write, and no write twice."""
    run_id = events[0].run_id
    told = [event.sequence for event in events if event.type == "memory.written"]
    notes = await store.memory_rows_after(tenant, run_id, 0, (run_id,))
    assert [note.sequence for note in notes] == told
    assert [note.content for note in notes] == ["0", "1", "2"][: len(notes)]
    for event in events:
        if event.type == "node.completed" and event.node_id == "keep":
            assert payload_json(event)["outputs"] == {"seen": ["2", "1", "0"]}


def _acknowledged(clients: list[Client], runs: dict[str, Run]) -> None:
    """Every acknowledged run is there, under its key, and no key has two."""
    by_key = defaultdict(list)
    for run in runs.values():
        if run.parent_run is None:
            by_key[run.tags[0]].append(run.run_id)
    assert all(len(found) == 1 for found in by_key.values())
    for client in clients:
        assert client.acknowledged
        for key, (workflow, run_id) in client.acknowledged.items():
            assert by_key[key] == [run_id]
            run = runs[run_id]
            assert run.workflow_id == workflow
            if run_id in client.cancelled:
                assert run.status == "cancelled", "an acknowledged cancel is final"
            else:
                assert run.status in ENDS[workflow] | {"cancelled"}, run.error
    started = {key.rsplit("-", 1)[0] for key in by_key}
    assert started == {client.name for client in clients}


def _families(runs: dict[str, Run]) -> None:
    for run in runs.values():
        assert run.parent_run is None or run.parent_run in runs
        assert all(child in runs for child in run.children)
        if run.workflow_id == "parent" and run.status == "completed":
            assert list(run.children.values()) == ["completed"] * 3


def _effects(runs: dict[str, Run], book: list[str]) -> None:
    """What was paid was paid once; what completed was paid, what was noted is in the book."""
    lines = Counter(line for line in book if line)
    assert all(count == 1 for line, count in lines.items() if line.startswith("pay"))
    for run in runs.values():
        outputs = run.nodes["pay"].outputs if run.workflow_id == "pay" else None
        if outputs:
            assert lines[f"pay {outputs['paid']}"] == 1
        if run.workflow_id == "pay" and run.status == "failed":
            assert run.error is not None and run.error.code == "effect_outcome_unknown"
        if run.workflow_id == "note" and run.status == "completed":
            assert lines[f"note {(run.nodes['note'].outputs or {})['noted']}"] >= 1
