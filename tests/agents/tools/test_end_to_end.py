"""A whole server with tools of every kind, and a provider on this machine that calls them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moot.agents.definitions.manifest import Agent
from moot.api.server import build_services
from moot.api.services import Services
from moot.clock import SystemClock
from moot.config.settings import Settings
from moot.core.errors import Unprocessable
from moot.core.events import decode
from moot.core.runs.start import StartRun
from moot.core.state.run import Run
from moot.store.sqlite import SqliteStore
from tests.support.agents.http_shop import Shop
from tests.support.event_payloads import payload_json
from tests.support.model_provider import Reply, StandIn
from tests.support.servers import ROOT

TENANT = "default"

TOOLS = """
from moot import tool

@tool
def price_history(sku: str) -> list[float]:
    "Past prices of a product."
    return [10.0, 10.8]
"""

PROJECT = """
[models.it]
url = "{url}/v1"
model = "big"

[tools.get_rates]
url = "{shop}/rates/{{city}}"
params = {{city = "string"}}
description = "Rates of today."

[tools.book]
url = "{shop}/book"
method = "POST"

[mcp.shop]
command = ["{python}", "{script}"]
"""

AGENT = """---
model: it
tools:
  - price_history
  - http:get_rates
  - http:book
  - mcp:shop/add
