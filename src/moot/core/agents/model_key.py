"""The name of a model call: the same request has the same key on every host.

What can change the answer is in it, what only carries the request is not. The key says nothing
about who asked: whoever keeps answers by it keeps them apart by tenant.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from moot.core.errors import BadRequest
from moot.core.json.canonical import canonical, code_units, digest

RECIPE = "openwop-semantic-request-v2"

#: fields that say how a request travels, who sent it or how it is counted
TRANSPORT = frozenset({
    "apiKey", "attempt", "credentialRef", "headers", "idempotencyKey", "maxRetries", "metadata",
    "nodeId", "requestId", "retries", "runId", "stream", "tenant", "tenantId", "timeout",
    "timeoutMs", "traceId", "traceparent", "tracestate", "user",
})  # fmt: skip


class Closed(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a model is told has no room for what nobody knows."""


class Message(Closed, frozen=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[Any]
    name: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class Tool(Closed, frozen=True):
    name: str
    parameters: Any = UNSET
    description: str | UnsetType = UNSET


class ResponseFormat(Closed, frozen=True):
    type: Literal["text", "json", "tool_call"]
    schema: Any = UNSET


class ModelRequest(Closed, frozen=True):
    """Everything about a call that can change its answer; what is absent is UNSET, never null."""

    provider: str
    model: str
    messages: list[Message]
    tools: list[Tool] | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    top_p: float | UnsetType = UNSET
    top_k: float | UnsetType = UNSET
    response_format: ResponseFormat | UnsetType = UNSET
    max_output_tokens: int | UnsetType = UNSET
    stop: list[str] | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    safety_settings: Any = UNSET
    provider_options: dict[str, Any] | UnsetType = UNSET


KNOWN = frozenset(field.encode_name for field in msgspec.structs.fields(ModelRequest))


def request_of(given: Mapping[str, Any]) -> ModelRequest:
    """The request in what a caller gives. An option nobody knows is one of the provider's.

    Raises BadRequest when it is none.
    """
    fields: dict[str, Any] = {}
    options: dict[str, Any] = {}
    provider = _lowered(given.get("provider"))
    for name, value in given.items():
        if value is None or name in TRANSPORT or name.startswith("x-"):
            continue
        if name in KNOWN:
            fields[name] = value
        else:
            options[f"vendor.{provider}.{name}"] = value
    if options:
        named = fields.get("providerOptions", {})
        fields["providerOptions"] = {**options, **named} if isinstance(named, dict) else named
    if isinstance(fields.get("stop"), str):
        fields["stop"] = [fields["stop"]]
    try:
        return msgspec.convert({**fields, "provider": provider}, ModelRequest)
    except msgspec.ValidationError as error:
        raise BadRequest(f"This cannot be asked of a model: {error}") from None


def semantic(request: ModelRequest) -> dict[str, Any]:
    """The request as the recipe arranges it."""
    said = msgspec.to_builtins(request)
    said["provider"] = _lowered(said["provider"])
    if not said.get("tools"):
        said.pop("tools", None)
    else:
        said["tools"] = _in_order(said["tools"])
    outside = ("provider", "model", "providerOptions")
    around = {name: said.pop(name) for name in outside if name in said}
    return {"recipe": RECIPE, **around, "request": said}


def _in_order(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By name; only tools of one name are told apart by the rest, which is long."""
    named = sorted(tools, key=lambda tool: code_units(tool["name"]))
    if len({tool["name"] for tool in named}) == len(named):
        return named
    return sorted(named, key=lambda tool: (code_units(tool["name"]), canonical(tool)))


def model_key(request: ModelRequest) -> str:
    """64 hexadecimal digits. Raises BadRequest for what JSON has no one spelling for."""
    try:
        return digest(semantic(request))
    except ValueError as error:
        raise BadRequest(f"The request has no key: {error}") from None


def _lowered(provider: Any) -> Any:
    """Only A to Z have one lower case everywhere."""
    return provider.encode().lower().decode() if isinstance(provider, str) else provider
