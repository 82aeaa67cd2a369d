"""Ten thousand damaged requests: never a 500, never another shape of error, nothing lost."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api, definition
from tests.support.api.request_generator import Call, Generator

NUMBER = int(os.environ.get("MOOT_FUZZ", "10000"))
SEED = int(os.environ.get("MOOT_FUZZ_SEED", "20261115"))
CONNECTIONS = 16
PATIENCE = 60

#: routes the document does not show
SEAMS = {
    "/v1/host/sample/test/reset": "post",
    "/v1/host/sample/test/capability-toggle": "post",
    "/v1/host/sample/test/runs/{run_id}/variables": "post",
    "/v1/host/sample/test/runs/{run_id}/events": "get",
    "/v1/host/sample/workflows": "post",
    "/v1/host/sample/test/idempotency/concurrent-claim": "post",
}


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


class Line:
    """One connection, opened again whenever the server closes it."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, call: Call) -> Answer:
        async with asyncio.timeout(PATIENCE):
            for last_try in (False, True):
                try:
                    return await self._ask(call)
                except (ConnectionError, asyncio.IncompleteReadError):
                    await self.close()  # a kept connection may end at any time, once
                    if last_try:
                        raise
        raise AssertionError

    async def _ask(self, call: Call) -> Answer:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place, limit=1 << 24)
        reader, writer = self._streams
        writer.write(call.encoded())
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split()[1])
        headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in head[1:] if line)}
        body = b""
        if call.method != "HEAD" and status not in (204, 304):
            body = await _body(reader, headers)
        if headers.get("connection") == "close" or ("Connection", "close") in call.headers:
            await self.close()
        return Answer(status, headers, body)

    async def close(self) -> None:
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            try:
                await writer.wait_closed()
            except ConnectionError:
                return


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers["content-length"]))
    pieces = []
    while size := int(await reader.readline(), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(pieces)


class Judge:
    """What must hold for every single answer."""

    def __init__(self, answers: AnswerChecks, own_ids: list[str]) -> None:
        self._answers, self._own_ids = answers, own_ids
        self.statuses: Counter[int] = Counter()

    def check(self, call: Call, answer: Answer) -> None:
        self.statuses[answer.status] += 1
        path = urlsplit(call.target).path
        media = answer.headers.get("content-type", "").partition(";")[0]
        if answer.status >= 500:
            said = json.loads(answer.body or b"{}")
            assert answer.status == 501, said
            assert call.method == "HEAD" or said["error"] == "capability_not_provided"
        if call.method != "HEAD":
            self._answers.answer(call.method, path, answer.status, media, answer.body)
        if call.foreign and any(name in call.target for name in self._own_ids):
            assert answer.status >= 400, "another tenant's run was reached"
        if call.foreign:
            told = [name.encode() for name in self._own_ids if name.encode() not in call.encoded()]
            assert not [name for name in told if name in answer.body], "another tenant was shown"
        assert "x-injected" not in answer.headers


async def fuzz(api: Api, calls: Iterator[Call], judge: Judge) -> None:
    place = urlsplit(api.url)
    assert place.hostname is not None
    assert place.port is not None

    async def work() -> None:
        line = Line(str(place.hostname), int(place.port or 0))
        try:
            for call in calls:
                try:
                    judge.check(call, await line.ask(call))
                except Exception as error:
                    raise AssertionError(f"{error!r} after\n{call.encoded()[:3000]!r}") from error
        finally:
            await line.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(work())


def prepared(api: Api) -> tuple[dict[str, str], dict[str, list[str]], dict[str, list[Any]]]:
    """Keys, ids that exist, and bodies that are good."""
    noop = definition("fuzz-noop", [{"id": "a", "typeId": "core.noop"}])
    emit = {
        "id": "emit", "typeId": "conformance.artifact.emit", "config": {"artifactType": "report"},
    }  # fmt: skip
    rich = definition(
        "fuzz-rich",
        [
            emit,
            {"id": "w", "typeId": "core.delay", "config": {"ms": 5}},
            {
                "id": "v",
                "typeId": "core.setVariable",
                "config": {"name": "x", "expression": "1 + 1"},
            },
            {
                "id": "c",
                "typeId": "core.channelWrite",
                "config": {"channelName": "c", "reducer": "append", "value": 1},
            },
        ],
        variables=[{"name": "x", "type": "number", "defaultValue": 1, "sensitive": True}],
        channels={"c": {"reducer": "append", "ttlMs": 5, "maxSize": 3}},
        configurableSchema={"type": "object"},
    )
    for flow in (noop, rich):
        api.register(flow)
    runs = [api.run(name)["runId"] for name in ("fuzz-noop", "fuzz-rich", "conformance-failure")]
    created = [e for e in api.events(runs[1]) if e["type"] == "artifact.created"]
    ids = {
        "run_id": [*runs, "nobody"],
        "artifact_id": [created[0]["payload"]["artifactId"]],
        "workflow_id": ["fuzz-noop", "conformance-noop"],
        "key_id": ["key_nobody"],
    }
    create = {
        "workflowId": "fuzz-noop", "inputs": {"x": 1}, "tags": ["a"], "metadata": {"a": {"b": 1}},
        "configurable": {"recursionLimit": 3, "temperature": 1}, "scopeId": "s",
        "callbackUrl": "https://example.com",
    }  # fmt: skip
    samples: dict[str, list[Any]] = {
        "/v1/runs": [create, {"workflowId": "fuzz-rich"}, {"workflowId": "conformance-identity"}],
        "/v1/runs:bulk-cancel": [{"runIds": runs, "reason": "x"}],
        "/v1/host/moot/workflows": [noop, rich],
        "/v1/host/moot/workflows:check": [noop, rich],
        "/v1/host/moot/keys": [{"name": "fuzz", "scopes": ["runs:read"], "tenant": "t"}],
        "/v1/host/sample/test/runs/{run_id}/variables": [{"variables": {"a": 1}}],
        "/v1/host/sample/workflows": [
            {
                "workflowId": "seamed",
                "nodes": [{"nodeId": "n", "typeId": "core.noop", "config": {}}],
            }
        ],
        "/v1/host/sample/test/idempotency/concurrent-claim": [{"executors": 3}],
    }
    assert api.key is not None
    keys = {
        "own": api.key,
        "foreign": api.new_key("f", tenant="f", scopes=["runs:read", "runs:cancel"]),
    }
    return keys, ids, samples


@pytest.mark.timeout(1800 if NUMBER > 20_000 else 900)
def test_damaged_requests_never_break_the_server(
    host: Callable[..., Any], answers: AnswerChecks
) -> None:
    api = host("--conformance", MOOT_BOOTSTRAP_KEY="hk_test_fuzz")
    keys, ids, samples = prepared(api)
    document = api.get("/v1/openapi.json").json()
    for path, method in SEAMS.items():
        document["paths"].setdefault(path, {})[method] = {"parameters": []}
    generator = Generator(document, keys, ids, samples, SEED)
    judge = Judge(answers, ids["run_id"][:-1])
    kept = {run_id: api.events(run_id) for run_id in ids["run_id"][:-1]}
    asyncio.run(fuzz(api, generator.calls(NUMBER), judge))

    assert sum(judge.statuses.values()) == NUMBER
    assert {200, 201, 400, 401, 403, 404, 405, 409} <= set(judge.statuses), judge.statuses
    assert judge.statuses[200] + judge.statuses[201] > NUMBER / 20, "hardly anything got through"
    assert api.run("fuzz-noop")["status"] == "completed"
    assert api.run("conformance-noop")["status"] == "completed"
    for run_id, events in kept.items():
        assert api.events(run_id)[: len(events)] == events
    assert api.server.stop() == 0
    log = api.server.log.read_text()
    assert "Traceback" not in log, log[:4000]
    verified = subprocess.run(
        [sys.executable, "-m", "moot.cli", "db", "verify", str(api.server.database)],
        capture_output=True,
        text=True,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_the_same_seed_makes_the_same_requests() -> None:
    document = {"components": {"schemas": {}}, "paths": {"/v1/runs": {"post": {"parameters": []}}}}

    def made(seed: int) -> list[bytes]:
        found = Generator(document, {"own": "k", "foreign": "f"}, {}, {}, seed)
        return [call.encoded() for call in found.calls(50)]

    assert made(1) == made(1) != made(2)
