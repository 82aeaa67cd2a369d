"""Runs to look back at: one with a worker, one that was answered, one in which people talk."""

import json
import urllib.request
from typing import Any

from tests.support.cli.commands import Cli

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


def ask(moot: Cli, method: str, path: str, body: Any = None) -> Any:
    """A call past the command line, which is quicker where that is not what is tested."""
    url, key = ((moot.folder / f"moot.db.{kind}").read_text().strip() for kind in ("url", "key"))
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(url + path, data, {"Authorization": f"Bearer {key}"})
    call.method = method
    with urllib.request.urlopen(call, timeout=30) as answer:
        found = answer.read()
    return json.loads(found) if answer.headers["content-type"] == "application/json" else found


def finished(moot: Cli, flow: str, **inputs: Any) -> str:
    """A run of the workflow that has ended; its id."""
    run_id = str(ask(moot, "POST", "/v1/runs", {"workflowId": flow, "inputs": inputs})["runId"])
    ask(moot, "GET", f"/v1/runs/{run_id}/events")  # until its end
    return run_id


def supervised(moot: Cli) -> str:
    """A supervisor's run, whose one worker has come back."""
    ask(moot, "POST", "/v1/host/moot/workflows", SUPERVISED)
    return finished(moot, "supervised")


def waiting(moot: Cli, flow: str) -> str:
    """A run that waits for a person, itself or by a child."""
    run_id = str(ask(moot, "POST", "/v1/runs", {"workflowId": flow})["runId"])
    stands_still(moot, run_id)
    return run_id


def stands_still(moot: Cli, run_id: str) -> None:
    """Until it has ended, or waits."""
    while (found := shown(moot, run_id))["status"] in ("pending", "running"):
        seen = found["metrics"]["eventCount"] - 1
        ask(moot, "GET", f"/v1/runs/{run_id}/events/poll?lastSequence={seen}&timeout=1")


def resolved(moot: Cli, run_id: str, node: str, value: Any) -> None:
    ask(moot, "POST", f"/v1/runs/{run_id}/interrupts/{node}", {"resumeValue": value})


def answered(moot: Cli, action: str, **more: Any) -> str:
    """A run that asked whether to ship, and was answered."""
    run_id = waiting(moot, "asks")
    resolved(moot, run_id, "gate", {"action": action, **more})
    ask(moot, "GET", f"/v1/runs/{run_id}/events")
    return run_id


def talked(moot: Cli, *turns: str) -> str:
    """A run in which a person has said these things, and may say more."""
    run_id = waiting(moot, "talks")
    for turn in turns:
        said = {"operation": "exchange", "turn": {"role": "user", "content": turn}}
        resolved(moot, run_id, "talk", said)
    return run_id


def events(moot: Cli, run_id: str) -> list[dict[str, Any]]:
    return list(ask(moot, "GET", f"/v1/runs/{run_id}/events/poll?timeout=0")["events"])


def shown(moot: Cli, run_id: str) -> dict[str, Any]:
    return dict(ask(moot, "GET", f"/v1/runs/{run_id}"))


def newest(moot: Cli) -> str:
    return str(ask(moot, "GET", "/v1/host/moot/runs?limit=1")["runs"][0]["runId"])


def replayed(moot: Cli, run_id: str, from_seq: int = 0) -> str:
    body = {"mode": "replay", "fromSeq": from_seq}
    return str(ask(moot, "POST", f"/v1/runs/{run_id}:fork", body)["runId"])


def worker_of(moot: Cli, run_id: str) -> str:
    [row] = ask(moot, "GET", f"/v1/host/moot/runs?parent={run_id}")["runs"]
    return str(row["runId"])


def place(moot: Cli, run_id: str, kind: str, **said: Any) -> int:
    """The number of the first event of this type, with this in its payload."""
    return next(
        int(event["sequence"])
        for event in events(moot, run_id)
        if event["type"] == kind and said.items() <= event["payload"].items()
    )


def forked(moot: Cli, *words: Any, **environment: str) -> dict[str, Any]:
    """What ``moot fork`` answers, once the fork has come to an end or waits."""
    done = moot("fork", *words, "--json", **environment)
    assert done.code == 0, done.err
    made: dict[str, Any] = json.loads(done.out)
    stands_still(moot, made["runId"])
    return made
