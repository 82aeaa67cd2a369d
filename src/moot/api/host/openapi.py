"""Build the OpenAPI document from the table of routes."""

import functools
import re
from importlib.resources import files
from typing import Any

import msgspec

from moot import __version__
from moot.api.host.openapi_tags import PATH_PARAMETERS, TAGS, tag_from_path
from moot.api.http.request import BODILESS, Endpoint, encode
from moot.wire.errors import BridgeError, Error
from moot.wire.json import JsonObject

#: Errors that every route with a key may return.
COMMON_ERRORS = {
    400: "The request does not fit.",
    401: "No key, or none that is known here.",
    403: "The key may not do this.",
    413: "The body is too large.",
    429: "Too many requests; see Retry-After.",
    503: "Not now; see Retry-After.",
}

STATUS_TEXTS = {
    204: "There is nothing, or not yet.",
    304: "Nothing has changed since the given ETag.",
    404: "There is no such thing, or it is not yours.",
    409: "The state does not allow it now.",
    410: "It was there, and is over.",
    422: "Understood, but it cannot be done.",
    501: "This host does not offer that.",
}

JSON = "application/json"
BEARER = {"type": "http", "scheme": "bearer", "description": "A key: `moot key create`."}
IDEMPOTENCY_KEY: JsonObject = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeated request with the same key gets the first answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}

Schemas = dict[int, JsonObject]


@functools.cache
def encoded_openapi() -> bytes:
    return encode(openapi_document())


def openapi_document() -> JsonObject:
    from moot.api.routes import ENDPOINTS

    endpoints = [endpoint for endpoint in ENDPOINTS if not endpoint.hidden]
    types = [Error, BridgeError, *(each for row in endpoints for each in _types_of(row))]
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip(map(id, types), schemas, strict=True))
    examples = read_examples()
    paths: dict[str, JsonObject] = {}
    for endpoint in endpoints:
        example = endpoint.example or examples.get(endpoint.operation, (None, None))
        operation = _operation(endpoint, by_type, example)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Moot",
            "version": __version__,
            "description": "A host of the OpenWOP v1 protocol, and what the protocol leaves to it.",
        },
        "tags": [
            {"name": name, "description": text, "externalDocs": {"url": f"/docs/{guide}"}}
            for name, (text, guide) in TAGS.items()
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": BEARER},
            "schemas": _readable(components),
        },
    }


def _readable(schema: Any) -> Any:
    """Return a schema without ``items: false``, which generators of clients cannot read.

    Lists of a fixed length have a largest length beside it.
    """
    if isinstance(schema, dict):
        kept = {key: each for key, each in schema.items() if (key, each) != ("items", False)}
        return {key: _readable(each) for key, each in kept.items()}
    return [_readable(each) for each in schema] if isinstance(schema, list) else schema


def read_examples() -> dict[str, tuple[Any, Any]]:
    """Return operation -> example of the body and of the answer."""
    stored = files("moot.api.host").joinpath("assets", "examples.json").read_bytes()
    return msgspec.json.decode(stored, type=dict[str, tuple[Any, Any]])


def _types_of(endpoint: Endpoint) -> list[Any]:
    return [each for each in (endpoint.body, *_answers_of(endpoint)) if each is not None]


def _answers_of(endpoint: Endpoint) -> tuple[Any, ...]:
    return endpoint.answer if isinstance(endpoint.answer, tuple) else (endpoint.answer,)


def _operation(endpoint: Endpoint, schemas: Schemas, example: tuple[Any, Any]) -> JsonObject:
    sent, answered = example
    operation: JsonObject = {
        "operationId": operation_id(endpoint),
        "tags": [endpoint.tag or tag_from_path(endpoint.path)],
        "summary": endpoint.summary,
        "description": endpoint.description or f"{endpoint.summary}.",
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, schemas, answered),
        "security": [] if endpoint.public else [{"key": []}],
    }
    if endpoint.scope is not None:
        operation["x-scope"] = endpoint.scope
    if endpoint.beside is not None:
        operation["x-scope-beside"] = endpoint.beside
    if endpoint.body is not None:
        content = _content(JSON, schemas[id(endpoint.body)], sent)
        operation["requestBody"] = {"required": _needs_body(endpoint), "content": content}
    return operation


def operation_id(endpoint: Endpoint) -> str:
    if endpoint.operation_id is not None:
        return endpoint.operation_id
    words: list[str] = re.findall(r"[A-Za-z0-9]+", f"{endpoint.method.lower()} {endpoint.path}")
    return words[0] + "".join(word[0].upper() + word[1:] for word in words[1:])


def _needs_body(endpoint: Endpoint) -> bool:
    """Return whether the route refuses an empty body."""
    body = endpoint.body
    if endpoint.needs_body or not (isinstance(body, type) and issubclass(body, msgspec.Struct)):
        return endpoint.needs_body
    return any(field.required for field in msgspec.structs.fields(body))


def _parameters(endpoint: Endpoint) -> list[JsonObject]:
    parameters: list[JsonObject] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_PARAMETERS[name],
            "schema": {"type": "string"},
        }
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": schema, "description": description}
        for name, (schema, description) in endpoint.query.items()
    ]
    return [*parameters, IDEMPOTENCY_KEY] if endpoint.keyed else parameters


def _responses(endpoint: Endpoint, schemas: Schemas, example: Any) -> JsonObject:
    error = _content(JSON, schemas[id(Error)], None)
    good: JsonObject = {"description": endpoint.summary}
    if endpoint.status != 204:
        good["content"] = _answer_content(endpoint, schemas, example)
    responses: JsonObject = {str(endpoint.status): good}
    for status in endpoint.errors:
        responses[str(status)] = {"description": STATUS_TEXTS[status]}
        if status == 409 and endpoint.local:
            responses["409"]["content"] = _content(JSON, schemas[id(BridgeError)], None)
        elif status not in BODILESS:
            responses[str(status)]["content"] = error
    if not endpoint.public:
        for status, description in COMMON_ERRORS.items():
            responses[str(status)] = {"description": description, "content": error}
    return responses


def _answer_content(endpoint: Endpoint, schemas: Schemas, example: Any) -> JsonObject:
    content: JsonObject = {}
    if endpoint.media != JSON:
        content[endpoint.media] = {"schema": {"type": "string"}}
    if endpoint.answer is not None:
        content |= _content(JSON, _answer_schema(endpoint, schemas), example)
    return content


def _answer_schema(endpoint: Endpoint, schemas: Schemas) -> JsonObject:
    options = [schemas[id(each)] for each in _answers_of(endpoint)]
    schema: JsonObject = {"oneOf": options} if len(options) > 1 else dict(options[0])
    if endpoint.published is not None:
        schema["description"] = f"As the protocol's {endpoint.published} schema has it."
    return schema


def _content(media: str, schema: JsonObject, example: Any) -> JsonObject:
    return {
        media: {"schema": schema} if example is None else {"schema": schema, "example": example}
    }
