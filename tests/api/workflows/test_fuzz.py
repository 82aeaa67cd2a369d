"""Damaged workflows: refused with a sentence, or they fit the schema and their runs end."""

import asyncio
import copy
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api.http.test_fuzz import PATIENCE, Judge, Line
from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import TERMINAL, Api, definition
from tests.support.api.request_generator import NUMBERS, STRINGS, Call, anything

NUMBER = int(os.environ.get("MOOT_FUZZ", "10000")) // 10
SEED = int(os.environ.get("MOOT_FUZZ_SEED", "20261115"))
WORKERS = 12


def variable(name: str) -> dict[str, str]:
    return {"type": "variable", "variableName": name}


def expression(text: str) -> dict[str, str]:
    return {"type": "expression", "expression": text}


def flows() -> list[dict[str, Any]]:
    """Good ones that together use every node type and every part of a definition."""
    variables: list[dict[str, Any]] = [
        {"name": "x", "type": "number", "defaultValue": 2},
        {"name": "l", "type": "array", "defaultValue": [1, 2, 3]},
        {"name": "s", "type": "string", "defaultValue": "secret", "sensitive": True},
        {"name": "o", "type": "object"},
    ]
    branch = definition(
        "fuzz-branch",
        [
            {"id": "start", "typeId": "core.start"},
            {"id": "if", "typeId": "core.conditional", "config": {"expression": "variables.x > 1"}},
            {"id": "yes", "typeId": "core.identity", "inputs": {"a": variable("s")},
             "outputSensitivity": {"a": True}},
            {"id": "no", "typeId": "core.fail", "config": {"code": "c", "message": "m"},
             "settings": {"maxRetries": 1, "retryDelayMs": 1}},
            {"id": "par", "typeId": "core.parallel",
             "inputs": {"p": {"type": "static", "value": 1}}},
            {"id": "merge", "typeId": "core.merge", "config": {"mode": "list"}},
            {"id": "end", "typeId": "core.end",
             "inputs": {"m": {"type": "connection", "nodeId": "merge", "outputKey": "merged",
                              "optional": True}}},
        ],
        variables=variables,
    )  # fmt: skip
    branch["edges"] = [
        {"id": "1", "sourceNodeId": "start", "targetNodeId": "if"},
        {"id": "2", "sourceNodeId": "if", "targetNodeId": "yes", "sourceOutput": "true"},
        {"id": "3", "sourceNodeId": "if", "targetNodeId": "no", "sourceOutput": "false"},
        {"id": "4", "sourceNodeId": "yes", "targetNodeId": "par",
         "condition": {"type": "notEquals", "left": "output.a", "right": "b"}},
        {"id": "5", "sourceNodeId": "par", "targetNodeId": "merge", "triggerRule": "all_complete"},
        {"id": "6", "sourceNodeId": "no", "targetNodeId": "merge", "triggerRule": "all_complete"},
        {"id": "7", "sourceNodeId": "merge", "targetNodeId": "end",
         "condition": {"type": "expression", "expression": "size(output) > 0"}},
    ]  # fmt: skip
    state = definition(
        "fuzz-state",
        [
            {"id": "set", "typeId": "core.setVariable",
             "config": {"name": "x", "expression": "variables.x + 1.0"}},
            {"id": "get", "typeId": "core.getVariable", "config": {"name": "q", "default": 1}},
            {"id": "loop", "typeId": "core.loop",
             "config": {"items": [1, 2], "collect": "item", "set": {"x": "index"},
                        "maxIterations": 5}},
            {"id": "times", "typeId": "core.loop", "config": {"times": 2, "while": "index < 9"}},
            {"id": "chan", "typeId": "core.channelWrite",
             "config": {"channelName": "c", "reducer": "append", "value": {"v": 1}, "ttlMs": 5,
                        "maxSize": 2}},
            {"id": "vote", "typeId": "core.channelWrite",
             "config": {"channelName": "v", "reducer": "votes", "value": {"userId": "u"}}},
            {"id": "wait", "typeId": "core.delay", "config": {"ms": 1},
             "settings": {"timeoutMs": 5000}},
            {"id": "emit", "typeId": "conformance.artifact.emit",
             "config": {"artifactType": "t", "data": [1]}},
            {"id": "effect", "typeId": "core.conformance.side-effect"},
            {"id": "ai", "typeId": "core.ai.callPrompt", "config": {"promptId": "p"}},
        ],
        variables=variables,
        channels={
            "v": {"reducer": "votes", "schema": {"type": "object"}, "maxSize": 3},
            "n": {"reducer": "counter", "default": 1, "access": {"writers": ["x"]}},
        },
        settings={"timeout": 20_000, "maxRetries": 0},
        metadata={"tags": ["t"], "complianceConfig": {"maskingMode": "hash"}},
        configurableSchema={"type": "object", "properties": {"k": {"type": "string"}}},
    )  # fmt: skip
    family = definition(
        "fuzz-family",
        [
            {"id": "sub", "typeId": "core.subWorkflow",
             "config": {"workflowId": "fuzz-child", "inputMapping": {"a": "x"},
                        "outputMapping": {"x": "b"}, "onChildFailure": "absorb",
                        "propagateCancellation": True, "waitForCompletion": True}},
            {"id": "each", "typeId": "moot.forEach",
             "config": {"workflowId": "fuzz-child", "itemVariable": "a", "maxIterations": 4},
             "inputs": {"items": variable("l")}},
            {"id": "off", "typeId": "core.noop", "disabled": True},
            {"id": "id", "typeId": "core.identity", "inputs": {"e": expression("variables.l[0]")},
             "agent": {"agentId": "host:a", "name": "A", "modelClass": "chat", "version": "1"}},
        ],
        variables=variables,
        slug="family",
        createdAt="2026-01-01T00:00:00Z",
        groups=[{"id": "g", "name": "G", "nodeIds": ["sub"], "position": {"x": 0, "y": 0},
                 "size": {"width": 1, "height": 1}}],
        triggers=[{"id": "t", "type": "schedule", "config": {"a": 1}, "enabled": False}],
        metadata={"createdBy": "me", "updatedAt": "2026-01-01T00:00:00+01:00", "acme": [1]},
        defaults={"promptRefs": {"system": "prompt:a@1.0.0", "user": {"templateId": "b"}}},
        channels={
            "c": {"reducer": "append", "access": {"readers": ["*"], "writers": ["core.*", "id"]},
                  "compatibleWith": [1], "schemaVersion": 2},
        },
    )  # fmt: skip
    return [branch, state, family]


