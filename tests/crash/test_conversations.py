"""kill -9 while councils talk: what was acknowledged was said once, in its place, for ever.

The same settings as in ``test_crash``.
"""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moot.core.events import Event, decode
from moot.core.state.run import FOLD_VERSION, Run, apply, fold
from moot.engine.derived_rows import inbox_rows
from moot.store.sqlite import SqliteStore
from tests.support.crash.clients import Caller
from tests.support.crash.kills import KILLS, PATIENCE, SEED, TEST_KEY, kill_once, verify
from tests.support.crash.speakers import MAIN, Approver, Chair, Speaker, councils, floor
from tests.support.event_payloads import payload_json
from tests.support.servers import ROOT, ServerProcess

NODES = ROOT / "tests" / "support" / "crash" / "nodes.py"

Turn = dict[str, Any]


@pytest.mark.timeout(300 + 10 * KILLS)
def test_a_turn_that_was_acknowledged_was_said_once_and_stays(
    server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    print(f"MOOT_CRASH_SEED={SEED} MOOT_CRASH_KILLS={KILLS}")
    chance = random.Random(SEED)
    host = server("--nodes", str(NODES), MOOT_BOOTSTRAP_KEY=TEST_KEY)
    for body in councils(str(tmp_path / "book.txt")):
        assert host.request("POST", "/v1/host/moot/workflows", body)[0] == 201
    main = floor(host.request("POST", "/v1/runs", {"workflowId": MAIN})[1]["runId"])
    floors = [main]
    speakers = [Speaker(host, f"s{n}", SEED + n, floors, named=n % 2 == 0) for n in range(4)]
    chair = Chair(host, "chair", SEED + 10, floors)
    approver = Approver(host, "approver", SEED + 11)
    callers: list[Caller] = [*speakers, chair, approver]
    for caller in callers:
        caller.start()
    for _ in range(KILLS):
        kill_once(host, chance)
    _dismiss(callers)
    _wait_until_only_people_are_awaited(host)
    chair.left_open.add(main)
    _open_or_not(host, chair, approver)
    assert host.stop() == 0
    logs = asyncio.run(_read(host.database))
    _said([*speakers, chair], logs)
    _closed(chair, logs)
    _approved(approver, logs)
    verify(host.database)
    _report(callers, logs)


def _dismiss(callers: list[Caller]) -> None:
    for caller in callers:
        caller.stopping.set()
    for caller in callers:
        caller.join(PATIENCE)
        assert not caller.is_alive()
        assert caller.trouble == []


def _wait_until_only_people_are_awaited(host: ServerProcess) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        _, answer, _ = host.request("GET", "/v1/host/moot/runs?status=pending,running,paused")
        if not answer["runs"]:
            return
        time.sleep(0.05)
    pytest.fail(f"these runs never went on: {answer['runs'][:5]}\n{host.log.read_text()[-3000:]}")


def _open_or_not(host: ServerProcess, chair: Chair, approver: Approver) -> None:
    """What a reader sees: a question is open exactly if nobody has answered it."""
    for path in chair.left_open | {floor(run_id, "gate") for run_id in approver.waiting}:
        run_id, node_id = _place(path)
        status, shown, _ = host.request("GET", f"/v1/runs/{run_id}")
        assert status == 200
        assert (shown["status"], shown["interrupt"]["nodeId"]) == ("waiting-approval", node_id)
    ended = {_place(path)[0] for path in chair.closed} - {_place(p)[0] for p in chair.left_open}
    for run_id in ended | set(approver.resolved):
        _, shown, _ = host.request("GET", f"/v1/runs/{run_id}")
        assert "interrupt" not in shown
    value = {"role": "user", "content": "last words"}
    for path in chair.left_open:  # it goes on where it stopped
        status, answer, _ = host.request("POST", path, {"resumeValue": value})
        assert status == 200, answer


def _place(path: str) -> tuple[str, str]:
    _, _, _, run_id, _, node_id = path.split("/")
    return run_id, node_id


async def _read(database: Path) -> dict[str, list[Event]]:
    """Every log, after everything that is derived from it was found to be so."""
    store = await SqliteStore.open(database, readonly=True)
    try:
        logs: dict[str, list[Event]] = {}
        asked = []
        for tenant, run_id in await store.runs():
            events = [decode(row) for row in await store.read(tenant, run_id, -1, 10_000_000)]
            assert [event.sequence for event in events] == list(range(len(events)))
            logs[run_id] = events
            run = fold(run_id, events)
            row = await store.find_run(tenant, run_id)
            assert row is not None
            assert (row.next_sequence, row.status) == (len(events), run.status.value)
            await _cached(store, run, events)
            _waits_as_its_log_says(run, events)
            asked += inbox_rows(run)
        listed, _ = await store.inbox(tenant, len(asked) + 1)
        assert sorted(row.item_id for row in listed) == sorted(row.item_id for row in asked)
        assert await store.work(2**62, 10) == []
        assert await store.verify() == []
        return logs
    finally:
        await store.aclose()


async def _cached(store: SqliteStore, run: Run, events: list[Event]) -> None:
    """A cached fold and the tail of the log come to the same as the whole log."""
    cached = await store.snapshot(run.tenant, run.run_id, FOLD_VERSION)
    if cached is not None:
        known = msgspec.json.decode(cached.state, type=Run)
        for event in events[cached.next_sequence :]:
            apply(known, event)
        assert msgspec.json.encode(known) == msgspec.json.encode(run)


def _waits_as_its_log_says(run: Run, events: list[Event]) -> None:
    asked: Counter[str] = Counter()
    for event in events:
        asked[str(event.node_id)] += event.type == "interrupt.requested"
        asked[str(event.node_id)] -= event.type == "interrupt.resolved"
    waiting = {node_id for node_id, count in asked.items() if count}
    assert set(run.interrupts) == waiting
    assert {talk.node_id for talk in run.conversations.values() if talk.open} == (
        waiting & set(run.conversations)
    )


def _said(speakers: list[Speaker], logs: dict[str, list[Event]]) -> None:
    """Each acknowledged turn once, at its index, and nothing that nobody has said."""
    transcripts = _transcripts(logs)
    said: dict[str, str] = {}
    for path, turns in transcripts.items():
        assert [turn["turnIndex"] for turn in turns] == list(range(1, len(turns) + 1)), path
        for turn in turns:
            if turn["role"] != "system" and turn["content"] != "last words":
                assert turn["content"] not in said, "said twice"
                said[turn["content"]] = path
    known: dict[str, str] = {}
    for speaker in speakers:
        assert speaker.acknowledged
        assert not speaker.refused & set(said)
        known |= speaker.unsure
        for content, (path, index) in speaker.acknowledged.items():
            known[content] = path
            assert transcripts[path][index - 1]["content"] == content
    assert said.items() <= known.items()


def _transcripts(logs: dict[str, list[Event]]) -> dict[str, list[Turn]]:
    found: dict[str, list[Turn]] = defaultdict(list)
    for run_id, events in logs.items():
        for event in events:
            path = floor(run_id, str(event.node_id))
            if event.type == "conversation.exchanged":
                found[path].append(payload_json(event)["turn"])
            elif event.type == "conversation.closed":
                found[path].append(payload_json(event)["finalTurn"])
    return found


def _closed(chair: Chair, logs: dict[str, list[Event]]) -> None:
    """A close that was acknowledged has happened, once; what nobody closed is open."""
    assert chair.closed
    outcomes: dict[str, list[Any]] = defaultdict(list)
    for run_id, events in logs.items():
        for event in events:
            if event.type == "conversation.closed":
                path = floor(run_id, str(event.node_id))
                outcomes[path].append(payload_json(event)["outcome"])
    assert outcomes == {path: [outcome] for path, outcome in chair.closed.items()}
    assert not set(outcomes) & chair.left_open


def _approved(approver: Approver, logs: dict[str, list[Event]]) -> None:
    """What was resolved has gone on to its end, with one answer."""
    assert approver.resolved
    for run_id, action in approver.resolved.items():
        resolved = [payload_json(event)["resumeValue"]["action"] for event in logs[run_id]
                    if event.type == "interrupt.resolved"]  # fmt: skip
        assert resolved == [action]
        assert logs[run_id][-1].type == f"run.{approver.ENDS[action]}"
    for run_id in approver.waiting:
        assert [event.type for event in logs[run_id]].count("interrupt.resolved") == 0


def _report(callers: list[Caller], logs: dict[str, list[Event]]) -> None:
    turns = sum(map(len, _transcripts(logs).values()))
    asked, lost = sum(c.asked for c in callers), sum(c.unanswered for c in callers)
    print(f"{len(logs)} runs, {turns} turns, {asked} requests, {lost} without an answer")