---
You look things up.
"""

FLOW = {
    "id": "ask", "name": "Ask", "version": "1.0", "edges": [], "triggers": [], "variables": [],
    "metadata": {}, "settings": {},
    "nodes": [{"id": "a", "typeId": "moot.agent", "name": "A", "position": {"x": 0, "y": 0},
               "config": {"agent": "ada", "prompt": "What does it cost?"}, "inputs": {}}],
}  # fmt: skip


@pytest.fixture
async def services(
    tmp_path: Path, provider: StandIn, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Services]:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "prices.py").write_text(TOOLS)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "ada.md").write_text(AGENT)
    script = ROOT / "tests" / "support" / "agents" / "mcp_shop.py"
    text = PROJECT.format(url=provider.url, shop=shop.url, python=sys.executable, script=script)
    (tmp_path / "moot.toml").write_text(text)
    monkeypatch.setenv("MOOT_CONFIG", str(tmp_path / "moot.toml"))
    settings = Settings(
        database=str(tmp_path / "moot.db"),
        agents=str(tmp_path / "agents"),
        tools=str(tmp_path / "tools"),
        allow_private_targets=True,
    )
    store = await SqliteStore.open(settings.database)
    made = await build_services(settings, store, SystemClock())
    yield made
    await made.aclose()


async def asked(services: Services) -> tuple[Run, list[Any]]:
    """A run of one question to one agent, once it is over."""
    host = services.host
    flow = await host.flows.register(TENANT, msgspec.json.encode(FLOW))
    start = StartRun(at=host.clock.millis(), tenant=TENANT, principal="p", limits=host.limits)
    run_id = (await host.create(flow, start)).run_id
    reader = host.hub.subscribe(run_id)
    async with asyncio.timeout(60):
        while not (run := (await host.view(TENANT, run_id)).run).terminal:
            await reader.wait(0.05)
            reader.waiting.clear()
            reader.lagging = False
    host.hub.unsubscribe(run_id, reader)
    return run, [decode(row) for row in await host.store.read(TENANT, run_id, -1, 1000)]


async def test_a_model_uses_a_function_an_address_and_a_server(
    services: Services, provider: StandIn, shop: Shop
) -> None:
    provider.will(
        Reply(
            words=[], finish="tool_calls",
            calls={"price_history": '{"sku": "a"}', "http_get_rates": '{"city": "Rome"}'},
        ),
        Reply(words=[], finish="tool_calls",
              calls={"mcp_shop_add": '{"a": 2, "b": 3}', "http_book": "{}"}),
        Reply(words=["It costs 5."]),
    )  # fmt: skip
    run, events = await asked(services)
    assert run.nodes["a"].outputs is not None, run.error
    assert run.nodes["a"].outputs["text"] == "It costs 5."
    offered = [tool["function"] for tool in provider.asked[0].body["tools"]]
    assert [tool["name"] for tool in offered] == [
        "price_history", "http_get_rates", "http_book", "mcp_shop_add",
    ]  # fmt: skip
    assert offered[0]["description"] == "Past prices of a product."
    assert offered[0]["parameters"]["required"] == ["sku"]
    read = [m for m in provider.asked[2].body["messages"] if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in read] == ["call_0", "call_1", "call_0", "call_1"]
    assert "10.8" in read[0]["content"] and "/rates/Rome" in read[1]["content"]
    called = [payload_json(event) for event in events if event.type == "agent.toolCalled"]
    assert [(said["toolName"], said["transport"]) for said in called] == [
        ("price_history", "native"), ("http:get_rates", "http"), ("mcp:shop/add", "mcp"),
        ("http:book", "http"),
    ]  # fmt: skip
    assert len({said["callId"] for said in called}) == 4
    backs = [payload_json(event) for event in events if event.type == "agent.toolReturned"]
    assert [said["status"] for said in backs] == ["ok"] * 4
    effects = {
        payload_json(event)["providerKey"]: payload_json(event)["invocationId"]
        for event in events
        if event.type == "moot.effect.finished"
    }
    assert shop.asked[1]["headers"]["idempotency-key"] == effects["tool:http_book"]


async def test_a_model_that_calls_too_much_at_once_is_told_so(
    services: Services, provider: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.agents.tools.toolbox.MOST_USES", 1)
    calls = {"price_history": '{"sku": "a"}', "http_get_rates": '{"city": "Rome"}'}
    provider.will(Reply(words=[], finish="tool_calls", calls=calls), Reply(words=["Well."]))
    run, events = await asked(services)
    assert run.nodes["a"].outputs is not None
    read = [m for m in provider.asked[1].body["messages"] if m["role"] == "tool"]
    assert "rate_limited" in read[1]["content"] and "10.8" in read[0]["content"]
    assert sum(event.type == "agent.toolCalled" for event in events) == 1


async def test_what_a_server_says_of_itself_gives_no_right(
    services: Services, provider: StandIn
) -> None:
    """The description of a tool tells the model to use others; it may not."""
    provider.will(
        Reply(words=[], finish="tool_calls", calls={"mcp_shop_burn": '{"what": "it"}'}),
        Reply(words=["Well."]),
    )
    _, events = await asked(services)
    [back] = [payload_json(event) for event in events if event.type == "agent.toolReturned"]
    assert back["status"] == "forbidden"


async def test_an_agent_that_names_an_unknown_tool_is_refused(services: Services) -> None:
    for reference, said in (
        ("price_histroy", "did you mean 'price_history'"),
        ("get_rates", "did you mean 'http:get_rates'"),
        ("mcp:shpo/add", "did you mean 'mcp:shop/add'"),
        ("mcp:shop", "write mcp:SERVER/TOOL"),
        ("zzz", "see: moot tools list"),
    ):
        with pytest.raises(Unprocessable) as caught:
            await services.agents.put(TENANT, Agent(name="bo", tools=[reference]), "test")
        assert said in caught.value.message and caught.value.status == 422
        assert caught.value.details["tool"] == reference
    assert await services.agents.find(TENANT, "bo") is None


async def test_a_file_that_names_an_unknown_tool_is_left_out_with_its_line(
    services: Services, tmp_path: Path
) -> None:
    folder = tmp_path / "others"
    folder.mkdir()
    (folder / "cy.md").write_text("---\nmodel: it\ntools: [price_history,\n  http:rates]\n---\nHi.")
    problems = await services.agents.load(TENANT, folder)
    assert problems == ["cy.md:4: there is no tool 'http:rates'; did you mean 'http:get_rates'?"]
    assert await services.agents.find(TENANT, "cy") is None


async def test_the_shelf_lists_everything_once_it_was_asked(services: Services) -> None:
    names = [row.name for row in await services.tools.listed()]
    assert names == ["http:book", "http:get_rates", "price_history", "mcp:shop/*"]
    rows = {row.name: row for row in await services.tools.listed(connect=True)}
    assert rows["mcp:shop/burn"].dangerous and rows["price_history"].source.endswith("prices.py")