CHILD = definition(
    "fuzz-child",
    [{"id": "n", "typeId": "core.noop"}],
    variables=[
        {"name": "a", "type": "number", "defaultValue": 0},
        {"name": "b", "type": "number", "defaultValue": 1},
    ],
)

EXPRESSIONS = [
    "1", "variables", "variables.none", "inputs.x.y", "1/0", "'a' + 1", "[]", "{}", "true && 'a'",
    "size(variables.l)", "variables.l[9]", "has(variables.q)", "'a'.matches('(')", "1u", "b'x'",
    "timestamp('x')", "duration('1h')", "-9223372036854775808 / -1", "'\\u0000'", "nodes", "(",
    "variables.l.map(i, i * 2)", "9" * 400, "type(1)", "dyn(1)", "null", "double('NaN')", "1.0/0.0",
]  # fmt: skip


WORDS = [
    "append", "replace", "merge", "counter", "message", "feedback", "vendor.acme.odd", "list",
    "first", "absorb", "fuzz-child", "x", "l", "s", "c", "v", "core.noop", "core.fail", "mask",
    "omit", "passthrough", "static", "expression", "any_failed", "none_failed", "true", "false",
]  # fmt: skip
#: the parts of a node that a host reads when it runs
LIVELY = ("config", "inputs", "settings", "outputSensitivity")


