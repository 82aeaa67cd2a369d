"""The example with agents, on a server that has neither a key nor a network."""

from collections.abc import Callable
from typing import Any

from tests.support.api.caller import Api
from tests.support.servers import ROOT

FOLDERS = {
    "MOOT_AGENTS": str(ROOT / "examples" / "agents"),
    "MOOT_WORKFLOWS": str(ROOT / "examples" / "flows"),
    "MOOT_DEMO_WPS": "0",
}


def test_a_supervisor_two_workers_and_a_writer_do_their_work_offline(
    host: Callable[..., Api],
) -> None:
    api = host(**FOLDERS)
    found = api.run("research-brief")
    assert found["status"] == "completed", found
    told: dict[str, Any] = found["variables"]
    assert told["sources"] and told["verdict"]
    children = [api.read(child["runId"]) for child in found["childRuns"]]
    assert [child["workflowId"] for child in children] == ["moot.ask", "moot.ask"]
    assert [child["agent"]["agentId"] for child in children] == ["host:finder", "host:checker"]
    kinds = [
        event["payload"]["decision"]["kind"]
        for event in api.events(found["runId"])
        if event["type"] == "runOrchestrator.decided"
    ]
    assert kinds == ["next-worker", "terminate"]
