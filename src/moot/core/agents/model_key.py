"""Compute the key of a model call: the same request has it on every host.

The key covers all that can change the answer and nothing that only carries the request. It does not
name the caller, so a store of answers must separate tenants itself.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from moot.core.errors import BadRequest
from moot.core.json.canonical import canonical_bytes, canonical_digest, code_unit_key

RECIPE = "openwop-semantic-request-v2"

#: fields about the transport, the caller or the accounting of a request
TRANSPORT_FIELDS = frozenset({
    "apiKey", "attempt", "credentialRef", "headers", "idempotencyKey", "maxRetries", "metadata",
    "nodeId", "requestId", "retries", "runId", "stream", "tenant", "tenantId", "timeout",
    "timeoutMs", "traceId", "traceparent", "tracestate", "user",
})  # fmt: skip


class SemanticPart(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a request to a model; unknown fields are errors."""


class SemanticMessage(SemanticPart, frozen=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[Any]
    name: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class SemanticTool(SemanticPart, frozen=True):
    name: str
    parameters: Any = UNSET
    description: str | UnsetType = UNSET


class SemanticResponseFormat(SemanticPart, frozen=True):
    type: Literal["text", "json", "tool_call"]
    schema: Any = UNSET


class SemanticRequest(SemanticPart, frozen=True):
    """Everything about a call that can change its answer. Absent fields are UNSET, never null."""

    provider: str
    model: str
    messages: list[SemanticMessage]
    tools: list[SemanticTool] | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    top_p: float | UnsetType = UNSET
    top_k: float | UnsetType = UNSET
    response_format: SemanticResponseFormat | UnsetType = UNSET
    max_output_tokens: int | UnsetType = UNSET
    stop: list[str] | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    safety_settings: Any = UNSET
    provider_options: dict[str, object] | UnsetType = UNSET


REQUEST_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(SemanticRequest))


def parse_semantic_request(fields_by_name: Mapping[str, object]) -> SemanticRequest:
    """Return the request; unknown options become options of the provider.

    Raise BadRequest when it is not a request.
    """
    fields: dict[str, object] = {}
    options: dict[str, object] = {}
    provider = _lower_ascii(fields_by_name.get("provider"))
    for name, value in fields_by_name.items():
        if value is None or name in TRANSPORT_FIELDS or name.startswith("x-"):
            continue
        if name in REQUEST_FIELDS:
            fields[name] = value
        else:
            options[f"vendor.{provider}.{name}"] = value
    if options:
        named = fields.get("providerOptions", {})
        fields["providerOptions"] = {**options, **named} if isinstance(named, dict) else named
    if isinstance(fields.get("stop"), str):
        fields["stop"] = [fields["stop"]]
    try:
        return msgspec.convert({**fields, "provider": provider}, SemanticRequest)
    except msgspec.ValidationError as error:
        raise BadRequest(f"This cannot be asked of a model: {error}") from None


def arrange_request(request: SemanticRequest) -> dict[str, object]:
    """Return the request in the order and form of the recipe."""
    tools = _sort_tools(request.tools) if request.tools else UNSET
    provider = _lower_ascii(request.provider)
    body = msgspec.to_builtins(replace(request, provider=provider, tools=tools))
    outside = ("provider", "model", "providerOptions")
    around = {name: body.pop(name) for name in outside if name in body}
    return {"recipe": RECIPE, **around, "request": body}


def _sort_tools(tools: list[SemanticTool]) -> list[SemanticTool]:
    """Sort by name. Only tools of one name need their canonical bytes, which are long."""
    if len({tool.name for tool in tools}) == len(tools):
        return sorted(tools, key=lambda tool: code_unit_key(tool.name))
    return sorted(
        tools,
        key=lambda tool: (code_unit_key(tool.name), canonical_bytes(msgspec.to_builtins(tool))),
    )


def model_key(request: SemanticRequest) -> str:
    """Return 64 hexadecimal digits. Raise BadRequest for values that JSON cannot express."""
    try:
        return canonical_digest(arrange_request(request))
    except ValueError as error:
        raise BadRequest(f"The request has no key: {error}") from None


def _lower_ascii(provider: Any) -> Any:
    """Lower A to Z only; other letters have no common lower case."""
    return provider.encode().lower().decode() if isinstance(provider, str) else provider
