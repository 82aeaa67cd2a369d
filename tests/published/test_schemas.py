"""The net itself: what is wrong must be caught, or all other tests prove nothing."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.core.catalogue import FOREIGN_TYPES, REQUESTABLE_TYPES, check_event_types
from tests.api.workflows.test_workflows import OUTSIDE, outside
from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api
from tests.support.api.published import Published, Unfit
from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess

Damage = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def samples(api: Api) -> dict[str, Any]:
    run_id = api.run("conformance-multi-node", tags=["a"])["runId"]
    events = api.events(run_id)
    return {
        "snapshot": api.read(run_id),
        "event": events[0],
        "discovery": api.get("/.well-known/openwop").json(),
        "workflow": api.get("/v1/workflows/conformance-noop").json(),
        "bundle": api.get(f"/v1/runs/{run_id}/debug-bundle").json(),
        "error": api.get("/v1/runs/nobody").json(),
    }


DAMAGES: list[tuple[str, str, Damage]] = [
    ("snapshot", "unknown status", lambda it: it.update(status="asleep")),
    ("snapshot", "no workflow", lambda it: it.pop("workflowId")),
    ("snapshot", "time that is none", lambda it: it.update(startedAt="yesterday")),
    ("snapshot", "error without a message", lambda it: it.update(error={"code": "x"})),
    ("snapshot", "agent that is none (relative $ref)", lambda it: it.update(agent={"x": 1})),
    ("event", "negative sequence", lambda it: it.update(sequence=-1)),
    ("event", "reserved vendor type", lambda it: it.update(type="core.mine")),
    ("event", "payload without its workflow", lambda it: it["payload"].pop("workflowId")),
    ("event", "closed owner", lambda it: it["payload"]["owner"].update(email="a@b.c")),
    ("discovery", "closed limits", lambda it: it["limits"].update(mine=1)),
    ("discovery", "no limits", lambda it: it.pop("limits")),
    ("workflow", "unknown field", lambda it: it.update(mine=1)),
    ("workflow", "node without a type", lambda it: it["nodes"][0].pop("typeId")),
    ("bundle", "unknown mode", lambda it: it.update(redactionMode="blur")),
    ("bundle", "wrong count", lambda it: it["metrics"].update(eventCount=99)),
    ("bundle", "broken event", lambda it: it["events"][0].pop("eventId")),
    ("error", "extra key", lambda it: it.update(requestId="x")),
    ("error", "empty message", lambda it: it.update(message="")),
]
IDS = [f"{kind}-{what}" for kind, what, _ in DAMAGES]


@pytest.mark.parametrize(("kind", "what", "damage"), DAMAGES, ids=IDS)
def test_damage_is_caught(
    kind: str, what: str, damage: Damage, samples: dict[str, Any], published: Published
) -> None:
    published.check(kind, samples[kind])
    broken = copy.deepcopy(samples[kind])
    damage(broken)
    with pytest.raises((Unfit, AssertionError)):
        published.check(kind, broken)


def test_an_error_in_another_form_is_caught(published: Published) -> None:
    with pytest.raises(AssertionError):
        AnswerChecks(published).answer("GET", "/x", 500, "text/plain", b"Internal Server Error")
    with pytest.raises(AssertionError):
        AnswerChecks().answer("GET", "/x", 404, "application/json", b'{"error":"x"}')


def test_every_type_of_the_protocol_can_be_asked_for(openwop: Path) -> None:
    schema = json.loads((openwop / "schemas" / "run-event.schema.json").read_bytes())
    types = set(schema["$defs"]["RunEventType"]["enum"])
    check_event_types(sorted(types))
    assert types == FOREIGN_TYPES | (REQUESTABLE_TYPES & types)


def test_payloads_are_checked_by_type(published: Published) -> None:
    assert {"run.started", "node.dispatched", "channel.written"} <= published.payload_types


def test_a_definition_outside_the_schema_is_refused_by_the_host(published: Published) -> None:
    """tests/api/runs/test_runs.py sends them; here the schema refuses them, too."""
    for more in OUTSIDE:
        with pytest.raises(Unfit):
            published.workflow(outside(more))


def test_the_doctor_checks_the_discovery_document_against_its_schema(
    server: Callable[..., ServerProcess], openwop: Path
) -> None:
    done = Cli(server().folder)("doctor", MOOT_OPENWOP_DIR=str(openwop))
    assert "matches the published schema" in done.out
