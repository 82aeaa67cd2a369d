"""Two hosts, one of which hands work to the other, and the workflows they do it with."""

from collections.abc import Callable
from typing import Any

from tests.support.api.caller import Api, definition

CHAIN = "core.workflowChain.event"
DONE = {"kind": "terminate", "reason": "goal-reached"}
GATE = {"id": "ask", "typeId": "core.approvalGate"}

Start = Callable[..., Api]


class Pair:
    """``near`` knows ``far`` as the peer ``lab``."""

    def __init__(self, host: Start, *arguments: str, **environment: str) -> None:
        self.far = host()
        key = self.far.new_key("near", scopes=["runs:create", "runs:read", "runs:cancel"])
        self.near = host(
            "--peer", f"lab={self.far.url}", *arguments, MOOT_PEER_LAB_KEY=key, **environment
        )


def host_id(api: Api) -> str:
    model = api.get("/.well-known/openwop").json()["multiAgent"]["executionModel"]
    return str(model["crossHostCausation"]["hostId"])


def hand(*workers: str, **more: Any) -> dict[str, Any]:
    return {"kind": "next-worker", "nextWorkerIds": list(workers), **more}


def led(*plan: Any, variables: Any = (), **config: Any) -> dict[str, Any]:
    """A supervisor with a plan, and the node that carries it out."""
    nodes = [
        {"id": "boss", "typeId": "core.orchestrator.supervisor", "config": {"plan": [*plan]}},
        {"id": "hands", "typeId": "core.dispatch", "config": config},
    ]
    known = [{"name": "result", "type": "string", "defaultValue": ""}, *variables]
    return definition("led", nodes, [("boss", "hands"), ("hands", "boss")], variables=known)


def worker(name: str, *nodes: Any, **more: Any) -> dict[str, Any]:
    variables = [
        {"name": "given", "type": "string", "defaultValue": "nothing"},
        {"name": "out", "type": "string", "defaultValue": f"of {name}"},
    ]
    steps = list(nodes) or [{"id": "w", "typeId": "core.noop"}]
    return definition(name, steps, variables=variables, **more)


def sub(workflow_id: str, **config: Any) -> dict[str, Any]:
    given = {"workflowId": workflow_id, **config}
    known = [{"name": "result", "type": "string", "defaultValue": ""}]
    node = {"id": "sub", "typeId": "core.subWorkflow", "config": given}
    return definition("above", [node], variables=known)


def chain(api: Api, run_id: str) -> list[dict[str, Any]]:
    return [event for event in api.events(run_id) if event["type"] == CHAIN]


def phases(api: Api, run_id: str) -> list[str]:
    return [event["payload"]["phase"] for event in chain(api, run_id)]


def away(api: Api, run_id: str) -> str:
    """The child of the run on the other host, once it is there."""
    after = -1
    while True:
        page = api.poll(run_id, after, 10)
        for event in page["events"]:
            said = event["payload"]
            if said.get("childWorkflowId", "").startswith("lab/"):
                return str(said["childRunId"])
        assert page["events"], "no child was begun"
        after = page["lastEventSeq"]