class Breeder:
    """One good flow, changed in one or two places."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._good = flows()

    def flows(self, number: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for count in range(number):
            flow = copy.deepcopy(self._dice.choice(self._good))
            for _ in range(self._dice.choice([1, 1, 1, 2, 3])):
                self._change(flow)
            if isinstance(flow, dict) and self._dice.random() < 0.97:
                flow["id"] = f"fuzz-{count}"
            yield flow, self._inputs()

    def _change(self, value: Any) -> None:
        """Walks down to somewhere and puts something else there, mostly where values are."""
        dice = self._dice
        if dice.random() < 0.85 and isinstance(value.get("nodes"), list):
            nodes = [node for node in value["nodes"] if isinstance(node, dict)]
            parts = [node[key] for node in nodes for key in LIVELY if node.get(key)]
            parts += [value[key] for key in ("variables", "channels", "settings") if value.get(key)]
            parts = [part for part in parts if isinstance(part, (dict, list))]
            value = dice.choice(parts) if parts else value
        while True:
            places = list(value) if isinstance(value, dict) else list(range(len(value)))
            place = dice.choice(places)
            inner = value[place]
            if isinstance(inner, (dict, list)) and inner and dice.random() < 0.93:
                value = inner
                continue
            value[place] = self._other(inner)
            return

    def _other(self, old: Any) -> Any:
        """Mostly of the same type: what is not is refused early."""
        dice = self._dice
        if dice.random() < 0.2:
            return anything(dice)
        if isinstance(old, bool):
            return not old
        if isinstance(old, str):
            return dice.choice([*EXPRESSIONS, *STRINGS, old + "x", old.upper(), *WORDS])
        if isinstance(old, (int, float)):
            return dice.choice([*NUMBERS, -old, old + 1, 100_000])
        return dice.choice([[old, old], [], {}, [1] * 2000, {"v": old}])

    def _inputs(self) -> dict[str, Any]:
        dice = self._dice
        if dice.random() < 0.5:
            return {}
        return {name: anything(dice) for name in ("x", "l", "s", "o", "z") if dice.random() < 0.4}


class Runner:
    """Registers, runs and waits, all on one connection."""

    def __init__(self, line: Line, key: str, judge: Judge) -> None:
        self._line, self._key, self._judge = line, key, judge
        self.outcomes: Counter[str] = Counter()

    async def ask(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        encoded = b"" if body is None else json.dumps(body).encode("utf-8", "surrogatepass")
        call = Call(method, target, [("Authorization", f"Bearer {self._key}")], encoded, False)
        answer = await self._line.ask(call)
        self._judge.check(call, answer)
        return answer.status, json.loads(answer.body)

    async def live(self, flow: Any, inputs: dict[str, Any]) -> None:
        status, said = await self.ask("POST", "/v1/host/moot/workflows", flow)
        if status != 201:
            self.outcomes[f"refused {status}"] += 1
            return
        name = said["workflowId"]
        status, _ = await self.ask("GET", f"/v1/workflows/{name}")  # as the schema has it
        assert status == 200
        status, said = await self.ask("POST", "/v1/runs", {"workflowId": name, "inputs": inputs})
        if status != 201:
            self.outcomes[f"not run {status}"] += 1
            return
        self.outcomes[await self._end(said["runId"])] += 1

    async def _end(self, run_id: str) -> str:
        """How the run ended. One that sleeps on purpose is cancelled."""
        _, page = await self.ask("GET", f"/v1/runs/{run_id}/events/poll?timeout=0")
        after = page["lastEventSeq"]
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            _, found = await self.ask("GET", f"/v1/runs/{run_id}")
            if found["status"] in TERMINAL:
                return str(found["status"])
            waits = [node for node in found["nodeStates"].values() if "dueAt" in node]
            if waits and max(node["dueAt"] for node in waits) > found["startedAt"][:17] + "99":
                break  # a minute and more: somebody wrote a large number there
            _, page = await self.ask(
                "GET", f"/v1/runs/{run_id}/events/poll?timeout=1&lastSequence={after}"
            )
            after = page["lastEventSeq"]
        else:
            raise AssertionError(f"stuck: {found}")
        status, said = await self.ask("POST", f"/v1/runs/{run_id}/cancel")
        assert status == 200 and said["status"] in TERMINAL  # it may have ended by itself meanwhile
        return "slept, cancelled" if said["status"] == "cancelled" else str(said["status"])


@pytest.mark.timeout(1800 if NUMBER > 2000 else 900)
def test_damaged_workflows_are_refused_or_come_to_an_end(
    host: Callable[..., Any], answers: AnswerChecks
) -> None:
    api: Api = host("--conformance", MOOT_BOOTSTRAP_KEY="hk_test_flows")
    api.register(CHILD)
    for good in flows():
        api.register(good)
        assert api.run(good["id"])["status"] in ("completed", "failed")
    place = urlsplit(api.url)
    bred = Breeder(SEED).flows(NUMBER)
    judge = Judge(answers, [])
    outcomes: Counter[str] = Counter()

    async def work() -> None:
        line = Line(str(place.hostname), int(place.port or 0))
        runner = Runner(line, str(api.key), judge)
        try:
            for flow, inputs in bred:
                try:
                    await runner.live(flow, inputs)
                except Exception as error:
                    shown = json.dumps([flow, inputs])[:6000]
                    raise AssertionError(f"{error!r} after\n{shown}") from error
        finally:
            await line.close()
            outcomes.update(runner.outcomes)

    async def everyone() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work())

    asyncio.run(everyone())
    assert sum(outcomes.values()) == NUMBER
    assert outcomes["completed"] > NUMBER / 50
    assert outcomes["failed"] > NUMBER / 100
    assert api.run("fuzz-child")["status"] == "completed"
    assert api.server.stop() == 0
    log = api.server.log.read_text()
    assert "Traceback" not in log, log[:4000]
