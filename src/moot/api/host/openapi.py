"""Build the OpenAPI document from the table of routes."""

import functools
import re
from typing import Any

import msgspec

from moot import __version__
from moot.api.http.request import BODILESS, Endpoint, encode

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


@functools.cache
def encoded_openapi() -> bytes:
    return encode(openapi_document())


def openapi_document() -> dict[str, Any]:
    from moot.api.routes import ENDPOINTS

    endpoints = [endpoint for endpoint in ENDPOINTS if not endpoint.hidden]
    types = [endpoint.body for endpoint in endpoints if endpoint.body is not None]
    types += [endpoint.answer for endpoint in endpoints if endpoint.answer is not None]
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip(map(id, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, by_type)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Moot",
            "version": __version__,
            "description": "A host of the OpenWOP v1 protocol, and what the protocol leaves to it.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {**components, "Error": ERROR_SCHEMA},
        },
    }


ERROR_SCHEMA = {
    "type": "object",
    "required": ["error", "message"],
    "additionalProperties": False,
    "properties": {
        "error": {"type": "string", "minLength": 1},
        "message": {"type": "string", "minLength": 1},
        "details": {"type": "object"},
    },
}


#: The shape that Agent Bridge programs expect.
BRIDGE_CONFLICT_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "thread", "participant"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "thread": {"type": "string"},
                "participant": {"type": ["string", "null"]},
            },
        }
    },
}


def _operation(endpoint: Endpoint, schemas: dict[int, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, schemas),
        "security": [] if endpoint.public else [{"key": []}],
    }
    if endpoint.scope is not None:
        operation["x-scope"] = endpoint.scope
    if endpoint.beside is not None:
        operation["x-scope-beside"] = endpoint.beside
    if endpoint.body is not None:
        schema = schemas[id(endpoint.body)]
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": False, "content": content}
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    words: list[str] = re.findall(r"[A-Za-z0-9]+", f"{endpoint.method.lower()} {endpoint.path}")
    return words[0] + "".join(word[0].upper() + word[1:] for word in words[1:])


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    parameters += [
        {"name": name, "in": "query", "schema": schema, "description": description}
        for name, (schema, description) in endpoint.query.items()
    ]
    if endpoint.keyed:
        schema = {"type": "string", "minLength": 1, "maxLength": 255}
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": schema})
    return parameters


def _responses(endpoint: Endpoint, schemas: dict[int, Any]) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    good: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.status != 204:
        good["content"] = {endpoint.media: {"schema": _answer_schema(endpoint, schemas)}}
    responses: dict[str, Any] = {str(endpoint.status): good}
    for status in endpoint.errors:
        responses[str(status)] = {"description": STATUS_TEXTS[status]}
        if status == 409 and endpoint.local:
            responses["409"]["content"] = {"application/json": {"schema": BRIDGE_CONFLICT_SCHEMA}}
        elif status not in BODILESS:
            responses[str(status)]["content"] = error
    if not endpoint.public:
        for status, description in COMMON_ERRORS.items():
            responses[str(status)] = {"description": description, "content": error}
    return responses


def _answer_schema(endpoint: Endpoint, schemas: dict[int, Any]) -> dict[str, Any]:
    if endpoint.media != "application/json":
        return {"type": "string"}
    schema: dict[str, Any] = {"type": "object"}
    if endpoint.answer is not None:
        schema = dict(schemas[id(endpoint.answer)])
    if endpoint.published is not None:
        schema["description"] = f"As the protocol's {endpoint.published} schema has it."
    return schema
