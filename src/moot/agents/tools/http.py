"""HTTP tools: the model fills in parameters and cannot choose the address."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from moot.agents.models.redact import SecretKeys
from moot.agents.tools.toolbox import ToolError, ToolInvocation, UsableTool
from moot.config.tools import PLACEHOLDER, HttpEntry
from moot.core.secrets import SHORTEST_SECRET
from moot.net.outbound import CallFailed, Outbound, OutboundRequest, OutboundResponse
from moot.net.targets import TargetRefused

Secret = Callable[[str], str | None]

#: methods whose parameters go into the query
QUERY_METHODS = ("GET", "HEAD", "DELETE")
LONGEST_ERROR = 2000


def http_tool(name: str, entry: HttpEntry, outbound: Outbound, secret: Secret) -> UsableTool:
    """Return the tool ``http:NAME`` for an entry ``[tools.NAME]``."""

    async def call(arguments: Mapping[str, object], invocation: ToolInvocation) -> Any:
        values = {**_defaults(entry), **arguments}
        key = _key(entry, secret)
        try:
            response = await outbound.send(_build_request(entry, values, invocation, key))
        except TargetRefused as refusal:
            raise ToolError("target_refused", str(refusal)) from None
        except CallFailed as failure:
            warning = " It may have happened all the same." if failure.sent else ""
            message = _secret_keys(key).redact(f"{failure}{warning}")
            raise ToolError("tool_unavailable", message) from None
        return _result(response, _secret_keys(key))

    return UsableTool(
        name=f"http:{name}",
        call=call,
        description=entry.description,
        parameters=entry.schema,
        dangerous=entry.dangerous,
        idempotent=entry.repeatable,
        transport="http",
    )


def _defaults(entry: HttpEntry) -> dict[str, object]:
    parts = entry.schema["properties"].items()
    parts = ((name, part) for name, part in parts if isinstance(part, dict) and "default" in part)
    return {name: part["default"] for name, part in parts}


def _key(entry: HttpEntry, secret: Secret) -> str | None:
    if entry.key_env is None:
        return None
    key = secret(entry.key_env)
    if not key:
        raise ToolError("tool_unavailable", f"Its key is not set: {entry.key_env}.")
    return key


def _secret_keys(key: str | None) -> SecretKeys:
    return SecretKeys([key], shortest=SHORTEST_SECRET)


def _build_request(
    entry: HttpEntry, values: Mapping[str, object], invocation: ToolInvocation, key: str | None
) -> OutboundRequest:
    url, used = fill_url(entry.url, values)
    rest = {name: value for name, value in values.items() if name not in used}
    headers = {"accept": "application/json, text/*;q=0.9, */*;q=0.1", **entry.headers}
    body = None
    if entry.method in QUERY_METHODS and rest:
        pairs = [(name, item) for name, value in rest.items() for item in _query_values(value)]
        url += ("&" if "?" in url else "?") + urlencode(pairs, quote_via=quote)
    elif entry.method not in QUERY_METHODS:
        body = msgspec.json.encode(rest)
        headers = {"content-type": "application/json", **headers}
    if entry.method not in ("GET", "HEAD"):
        headers["idempotency-key"] = invocation.name
    if key is not None:
        header = entry.key_header or "authorization"
        headers[header] = key if entry.key_header else f"Bearer {key}"
    return OutboundRequest(
        method=entry.method, url=url, headers=headers, body=body, seconds=entry.timeout
    )  # fmt: skip


def fill_url(template: str, values: Mapping[str, object]) -> tuple[str, set[str]]:
    """Put the encoded parameters into the URL. A value cannot end its place in the URL."""
    used: set[str] = set()
    start = template.find("?")

    def replace(match: Any) -> str:
        name = match[1]
        text = _text(values.get(name))
        if (start < 0 or match.start() < start) and text in ("", ".", ".."):
            raise ToolError("validation_error", f"'{name}' cannot be {text!r} in an address.")
        used.add(name)
        return quote(text, safe="")

    return PLACEHOLDER.sub(replace, template), used


def _query_values(value: Any) -> list[str]:
    if isinstance(value, list):
        return [_text(item) for item in value]
    return [] if value is None else [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def _result(response: OutboundResponse, keys: SecretKeys) -> Any:
    """Return the value of a response without the key, which the receiver may have sent back."""
    value = keys.redact_value(_value(response))
    if 300 <= response.status < 400:
        raise ToolError("http_redirect", f"It answered {response.status}; that is not followed.")
    if response.status >= 400:
        code = "rate_limited" if response.status == 429 else "http_status"
        body = value if len(_text(value)) <= LONGEST_ERROR else _text(value)[:LONGEST_ERROR]
        message = f"It answered {response.status}."
        raise ToolError(code, message, status=response.status, body=body)
    return value


def _value(response: OutboundResponse) -> Any:
    """Return parsed JSON, or the text."""
    text = response.body.decode("utf-8", errors="replace")
    if not text.strip():
        return None
    content_type = response.headers.get("content-type", "")
    if "json" in content_type or text.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
    return text
