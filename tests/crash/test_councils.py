"""kill -9 while agents sit in council: the server drives them on, and no answer is asked for twice.

``MOOT_CRASH_COUNCIL_KILLS`` says how often; the seed is that of ``test_crash``. The provider of the
models is in this process, outlives every server, and counts.
"""

import asyncio
import json
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.core.events import Event, decode
from moot.core.state.run import fold
from moot.store.sqlite import SqliteStore
from tests.support.crash.kills import PATIENCE, SEED, TEST_KEY, verify
from tests.support.event_payloads import payload_json
from tests.support.model_provider import Reply
from tests.support.provider_project import KEY, Call, Provider, project, provider, sensible
from tests.support.servers import ServerProcess

KILLS = int(os.environ.get("MOOT_CRASH_COUNCIL_KILLS", "10"))
#: councils under way at a time
AT_ONCE = 3
AGENTS = {
    "ada": "model: it",
    "bo": "model: other",
    "cy": "model: it\ntools: [look]",
    "mo": "model: other\nrole: moderator",
}
POLICIES: tuple[dict[str, Any], ...] = (
    {"mode": "round-robin", "rounds": 2, "vote": True},
    {"mode": "round-robin", "rounds": 2, "blind": True, "vote": True},
    {"mode": "raise-hand", "rounds": 1, "vote": True},
    {"mode": "moderated", "rounds": 2},
)
SERIAL = re.compile(r"#(\d+)")


#: a tool that must not be used twice for one call: each use is a line in a book
TOOLS = """
from pathlib import Path

from moot import tool


@tool
def look(at: int) -> int:
    with Path({book!r}).open("a") as book:
        book.write(f"{{at}}\\n")
    return at
"""


def answering(call: Call) -> Reply:
    """Cy uses its tool first, then it says what it thinks."""
    used = call.messages[-1]["role"] == "tool"
    if call.agent == "Cy" and call.task == "speak" and not used:
        return Reply(words=[], calls={"look": json.dumps({"at": call.number})}, finish="tool_calls")
    return sensible(call)


