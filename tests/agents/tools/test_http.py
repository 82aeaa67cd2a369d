"""Tools that are addresses: what a model fills in is encoded, what comes back is judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from moot.agents.tools.http import http_tool
from moot.agents.tools.toolbox import ToolError, ToolInvocation, UsableTool
from moot.config.project import ProjectError, parse_project
from moot.config.settings import Settings
from moot.config.tools import HttpEntry
from moot.core.trace import run_trace
from moot.net.outbound import Outbound
from tests.support.agents.http_shop import Shop

KEY = "key-very-secret-0123"
ERRAND = ToolInvocation("the-name-of-this-call", run_trace("run_x", None))


def tool_at(url: str, private: bool = True, **entry: Any) -> UsableTool:
    made = HttpEntry(url=url, **entry)
    assert made.problem() is None
    return http_tool("rates", made, Outbound(private), {"RATES_KEY": KEY}.get)


async def test_parameters_stand_encoded_in_the_path_and_the_rest_in_the_query(shop: Shop) -> None:
    params = {"city": "string", "days": {"type": "integer", "default": 7}, "tags": "array"}
    tool = tool_at(f"{shop.url}/rates/{{city}}?v=1", params=params)
    assert tool.name == "http:rates" and tool.transport == "http" and tool.idempotent
    found = await tool.call({"city": "a/../b?c#d&e %2e", "tags": ["x y", "z"]}, ERRAND)
    path = "/rates/a%2F..%2Fb%3Fc%23d%26e%20%252e?v=1&days=7&tags=x%20y&tags=z"
    assert found == {"path": path}
    assert "idempotency-key" not in shop.asked[0]["headers"]


@pytest.mark.parametrize("city", ["..", ".", ""])
async def test_a_parameter_cannot_climb_out_of_its_place(shop: Shop, city: str) -> None:
    tool = tool_at(f"{shop.url}/rates/{{city}}/now", params={"city": "string"})
    with pytest.raises(ToolError, match="cannot be"):
        await tool.call({"city": city}, ERRAND)
    assert shop.asked == []


async def test_a_post_has_a_body_and_the_name_of_the_call(shop: Shop) -> None:
    tool = tool_at(
        f"{shop.url}/orders/{{shop}}", method="POST", params={"shop": "string", "sku": "string"},
        headers={"X-Team": "a"}, key_env="RATES_KEY",
    )  # fmt: skip
    assert not tool.idempotent
    await tool.call({"shop": "s", "sku": "7"}, ERRAND)
    [asked] = shop.asked
    assert (asked["method"], asked["path"], asked["body"]) == ("POST", "/orders/s", {"sku": "7"})
    headers = asked["headers"]
    assert headers["idempotency-key"] == "the-name-of-this-call"
    assert headers["authorization"] == f"Bearer {KEY}" and headers["x-team"] == "a"


async def test_a_key_that_is_said_back_is_not_shown(shop: Shop) -> None:
    tool = tool_at(f"{shop.url}/", key_env="RATES_KEY", key_header="X-Key")
    shop.body = json.dumps({"you said": KEY})
    assert await tool.call({}, ERRAND) == {"you said": "[REDACTED]"}
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    shop.body = f'{{"{escaped}": ["{escaped}"]}}'
    assert await tool.call({}, ERRAND) == {"[REDACTED]": ["[REDACTED]"]}
    shop.status = 400
    with pytest.raises(ToolError) as caught:
        await tool.call({}, ERRAND)
    assert KEY not in str(caught.value.as_failure())
    assert shop.asked[0]["headers"]["x-key"] == KEY


@pytest.mark.parametrize(
    ("status", "code"), [(302, "http_redirect"), (404, "http_status"), (429, "rate_limited")]
)
async def test_what_is_no_success_says_so(shop: Shop, status: int, code: str) -> None:
    shop.status, shop.body = status, "x" * 9000
    with pytest.raises(ToolError) as caught:
        await tool_at(shop.url).call({}, ERRAND)
    assert caught.value.code == code and len(str(caught.value.as_failure())) < 3000


async def test_text_stays_text_and_nothing_is_null(shop: Shop) -> None:
    shop.kind = "text/plain"
    for body, value in (("42 degrees", "42 degrees"), ("[1]", [1]), ("", None), ("{not", "{not")):
        shop.body = body
        assert await tool_at(shop.url).call({}, ERRAND) == value


async def test_an_address_inside_is_refused_unless_that_is_allowed(shop: Shop) -> None:
    tool = tool_at(shop.url.replace("http:", "https:"), private=False)
    with pytest.raises(ToolError) as caught:
        await tool.call({}, ERRAND)
    assert caught.value.code == "target_refused" and shop.asked == []
    assert "MOOT_ALLOW_PRIVATE_TARGETS" in caught.value.message


async def test_a_missing_key_is_said(shop: Shop) -> None:
    with pytest.raises(ToolError, match="NO_KEY"):
        await tool_at(shop.url, key_env="NO_KEY").call({}, ERRAND)
    assert shop.asked == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('url = "https://{city}.example.com/"\nparams = {city = "string"}', ":2: a parameter"),
        ('url = "https://example.com:{p}/"\nparams = {p = "string"}', ":2: a parameter"),
        ('url = "https://a.example.com/{city}"', ":2: {city} is no parameter"),
        ('url = "https://a.example.com/#x"', ":2: what follows"),
        ('url = "https://a.example.com/"\nheaders = {Host = "b"}', ":3: 'Host' cannot be set"),
        ('url = "https://a.example.com/"\nkey_header = "X"', ":3: there is no key"),
        ('url = "https://a.example.com/"\nmethdo = "GET"', "did you mean 'method'"),
        ('method = "GET"', "url"),
        ('url = "https://a.example.com/"\nparams = {x = "strng"}', ":3: this cannot be checked"),
        ('url = "https://a.example.com/"\nmethod = "TRACE"', ":3: method"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ProjectError) as caught:
        parse_project(f"[tools.rates]\n{text}\n", Path("moot.toml"), Settings)
    assert said in str(caught.value) and str(caught.value).startswith("moot.toml:")
