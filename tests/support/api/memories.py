"""What the tests of memory share: something to remember, and a look at it."""

from typing import Any

from tests.support.api.caller import Api, definition
from tests.support.api.questions import of

MEMORY = "/v1/host/moot/memory"


def remembered(api: Api, ref: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(MEMORY, params={"ref": ref, **query})
    assert answer.status_code == 200, answer.text
    assert answer.json()["ref"] == ref
    return list(answer.json()["entries"])


def fits(api: Api, entry: dict[str, Any]) -> None:
    api.answers.document("memory-entry", entry)


def kept(api: Api, ref: str, content: str, **config: Any) -> dict[str, Any]:
    """A run of a host under trial that remembers something."""
    agent = {"agentId": "host:ada", "memoryRef": ref}
    action = {"memoryAction": "write-then-read", "content": content, **config}
    node = {"id": "keep", "typeId": "core.identity", "config": action, "agent": agent}
    api.register(definition("keeps", [node], variables=[{"name": "memoryReadback",
                                                         "type": "object"}]))  # fmt: skip
    found = api.run("keeps")
    assert found["status"] == "completed", found
    return found


def check_wave(api: Api) -> None:
    """Workers that write at once: everything is there, one after the other."""
    kept(api, "wave", "first")
    plan = [{"kind": "next-worker", "nextWorkerIds": ["keeps"] * 4},
            {"kind": "terminate", "reason": "done"}]  # fmt: skip
    nodes = [
        {"id": "boss", "typeId": "core.orchestrator.supervisor", "config": {"plan": plan}},
        {"id": "hands", "typeId": "core.dispatch", "config": {"fanOutPolicy": "parallel"}},
    ]
    api.register(definition("wave", nodes, [("boss", "hands"), ("hands", "boss")]))
    run = api.run("wave")
    assert run["status"] == "completed"
    children = [said["childRunId"] for said in of(api, run["runId"], "node.dispatched")]
    found = remembered(api, "wave", limit=4)
    assert {entry["runId"] for entry in found} == set(children) and len(set(children)) == 4
    times = [entry["createdAt"] for entry in found]
    assert times == sorted(times, reverse=True)
