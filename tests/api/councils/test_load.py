"""A council under load: many speak at once, and every word is kept once, in one order, by name."""

import asyncio
import itertools
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import processes
from tests.support.api.caller import definition
from tests.support.api.parallel_clients import Line
from tests.support.servers import ServerProcess, server_environment

KEY = "hk_test_council_0123456789"
AGENTS = ("host:ada", "host:bo", "host:cy")
PEOPLE = ("user:eve", "user:fay")
LINES_EACH = 10
TURNS_EACH = 200
TURNS = LINES_EACH * TURNS_EACH * (len(AGENTS) + len(PEOPLE))
RESOLVERS = 100
LINK = re.compile(rb'"(?:interruptToken|callbackUrl)":"[^"]*",?')


@pytest.fixture
def host(server: Callable[..., ServerProcess]) -> ServerProcess:
    return server(MOOT_BOOTSTRAP_KEY=KEY)


class Member:
    """Somebody with a key of its own, who speaks on many lines at once."""

    def __init__(self, host: ServerProcess, name: str) -> None:
        status, made, _ = host.request("POST", "/v1/host/moot/keys", {"name": name, "as": [name]})
        assert status == 201, made
        self.name, self.key, self.key_id = name, made["key"], made["id"]
        #: what was said -> the index that was acknowledged for it
        self.acknowledged: dict[str, int] = {}

    async def talk(self, url: str, path: str, line: int) -> None:
        async with Line(url, self.key) as connection:
            for number in range(TURNS_EACH):
                content = f"{self.name} on line {line}, point {number}"
                status, answer = await connection.post(path, {"resumeValue": self._turn(content)})
                assert status == 200, answer
                self.acknowledged[content] = answer["conversation"]["turnIndex"]

    def _turn(self, content: str) -> dict[str, str]:
        if self.name in AGENTS:
            return {"role": "agent", "speakerId": self.name, "content": content}
        return {"role": "user", "content": content}


def started(host: ServerProcess, node: dict[str, Any], **more: Any) -> str:
    status, answer, _ = host.request(
        "POST", "/v1/host/moot/workflows", definition(node["id"], [node], **more)
    )
    assert status == 201, answer
    status, answer, _ = host.request("POST", "/v1/runs", {"workflowId": node["id"]})
    assert status == 201, answer
    return str(answer["runId"])


def council(host: ServerProcess) -> str:
    members = [{"agentId": name} for name in AGENTS]
    gate = {"id": "council", "typeId": "core.conversationGate", "config": {"participants": members}}
    return started(host, gate, channels={"conversation": {"reducer": "message"}})


