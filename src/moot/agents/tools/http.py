"""Tools that are addresses: the model fills in parameters, and has no say in where they go."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from moot.agents.models.redact import Keys
from moot.agents.tools.config import PLACEHOLDER, HttpEntry
from moot.agents.tools.errors import ToolError
from moot.agents.tools.toolbox import Errand, Usable
from moot.core.secrets import SHORTEST_SECRET
from moot.net.outbound import CallFailed, Fetched, Order, Outbound
from moot.net.targets import TargetRefused

Secret = Callable[[str], str | None]

#: methods whose parameters stand in the address
BARE = ("GET", "HEAD", "DELETE")
LONGEST_ERROR = 2000


def http_tool(name: str, entry: HttpEntry, outbound: Outbound, secret: Secret) -> Usable:
    """``[tools.NAME]`` as something that can be used, as ``http:NAME``."""

    async def call(arguments: dict[str, Any], errand: Errand) -> Any:
        given = {**_defaults(entry), **arguments}
        key = _key(entry, secret)
        try:
            fetched = await outbound.send(_order(entry, given, errand, key))
        except TargetRefused as refusal:
            raise ToolError("target_refused", str(refusal)) from None
        except CallFailed as failure:
            perhaps = " It may have happened all the same." if failure.sent else ""
            said = _keys(key).struck(f"{failure}{perhaps}")
            raise ToolError("tool_unavailable", said) from None
        return _result(fetched, _keys(key))

    return Usable(
        name=f"http:{name}",
        call=call,
        description=entry.description,
        parameters=entry.schema,
        dangerous=entry.dangerous,
        idempotent=entry.repeatable,
        transport="http",
    )


def _defaults(entry: HttpEntry) -> dict[str, Any]:
    return {
        name: said["default"]
        for name, said in entry.schema["properties"].items()
        if isinstance(said, dict) and "default" in said
    }


def _key(entry: HttpEntry, secret: Secret) -> str | None:
    if entry.key_env is None:
        return None
    key = secret(entry.key_env)
    if not key:
        raise ToolError("tool_unavailable", f"Its key is not set: {entry.key_env}.")
    return key


def _keys(key: str | None) -> Keys:
    return Keys([key], shortest=SHORTEST_SECRET)


def _order(entry: HttpEntry, given: dict[str, Any], errand: Errand, key: str | None) -> Order:
    url, used = filled(entry.url, given)
    rest = {name: value for name, value in given.items() if name not in used}
    headers = {"accept": "application/json, text/*;q=0.9, */*;q=0.1", **entry.headers}
    body = None
    if entry.method in BARE and rest:
        pairs = [(name, each) for name, value in rest.items() for each in _several(value)]
        url += ("&" if "?" in url else "?") + urlencode(pairs, quote_via=quote)
    elif entry.method not in BARE:
        body = msgspec.json.encode(rest)
        headers = {"content-type": "application/json", **headers}
    if entry.method not in ("GET", "HEAD"):
        headers["idempotency-key"] = errand.name
    if key is not None:
        word = entry.key_header or "authorization"
        headers[word] = key if entry.key_header else f"Bearer {key}"
    return Order(
        method=entry.method, url=url, headers=headers, body=body, seconds=entry.timeout
    )  # fmt: skip


def filled(template: str, given: dict[str, Any]) -> tuple[str, set[str]]:
    """The address with every parameter encoded: none of them can end its place in it."""
    used: set[str] = set()
    start = template.find("?")

    def put(found: Any) -> str:
        name = found[1]
        text = _text(given.get(name))
        if (start < 0 or found.start() < start) and text in ("", ".", ".."):
            raise ToolError("validation_error", f"'{name}' cannot be {text!r} in an address.")
        used.add(name)
        return quote(text, safe="")

    return PLACEHOLDER.sub(put, template), used


def _several(value: Any) -> list[str]:
    if isinstance(value, list):
        return [_text(each) for each in value]
    return [] if value is None else [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def _result(fetched: Fetched, keys: Keys) -> Any:
    """Whoever is told the key may say it back, in any way JSON can write it."""
    value = keys.struck_value(_value(fetched))
    if 300 <= fetched.status < 400:
        raise ToolError("http_redirect", f"It answered {fetched.status}; that is not followed.")
    if fetched.status >= 400:
        code = "rate_limited" if fetched.status == 429 else "http_status"
        body = value if len(_text(value)) <= LONGEST_ERROR else _text(value)[:LONGEST_ERROR]
        said = f"It answered {fetched.status}."
        raise ToolError(code, said, status=fetched.status, body=body)
    return value


def _value(fetched: Fetched) -> Any:
    """JSON where it says so, or is; else text."""
    text = fetched.body.decode("utf-8", errors="replace")
    if not text.strip():
        return None
    kind = fetched.headers.get("content-type", "")
    if "json" in kind or text.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
    return text
