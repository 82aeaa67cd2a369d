"""Runs whose definition was taken when nobody weighed its schemas: they are read, and they end."""

from typing import Any

import msgspec
import pytest

from moot.core.errors import BadRequest
from moot.core.state.status import Status
from moot.core.workflows.flow import definition_digest
from moot.engine.host import Host
from moot.store.protocol import Definition
from tests.support.engine.hosts import TENANT, Place, another, chain, delay, ended, node

DEFS = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 3} for i in range(24)}
BOMB = {"$defs": {**DEFS, "d24": {"type": "null"}}, "$ref": "#/$defs/d0"}

WRITE = {"channelName": "c", "reducer": "replace", "value": 1}
QUESTION = {"id": "q", "question": "?", "schema": BOMB}
OLD: dict[str, dict[str, Any]] = {
    "a channel": chain(
        delay(1),
        node("n", "core.channelWrite", config=WRITE),
        channels={"c": {"reducer": "replace", "schema": BOMB}},
    ),
    "an answer": chain(delay(1), node("n", "core.approvalGate", config={"resumeSchema": BOMB})),
    "a question": chain(
        delay(1), node("n", "core.clarificationGate", config={"questions": [QUESTION]})
    ),
    "a turn": chain(delay(1), node("n", "core.conversationGate", config={"schema": BOMB})),
    "an outcome": chain(
        delay(1), node("n", "core.conversationGate", config={"outcomeSchema": BOMB})
    ),
}


async def taken_long_ago(host: Host, definition: dict[str, Any]) -> str:
    body = msgspec.json.encode(definition)
    kept = Definition(
        tenant=TENANT,
        workflow_id=definition["id"],
        version=definition["version"],
        digest=definition_digest(body),
        body=body,
        created_at=0,
        source="api",
    )
    await host.store.put_definition(kept)
    return kept.digest


@pytest.mark.parametrize("definition", OLD.values(), ids=OLD)
async def test_a_run_that_resumes_with_a_bomb_fails_and_says_why(
    place: Place, definition: dict[str, Any]
) -> None:
    host = place.host()
    name = await taken_long_ago(host, definition)
    run_id = await another(host, await host.flows.by_digest(TENANT, name))
    host = await place.restart(host)
    run = await ended(host, run_id)
    assert run.status is Status.FAILED
    assert "subschemas would be applied to one place of a value" in str(run.error)


@pytest.mark.parametrize("definition", OLD.values(), ids=OLD)
async def test_no_run_begins_with_a_bomb(place: Place, definition: dict[str, Any]) -> None:
    host = place.host()
    await taken_long_ago(host, definition)
    with pytest.raises(BadRequest, match="subschemas"):
        await host.flows.newest(TENANT, definition["id"])