def sent(host: ServerProcess, path: str) -> bytes:
    """The answer as it comes over the wire."""
    call = urllib.request.Request(host.url + path, headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(call, timeout=30) as answer:
        return bytes(answer.read())


def pages(host: ServerProcess, run_id: str) -> Iterator[bytes]:
    """The whole log."""
    after = -1
    while True:
        page = sent(host, f"/v1/runs/{run_id}/events/poll?timeout=0&lastSequence={after}")
        if not (events := json.loads(page)["events"]):
            return
        yield page
        after = events[-1]["sequence"]


def log(host: ServerProcess, run_id: str) -> list[dict[str, Any]]:
    return [event for page in pages(host, run_id) for event in json.loads(page)["events"]]


def shown(host: ServerProcess, run_id: str) -> list[bytes]:
    """The log, the snapshot and the list, without the link that is fresh each time."""
    snapshot, links = LINK.subn(b"", sent(host, f"/v1/runs/{run_id}"))
    assert links == 2
    return [*pages(host, run_id), sent(host, "/v1/host/moot/runs"), snapshot]


def rebuild(host: ServerProcess) -> None:
    made = processes.run(
        "db", "rebuild", host.database, folder=host.folder, environment=server_environment()
    )
    assert made.code == 0, made.out + made.err


def test_ten_thousand_turns_of_fifty_lines_are_kept_once_each_in_one_order(
    host: ServerProcess,
) -> None:
    run_id = council(host)
    members = [Member(host, name) for name in (*AGENTS, *PEOPLE)]
    path = f"/v1/runs/{run_id}/interrupts/council"

    async def everybody() -> None:
        async with asyncio.TaskGroup() as group:
            for line, member in itertools.product(range(LINES_EACH), members):
                group.create_task(member.talk(host.url, path, line))

    asyncio.run(everybody())
    turns = [event["payload"]["turn"] for event in log(host, run_id)
             if event["type"] == "conversation.exchanged"]  # fmt: skip
    assert [turn["turnIndex"] for turn in turns] == list(range(1, TURNS + 1))
    for member in members:
        own = [turn for turn in turns if turn["from"] == member.name]
        assert {turn["via"] for turn in own} == {member.key_id}
        role = "agent" if member.name in AGENTS else "user"
        assert {turn["role"] for turn in own} == {role}
        assert {turn.get("speakerId") for turn in own} == {member.name if role == "agent" else None}
        assert {turn["content"]: turn["turnIndex"] for turn in own} == member.acknowledged
        assert len(own) == LINES_EACH * TURNS_EACH
        for line in range(LINES_EACH):  # who speaks twice is heard in that order
            indexes = [member.acknowledged[f"{member.name} on line {line}, point {number}"]
                       for number in range(TURNS_EACH)]  # fmt: skip
            assert indexes == sorted(indexes)
    _the_same_for_ever(host, run_id, turns)


def _the_same_for_ever(host: ServerProcess, run_id: str, turns: list[dict[str, Any]]) -> None:
    before = shown(host, run_id)
    messages = json.loads(sent(host, f"/v1/runs/{run_id}"))["channels"]["conversation"]
    assert [message["content"] for message in messages[1:]] == [turn["content"] for turn in turns]
    host.restart()
    assert shown(host, run_id) == before
    assert host.stop() == 0
    rebuild(host)
    host.start()
    assert shown(host, run_id) == before
    path = f"/v1/runs/{run_id}/interrupts/council"
    value = {"operation": "close", "outcome": "agreed"}
    status, answer, _ = host.request("POST", path, {"resumeValue": value})
    assert (status, answer["status"]) == (200, "completed"), answer
    assert answer["conversation"]["turnIndex"] == TURNS + 1


def test_of_a_hundred_who_answer_at_once_one_wins_and_the_others_learn_who(
    host: ServerProcess,
) -> None:
    run_id = started(host, {"id": "gate", "typeId": "core.approvalGate"})
    members = [Member(host, f"user:{number}") for number in range(RESOLVERS)]
    path = f"/v1/runs/{run_id}/interrupts/gate"

    async def race() -> list[tuple[int, Any]]:
        ready = asyncio.Barrier(RESOLVERS)

        async def resolve(number: int) -> tuple[int, Any]:
            action = "accept" if number % 2 else "reject"
            async with Line(host.url, members[number].key) as connection:
                await ready.wait()
                return await connection.post(path, {"resumeValue": {"action": action}})

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(resolve(number)) for number in range(RESOLVERS)]
        return [task.result() for task in tasks]

    answers = asyncio.run(race())
    winners = [number for number, (status, _) in enumerate(answers) if status == 200]
    assert len(winners) == 1, answers
    winner = members[winners[0]].key_id
    lost = [answer for status, answer in answers if status == 409]
    assert len(lost) == RESOLVERS - 1
    assert {answer["error"] for answer in lost} == {"interrupt_already_resolved"}
    assert {answer["details"]["resolvedBy"] for answer in lost} == {winner}
    assert {answer["details"]["action"] for answer in lost} == {
        "accept" if winners[0] % 2 else "reject"
    }
    resolved = [event for event in log(host, run_id) if event["type"] == "interrupt.resolved"]
    assert [event["payload"]["resolvedBy"] for event in resolved] == [winner]