@pytest.mark.timeout(300 + 12 * KILLS)
def test_a_killed_council_goes_on_and_no_recorded_answer_is_asked_for_again(
    server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    print(f"MOOT_CRASH_SEED={SEED} MOOT_CRASH_COUNCIL_KILLS={KILLS}")
    chance = random.Random(SEED)
    with provider(answering) as models:
        project(tmp_path, models.url, AGENTS)
        book, tools = tmp_path / "book.txt", tmp_path / "tools.py"
        tools.write_text(TOOLS.format(book=str(book)))
        given = {"STAND_IN_KEY": KEY, "MOOT_TOOLS": str(tools), "MOOT_BOOTSTRAP_KEY": TEST_KEY}
        host = server(folder=tmp_path, **given)
        runs: dict[str, dict[str, Any]] = {}
        for _ in range(KILLS):
            _keep_busy(host, runs)
            _kill_at_work(host, models, chance)
        _wait_for_all(host, runs)
        assert host.stop() == 0
        logs = asyncio.run(_logs(host.database))
        verify(host.database)
        _check_turns(runs, logs)
        _check_calls(models, logs)
        _check_tools(book, logs)
    calls, turns = models.count, sum(len(_turns(log)) for log in logs.values())
    print(f"{KILLS} kills, {len(runs)} councils, {turns} turns, {calls} calls")


def _keep_busy(host: ServerProcess, runs: dict[str, dict[str, Any]]) -> None:
    """Whoever convenes goes away at once: nobody watches, nobody asks again."""
    _, answer, _ = host.request("GET", "/v1/host/moot/runs?status=completed&limit=500")
    done = {row["runId"] for row in answer["runs"]}
    for _ in range(AT_ONCE - len(set(runs) - done)):
        number = len(runs)
        policy = {**POLICIES[number % len(POLICIES)], "close": "moderator"}
        asked = {
            "question": f"Question {number}?", "participants": list(AGENTS), "moderator": "mo",
            "policy": policy,
        }  # fmt: skip
        status, answer, _ = host.request("POST", "/v1/host/moot/councils", asked)
        assert status == 201, answer
        runs[answer["runId"]] = policy


def _kill_at_work(host: ServerProcess, models: Provider, chance: random.Random) -> None:
    """A few calls later, and a moment more: before, during or after a commit."""
    wanted = models.count + chance.randrange(1, 8)
    deadline = time.monotonic() + PATIENCE
    while models.count < wanted and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(chance.random() * 0.03)
    host.kill()
    host.start()


def _wait_for_all(host: ServerProcess, runs: dict[str, dict[str, Any]]) -> None:
    deadline = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < deadline:
        _, answer, _ = host.request("GET", "/v1/host/moot/runs?status=completed&limit=500")
        left = set(runs) - {row["runId"] for row in answer["runs"]}
        if not left:
            return
        time.sleep(0.05)
    shown = [host.request("GET", f"/v1/host/moot/threads/{name}")[1] for name in sorted(left)[:2]]
    pytest.fail(f"these councils never ended: {json.dumps(shown)}\n{host.log.read_text()[-2000:]}")


async def _logs(database: Path) -> dict[str, list[Event]]:
    store = await SqliteStore.open(database, readonly=True)
    try:
        logs = {}
        for tenant, run_id in await store.runs():
            events = [decode(row) for row in await store.read(tenant, run_id, -1, 1_000_000)]
            assert [event.sequence for event in events] == list(range(len(events)))
            row = await store.find_run(tenant, run_id)
            assert row is not None and row.status == fold(run_id, events).status.value
            logs[run_id] = events
        return logs
    finally:
        await store.aclose()


def _turns(log: list[Event]) -> list[dict[str, Any]]:
    found = [payload_json(e)["turn"] for e in log if e.type == "conversation.exchanged"]
    return found + [payload_json(e)["finalTurn"] for e in log if e.type == "conversation.closed"]


def _check_turns(runs: dict[str, dict[str, Any]], logs: dict[str, list[Event]]) -> None:
    """Each member as often as its policy says, in its place, with words that nobody else had."""
    for run_id, policy in runs.items():
        turns = _turns(logs[run_id])
        assert [turn["turnIndex"] for turn in turns] == list(range(1, len(turns) + 1))
        assert [turn for turn in turns if turn["role"] == "system"] == []
        said = [turn["content"] for turn in turns[:-1]]
        assert len(set(said)) == len(said), "said twice"
        speakers = Counter(turn["from"] for turn in turns)
        members = speakers["host:ada"], speakers["host:bo"], speakers["host:cy"]
        if policy["mode"] == "moderated":
            assert sum(members) == 3 * policy["rounds"]
        else:
            assert members == (policy["rounds"],) * 3
        assert speakers["host:mo"] == 2  # what it proposes, and what was decided
        decision = payload_json(logs[run_id][-1])["outputs"]["outcome"]
        assert len(decision["votes"]) == (3 if policy.get("vote") else 0)


def _check_calls(models: Provider, logs: dict[str, list[Event]]) -> None:
    """Of the calls for one and the same answer, the recorded one is the last there was."""
    same: dict[str, list[int]] = defaultdict(list)
    for call in models.calls:
        same[call.identity].append(call.number)
    groups = {number: numbers for numbers in same.values() for number in numbers}
    recorded: list[int] = []
    for log in logs.values():
        started = {payload_json(e)["invocationId"] for e in log if e.type == "moot.effect.started"}
        finished = [payload_json(e) for e in log if e.type == "moot.effect.finished"]
        names = [payload["invocationId"] for payload in finished]
        assert len(set(names)) == len(names), "one effect ended twice"
        unknown = started - set(names)
        tools = {payload_json(e)["invocationId"] for e in log if e.type == "moot.effect.started"
                 and payload_json(e)["providerKey"].startswith("tool:")}  # fmt: skip
        assert unknown <= tools, "only a tool may be left without an end: it is not used again"
        asked = [each for each in finished if each["providerKey"].startswith("model:")]
        recorded += [_serial(payload["result"]) for payload in asked]
    assert len(set(recorded)) == len(recorded)
    for number in recorded:
        assert number == groups[number][-1], "asked again though the answer was on record"


def _check_tools(book: Path, logs: dict[str, list[Event]]) -> None:
    """Never twice for one call; a use that a kill has cut short is told to its agent as unknown."""
    used = book.read_text().split()
    assert len(set(used)) == len(used)
    returned = [
        payload_json(e) for log in logs.values() for e in log if e.type == "agent.toolReturned"
    ]
    well = [str(each["outcome"]) for each in returned if "outcome" in each]
    assert set(well) <= set(used)
    assert len(well) >= len(used) - KILLS


def _serial(result: dict[str, Any]) -> int:
    """The number that the provider has put into every answer."""
    for call in result.get("toolCalls", []):
        return int(json.loads(call["arguments"])["at"])
    found = SERIAL.search(result["text"])
    return int(found[1]) if found else int(json.loads(result["text"])["urgency"])
