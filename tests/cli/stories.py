"""Runs to look back at: one with a worker, one that was answered, one in which people talk."""

import json
from typing import Any

from cli_helpers import Cli, begun

BOSS = {"plan": [{"kind": "next-worker", "nextWorkerIds": ["hello"], "confidence": 0.9},
                 {"kind": "terminate", "reason": "goal-reached"}]}  # fmt: skip
SUPERVISED = {
    "id": "supervised", "name": "Supervised", "version": "1.0.0",
    "nodes": [
        {"id": "boss", "typeId": "core.orchestrator.supervisor", "name": "boss", "inputs": {},
         "position": {"x": 0, "y": 0}, "config": BOSS},
        {"id": "hands", "typeId": "core.dispatch", "name": "hands", "inputs": {},
         "position": {"x": 1, "y": 0}, "config": {"outputMapping": {"text": "greeting"}}}],
    "edges": [{"id": "e1", "sourceNodeId": "boss", "targetNodeId": "hands"},
              {"id": "e2", "sourceNodeId": "hands", "targetNodeId": "boss"}],
    "variables": [{"name": "text", "type": "string"}],
    "triggers": [], "metadata": {}, "settings": {},
}  # fmt: skip


def finished(moot: Cli, flow: str, *words: str) -> str:
    """A run of the workflow that has ended; its id."""
    return str(json.loads(moot("run", flow, "--json", *words).out)["runId"])


def supervised(moot: Cli) -> str:
    """A supervisor's run, whose one worker has come back."""
    body = json.dumps(SUPERVISED)
    assert moot("api", "POST", "/v1/host/moot/workflows", "-d", body).code == 0
    return finished(moot, "supervised")


def answered(moot: Cli, *words: str) -> str:
    """A run that asked whether to ship, and was answered."""
    run_id = begun(moot, "asks")
    assert moot(words[0], run_id, *words[1:]).code == 0
    assert moot("run", "tail", run_id, "--json").code in (0, 1)
    return run_id


def talked(moot: Cli, *turns: str) -> str:
    """A run in which a person has said these things, and may say more."""
    run_id = begun(moot, "talks")
    for turn in turns:
        assert moot("answer", run_id, turn).code == 0
    return run_id


def events(moot: Cli, run_id: str) -> list[dict[str, Any]]:
    shown = moot("run", "tail", run_id, "--json", "--no-follow").lines()
    return [json.loads(line) for line in shown]


def place(moot: Cli, run_id: str, kind: str, **said: Any) -> int:
    """The number of the first event of this type, with this in its payload."""
    return next(
        int(event["sequence"])
        for event in events(moot, run_id)
        if event["type"] == kind and said.items() <= event["payload"].items()
    )
