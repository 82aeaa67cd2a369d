"""What the tests of questions and conversations share: gates, answers, and logs that stay."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx

from tests.support.api.caller import Api, definition

ACCEPT = {"action": "accept"}
WAITING = ("waiting-approval", "waiting-input", "waiting-external")
_numbers = itertools.count()


def gate(type_: str = "approvalGate", name: str = "gate", **config: Any) -> dict[str, Any]:
    return {"id": name, "typeId": f"core.{type_}", "config": config}


def approval(**config: Any) -> dict[str, Any]:
    return gate(**{"title": "Ship it?", **config})


def talk(**config: Any) -> dict[str, Any]:
    return gate("conversationGate", "convo", **config)


def council(*names: str, **config: Any) -> dict[str, Any]:
    return talk(participants=[{"agentId": name} for name in names], **config)


def begun(api: Api, *nodes: dict[str, Any], run: Any = None, **more: Any) -> str:
    """A run of a workflow of its own that has begun."""
    name = f"asking-{next(_numbers)}-{nodes[0]['id']}"
    api.register(definition(name, list(nodes), **more))
    return api.create(name, **(run or {}))


def asked(api: Api, *nodes: dict[str, Any], run: Any = None, **more: Any) -> str:
    """A run that waits for an answer to the first of these nodes."""
    run_id = begun(api, *nodes, run=run, **more)
    api.until(run_id, *WAITING)
    return run_id


def resolve(api: Api, run_id: str, value: Any, node: str = "gate", **more: Any) -> httpx.Response:
    return api.post(f"/v1/runs/{run_id}/interrupts/{node}", {"resumeValue": value}, **more)


def say(api: Api, run_id: str, content: Any = "hello", **turn: Any) -> httpx.Response:
    return resolve(api, run_id, {"content": content, **turn}, "convo")


def answered(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The details of the refusal that was expected."""
    assert (answer.status_code, answer.json()["error"]) == (status, code), answer.text
    return dict(answer.json().get("details", {}))


@contextmanager
def unchanged(api: Api, run_id: str) -> Iterator[None]:
    """A refusal changes nothing: not the log, not the status, not the inbox."""
    before = (api.events(run_id), api.read(run_id)["status"], mine(api, run_id))
    yield
    assert (api.events(run_id), api.read(run_id)["status"], mine(api, run_id)) == before


def mine(api: Api, run_id: str) -> list[dict[str, Any]]:
    """The rows of the inbox that are about this run."""
    items = api.get("/v1/host/moot/inbox", params={"limit": 1000}).json()["items"]
    return [item for item in items if item["runId"] == run_id]


def link(api: Api, run_id: str) -> str:
    """The path of the signed link to what the run waits for."""
    return str(api.read(run_id)["interrupt"]["callbackUrl"])


def of(api: Api, run_id: str, *types: str) -> list[dict[str, Any]]:
    """The payloads of the events of these types."""
    return [event["payload"] for event in api.events(run_id) if event["type"] in types]


def turns(api: Api, run_id: str) -> list[dict[str, Any]]:
    """Every turn of the conversation, in order, from the log."""
    types = ("conversation.opened", "conversation.exchanged", "conversation.closed")
    return [
        next(payload[key] for key in ("initialTurn", "turn", "finalTurn") if key in payload)
        for payload in of(api, run_id, *types)
    ]


def by_run(api: Api, run_id: str, body: Any) -> httpx.Response:
    return api.post(f"/v1/runs/{run_id}:resolveInterrupt", body)


def by_link(api: Api, path: str, value: Any) -> httpx.Response:
    return api.with_key(None).post(path, {"resumeValue": value})


def operate(api: Api, run_id: str, operation: str, **more: Any) -> httpx.Response:
    return resolve(api, run_id, {"operation": operation, **more}, "convo")


def close(api: Api, run_id: str, **more: Any) -> httpx.Response:
    return operate(api, run_id, "close", **more)
