"""Build the OpenAPI document from the table of routes and ``reference.json``."""

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from moot import __version__
from moot.api.http.request import BODILESS, Endpoint, encode
from moot.wire.errors import BridgeError, Error

JSON = "application/json"
BEARER = {"type": "http", "scheme": "bearer", "description": "A key: `moot key create`."}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeated request with the same key gets the first answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}

#: id of a type -> its JSON schema.
Schemas = Mapping[int, Mapping[str, object]]


class TagReference(Struct, frozen=True):
    """A group of operations: its description and its guide in docs/."""

    description: str
    guide: str


class OperationReference(Struct, frozen=True, rename="camel"):
    """The texts about one operation."""

    #: A readable name for generated clients, such as ``createRun``.
    operation_id: str
    tag: str
    summary: str
    #: The effect of the operation and its refusals.
    description: str
    #: Query parameter -> description.
    query: dict[str, str] = {}
    #: Other statuses that the operation returns.
    errors: list[int] = []
    #: The name of the protocol's schema that the answer fits, where there is one.
    published: str | None = None
    #: Examples of the body and of the answer.
    example: tuple[Any, Any] = (None, None)


class ApiReference(Struct, frozen=True, rename="camel"):
    """The texts of the reference, by tag, path parameter, status and operation."""

    tags: dict[str, TagReference]
    path_parameters: dict[str, str]
    #: Errors that every route with a key may return.
    common_errors: dict[str, str]
    statuses: dict[int, str]
    operations: dict[str, OperationReference]


@functools.cache
def read_reference() -> ApiReference:
    stored = files("moot.api.host").joinpath("assets", "reference.json").read_bytes()
    return msgspec.json.decode(stored, type=ApiReference)


@functools.cache
def encoded_openapi() -> bytes:
    return encode(openapi_document())


def openapi_document() -> dict[str, object]:
    from moot.api.routes import ENDPOINTS

    reference = read_reference()
    types = [Error, BridgeError, *(each for row in ENDPOINTS for each in _types_of(row))]
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip(map(id, types), schemas, strict=True))
    paths: dict[str, dict[str, object]] = {}
    for endpoint in ENDPOINTS:
        operation = _operation(endpoint, reference.operations[endpoint.operation], by_type)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Moot",
            "version": __version__,
            "description": "A host of the OpenWOP v1 protocol, and what the protocol leaves to it.",
        },
        "tags": [
            {
                "name": name,
                "description": tag.description,
                "externalDocs": {"url": f"/docs/{tag.guide}"},
            }
            for name, tag in reference.tags.items()
        ],
        "paths": paths,
        "components": {"securitySchemes": {"key": BEARER}, "schemas": _readable(components)},
    }


def _readable(schema: Any) -> Any:
    """Return a schema without ``items: false``, which generators of clients cannot read.

    Lists of a fixed length have a largest length beside it.
    """
    if isinstance(schema, dict):
        kept = {key: each for key, each in schema.items() if (key, each) != ("items", False)}
        return {key: _readable(each) for key, each in kept.items()}
    return [_readable(each) for each in schema] if isinstance(schema, list) else schema


def _types_of(endpoint: Endpoint) -> list[Any]:
    return [each for each in (endpoint.body, *_answers_of(endpoint)) if each is not None]


def _answers_of(endpoint: Endpoint) -> tuple[Any, ...]:
    return endpoint.answer if isinstance(endpoint.answer, tuple) else (endpoint.answer,)


def _operation(
    endpoint: Endpoint, texts: OperationReference, schemas: Schemas
) -> dict[str, object]:
    operation: dict[str, object] = {
        "operationId": texts.operation_id,
        "tags": [texts.tag],
        "summary": texts.summary,
        "description": texts.description,
        "parameters": _parameters(endpoint, texts),
        "responses": _responses(endpoint, texts, schemas),
        "security": [] if endpoint.public else [{"key": []}],
    }
    if endpoint.scope is not None:
        operation["x-scope"] = endpoint.scope
    if endpoint.beside is not None:
        operation["x-scope-beside"] = endpoint.beside
    if endpoint.body is not None:
        content = _content(schemas[id(endpoint.body)], texts.example[0])
        operation["requestBody"] = {"required": _needs_body(endpoint), "content": content}
    return operation


def _needs_body(endpoint: Endpoint) -> bool:
    """Return whether the route refuses an empty body."""
    body = endpoint.body
    if endpoint.needs_body or not (isinstance(body, type) and issubclass(body, msgspec.Struct)):
        return endpoint.needs_body
    return any(field.required for field in msgspec.structs.fields(body))


def _parameters(endpoint: Endpoint, texts: OperationReference) -> list[Mapping[str, object]]:
    parameters: list[Mapping[str, object]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": read_reference().path_parameters[name],
            "schema": {"type": "string"},
        }
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": schema, "description": texts.query[name]}
        for name, schema in endpoint.query.items()
    ]
    return [*parameters, IDEMPOTENCY_KEY] if endpoint.keyed else parameters


def _responses(
    endpoint: Endpoint, texts: OperationReference, schemas: Schemas
) -> dict[str, dict[str, object]]:
    error = _content(schemas[id(Error)])
    good: dict[str, object] = {"description": texts.summary}
    if endpoint.status != 204:
        good["content"] = _answer_content(endpoint, texts, schemas)
    responses = {str(endpoint.status): good}
    for status in texts.errors:
        refused = responses[str(status)] = {"description": read_reference().statuses[status]}
        if status == 409 and endpoint.local:
            refused["content"] = _content(schemas[id(BridgeError)])
        elif status not in BODILESS:
            refused["content"] = error
    if not endpoint.public:
        for code, description in read_reference().common_errors.items():
            responses[code] = {"description": description, "content": error}
    return responses


def _answer_content(
    endpoint: Endpoint, texts: OperationReference, schemas: Schemas
) -> dict[str, object]:
    content: dict[str, object] = {}
    if endpoint.media != JSON:
        content[endpoint.media] = {"schema": {"type": "string"}}
    if endpoint.answer is not None:
        options = [schemas[id(each)] for each in _answers_of(endpoint)]
        schema: dict[str, object] = {"oneOf": options} if options[1:] else dict(options[0])
        if texts.published is not None:
            schema["description"] = f"As the protocol's {texts.published} schema has it."
        content |= _content(schema, texts.example[1])
    return content


def _content(schema: Mapping[str, object], example: Any = None) -> dict[str, object]:
    return {JSON: {"schema": schema} if example is None else {"schema": schema, "example": example}}
