"""The OpenAPI document: complete, readable, valid, and with examples that fit."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from moot.api.app import Router
from moot.api.host.openapi import encoded_openapi, read_reference
from moot.api.routes import ENDPOINTS
from moot.wire.discovery import Discovery
from moot.wire.json import JsonObject
from tests.support.api.caller import Api
from tests.support.servers import ROOT

DOCUMENT: JsonObject = msgspec.json.decode(encoded_openapi())
JSON = "application/json"


def operations() -> Iterator[tuple[str, JsonObject]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


OPERATIONS = dict(operations())


def answer_of(operation: JsonObject) -> JsonObject:
    """The content of the good answer, by its media type."""
    good = next(status for status in operation["responses"] if status.startswith("2"))
    return dict(operation["responses"][good].get("content", {}))


def contents_of(operation: JsonObject) -> Iterator[JsonObject]:
    """The JSON of the body and of the good answer."""
    for content in (operation.get("requestBody", {}).get("content", {}), answer_of(operation)):
        if JSON in content:
            yield content[JSON]


def test_the_reference_has_texts_for_every_route_and_no_other() -> None:
    rows = {row.operation: set(row.query) for row in ENDPOINTS}
    texts = read_reference().operations
    assert {name: set(text.query) for name, text in texts.items()} == rows


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_every_operation_has_its_own_readable_id() -> None:
    ids = Counter(operation["operationId"] for operation in OPERATIONS.values())
    assert [name for name, count in ids.items() if count > 1] == []
    assert [name for name in ids if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name)] == []


def test_every_schema_has_a_readable_name() -> None:
    names = DOCUMENT["components"]["schemas"]
    assert [name for name in names if not re.fullmatch(r"[A-Z][A-Za-z]+", name)] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_described(name: str) -> None:
    operation = OPERATIONS[name]
    [tag] = operation["tags"]
    assert tag in read_reference().tags
    assert len(operation["description"].split()) > 3
    assert operation["description"] != f"{operation['summary']}."
    assert all(parameter["description"] for parameter in operation["parameters"])


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_json_answer_has_a_schema_and_an_example(name: str) -> None:
    operation = OPERATIONS[name]
    if JSON in answer_of(operation):
        assert answer_of(operation)[JSON]["schema"] != {"type": "object"}
    assert all("example" in content for content in contents_of(operation))


@pytest.mark.parametrize("name", OPERATIONS)
def test_examples_fit_their_schemas(name: str) -> None:
    for content in contents_of(OPERATIONS[name]):
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        jsonschema_rs.validate(schema, content.get("example"))


def recorded() -> Iterator[tuple[str, int, Any]]:
    """Operation, status and body of the recorded answers that are JSON."""
    router = Router()
    for line in (ROOT / "tests" / "recorded" / "answers.jsonl").read_text().splitlines():
        answer = json.loads(line)
        method, _, path = answer["request"].partition(" ")
        found = router.find(path.partition("?")[0])
        is_json = answer["headers"].get("content-type") == JSON
        # a page of events has its events as texts there, because the order of their keys counts
        if is_json and found is not None and method in found[0] and "/events/poll" not in path:
            yield found[0][method].operation, answer["status"], answer["body"]


def test_recorded_answers_fit_their_schemas() -> None:
    checked = 0
    for name, status, body in recorded():
        content = OPERATIONS[name]["responses"][str(status)]["content"][JSON]
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        problems = [
            error.message for error in jsonschema_rs.validator_for(schema).iter_errors(body)
        ]
        assert not problems, f"{name} {status}: {problems[:3]}"
        checked += 1
    assert checked > 100


def test_an_answer_of_json_is_described_as_json() -> None:
    bare = {row.operation for row in ENDPOINTS if row.answer is None and row.media == JSON}
    empty = {row.operation for row in ENDPOINTS if row.status == 204}
    assert bare - empty == set()


def test_bodies_that_are_needed_are_marked() -> None:
    needed: dict[str, Any] = {
        name: operation["requestBody"]["required"]
        for name, operation in OPERATIONS.items()
        if "requestBody" in operation
    }
    assert needed["POST /v1/runs"] and needed["POST /v1/host/moot/keys"]
    assert not needed["POST /v1/runs/{run_id}/cancel"]


def test_the_discovery_document_fits_its_schema(api: Api) -> None:
    msgspec.json.decode(api.get("/.well-known/openwop").content, type=Discovery)


def test_every_guide_of_a_tag_is_served(api: Api) -> None:
    for tag in DOCUMENT["tags"]:
        answer = api.get(tag["externalDocs"]["url"])
        assert answer.status_code == 200
        assert answer.text.startswith("# ")
    assert api.get("/docs/none").status_code == 404
