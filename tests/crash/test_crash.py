"""A server that dies at any moment loses nothing it has acknowledged and does nothing twice.

``MOOT_CRASH_KILLS`` says how often it dies, ``MOOT_CRASH_SEED`` when; ``make crash`` is the long
form.
"""

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from crash_client import TERMINAL, TOKENS, Asked, Connection, create, work

from moot.store.sqlite import SqliteStore
from real_server import ServerProcess

KILLS = int(os.environ.get("MOOT_CRASH_KILLS") or 12)
SEED = os.environ.get("MOOT_CRASH_SEED") or "the-ides-of-march"
KEY = "hk_test_crash_0123456789"
CLIENTS = 6


@pytest.mark.timeout(max(600, 15 * KILLS))
@pytest.mark.xdist_group("crash")
async def test_a_server_killed_at_any_moment_keeps_what_it_acknowledged_and_repeats_nothing(
    server: Callable[..., ServerProcess], openwop: Path
) -> None:
    print(f"\nMOOT_CRASH_KILLS={KILLS} MOOT_CRASH_SEED={SEED}", flush=True)
    victim = server("--conformance", MOOT_OPENWOP_DIR=str(openwop), MOOT_BOOTSTRAP_KEY=KEY)
    asked = killing(victim, random.Random(SEED))
    logs = read_to_the_end(victim, asked)

    for given in asked:
        check_run(given, logs[given.run_id])
    connection = Connection(victim.port, KEY)
    try:
        rows = connection.runs()
    finally:
        connection.close()
    check_keys(asked, rows)
    check_children(victim, rows, logs)
    check_replays(victim, asked)

    victim.stop()
    store = await SqliteStore.open(str(victim.database), readonly=True)
    try:
        assert await store.verify() == []
    finally:
        await store.aclose()


def killing(victim: ServerProcess, rng: random.Random) -> list[Asked]:
    """Clients at work while the server dies again and again; everything they asked for."""
    enough = threading.Event()
    begun = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        seeds = [f"{SEED}-{number}" for number in range(CLIENTS)]
        clients = [pool.submit(work, victim.port, KEY, seed, enough) for seed in seeds]
        try:
            for number in range(1, KILLS + 1):
                if rng.random() < 0.25:  # once more before it is up: a start must bear it too
                    victim.kill()
                    victim.launch()
                    time.sleep(rng.uniform(0, 1))
                else:
                    time.sleep(rng.choice([0.02, 0.3, 1]) * rng.random())
                victim.kill()
                victim.start()
                assert not any(client.done() for client in clients), "a client has given up"
                if number % 20 == 0:
                    print(f"{number} kills in {time.monotonic() - begun:.0f} s", flush=True)
        finally:
            enough.set()
        asked = list(itertools.chain.from_iterable(client.result() for client in clients))
    again = sum(given.sent > 1 for given in asked)
    seen = sum(bool(given.seen) for given in asked)
    seconds = time.monotonic() - begun
    print(f"{len(asked)} runs, {again} sent more than once, {seen} looked at, {seconds:.0f} s")
    assert again, "no create was ever cut off: the kills prove nothing"
    return asked


def in_parallel(
    victim: ServerProcess, job: Callable[[Connection, Any], Any], items: list[Any]
) -> Iterator[tuple[Any, Any]]:
    """The results of a job for every item, by a few connections."""

    def lane(mine: list[Any]) -> list[Any]:
        connection = Connection(victim.port, KEY)
        try:
            return [job(connection, item) for item in mine]
        finally:
            connection.close()

    lanes = [items[number::CLIENTS] for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        for mine, results in zip(lanes, pool.map(lane, lanes), strict=True):
            yield from zip(mine, results, strict=True)


def read_to_the_end(victim: ServerProcess, asked: list[Asked]) -> dict[str, list[dict[str, Any]]]:
    run_ids = [given.run_id for given in asked]
    return dict(in_parallel(victim, Connection.log, run_ids))


def check_log(log: list[dict[str, Any]]) -> None:
    """Dense from 0, of one run, with one end, and that comes last."""
    shown = "\n".join(f"{event['timestamp']} {event['type']} {event['payload']}" for event in log)
    assert [event["sequence"] for event in log] == list(range(len(log))), shown
    assert len({event["runId"] for event in log}) == 1, shown
    ends = [event["type"] for event in log if event["type"] in TERMINAL]
    assert ends == ["run.completed"], shown
    assert log[-1]["type"] == "run.completed", shown
    for event_type in ("run.started", "node.completed"):
        per_node = Counter(event.get("nodeId") for event in log if event["type"] == event_type)
        assert per_node, shown
        assert set(per_node.values()) == {1}, shown


def check_run(given: Asked, log: list[dict[str, Any]]) -> None:
    check_log(log)
    assert log[: len(given.seen)] == given.seen, f"{given.run_id}: a reader was shown other events"
    if given.body["workflowId"] == "conformance-stream-text":
        chunks = [event["payload"] for event in log if event["type"] == "output.chunk"]
        text = "".join(TOKENS)
        said = "".join(chunk["chunk"] for chunk in chunks)
        assert said.endswith(text), log


def check_keys(asked: list[Asked], rows: list[dict[str, Any]]) -> None:
    """Every key has one run, and every run one key."""
    assert len({row["runId"] for row in rows}) == len(rows), "a run is listed twice"
    of_key = {row["scopeId"]: row["runId"] for row in rows if "parentRunId" not in row}
    top = sum("parentRunId" not in row for row in rows)
    assert of_key == {given.key: given.run_id for given in asked}
    assert top == len(asked), f"{top} runs for {len(asked)} keys"
    assert {row["status"] for row in rows} == {"completed"}


def check_children(
    victim: ServerProcess, rows: list[dict[str, Any]], logs: dict[str, list[dict[str, Any]]]
) -> None:
    """Each parent has one child, which has ended too."""
    parents = [row["runId"] for row in rows if row["workflowId"].endswith("-subworkflow-parent")]
    children = [row for row in rows if "parentRunId" in row]
    assert parents, "no run had a child"
    assert Counter(row["parentRunId"] for row in children) == Counter(parents)
    found = in_parallel(victim, Connection.log, [row["runId"] for row in children])
    for _, log in found:
        check_log(log)
    assert not {row["runId"] for row in children} & set(logs)


def check_replays(victim: ServerProcess, asked: list[Asked]) -> None:
    """A key that is sent once more still gets its first answer."""
    for given, run_id in in_parallel(victim, create, asked):
        assert run_id == given.run_id, f"{given.key} has a second run"
