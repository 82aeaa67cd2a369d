"""MCP servers, spoken to for real: over pipes and over HTTP."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from moot.agents.definitions.manifest import Agent
from moot.agents.tools import mcp
from moot.agents.tools.mcp import McpServer
from moot.agents.tools.registry import ToolRegistry
from moot.agents.tools.toolbox import ToolError, ToolInvocation
from moot.config.project import ProjectError, parse_project
from moot.config.settings import Settings
from moot.config.tools import McpEntry
from moot.core.trace import Trace, run_trace
from tests.support.servers import ROOT

SCRIPT = str(ROOT / "tests" / "support" / "agents" / "mcp_shop.py")
COMMAND = [sys.executable, SCRIPT]
SECRETS = {"SHOP_KEY": "key-very-secret-0123", "OTHER": "not-for-the-shop-99"}
ERRAND = ToolInvocation("call-1", run_trace("run_x", None))


@pytest.fixture(autouse=True)
def a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a program and reading the SDK in it may take long where others work, too."""
    monkeypatch.setattr(mcp, "CONNECT_S", 60.0)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the program listens, for all who speak HTTP to it."""
    with subprocess.Popen([*COMMAND, "http"], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        yield f"http://127.0.0.1:{int(program.stdout.readline())}/mcp"
        program.terminate()


@pytest.fixture(params=["stdio", "http"])
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[McpServer]:
    """The same server, over its pipes and over HTTP."""
    if request.param == "stdio":
        entry = McpEntry(command=COMMAND, idempotent=["add"])
    else:
        entry = McpEntry(url=request.getfixturevalue("address"), idempotent=["add"])
    server = McpServer("shop", entry, SECRETS.get)
    yield server
    await server.aclose()


async def call(
    server: McpServer, tool: str, errand: ToolInvocation = ERRAND, **arguments: Any
) -> Any:
    found = (await server.tools())[f"mcp:shop/{tool}"]
    return await found.call(arguments, errand)


async def test_tools_are_listed_with_their_schemas_and_called(shop: McpServer) -> None:
    found = await shop.tools()
    add, burn = found["mcp:shop/add"], found["mcp:shop/burn"]
    assert set(add.parameters["properties"]) == {"a", "b"} and add.transport == "mcp"
    assert add.idempotent and not burn.idempotent
    assert burn.dangerous and not add.dangerous
    assert "<system>" not in add.description and "Adds two" in add.description
    assert await call(shop, "add", a=2, b=3) in (5, {"result": 5})


async def test_the_trace_of_the_run_goes_along(shop: McpServer) -> None:
    trace = Trace("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", state="vendor=1")
    found = await call(shop, "meta", ToolInvocation("call-1", trace))
    said = found.get("result", found)
    assert said == {"traceparent": trace.traceparent, "tracestate": "vendor=1"}


async def test_a_tool_that_fails_is_an_error_and_the_server_lives_on(shop: McpServer) -> None:
    with pytest.raises(ToolError) as caught:
        await call(shop, "fail")
    assert caught.value.code == "tool_failed" and "out of stock" in caught.value.message
    assert await call(shop, "add", a=1, b=1) in (2, {"result": 2})


async def test_who_does_not_answer_in_time_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mcp, "START_S", 60.0)
    server = McpServer("shop", McpEntry(command=COMMAND, timeout=0.5), SECRETS.get)
    with pytest.raises(ToolError) as caught:
        await call(server, "wait")
    assert caught.value.code == "tool_timeout"
    server._entry = McpEntry(command=COMMAND)  # the next one has the time a busy machine takes
    assert await call(server, "add", a=1, b=1) in (2, {"result": 2})
    await server.aclose()


async def test_a_server_that_dies_is_started_again_by_the_next_call() -> None:
    server = McpServer("shop", McpEntry(command=COMMAND), SECRETS.get)
    first = await call(server, "process")
    with pytest.raises(ToolError) as caught:
        await call(server, "die")
    assert caught.value.code == "tool_unavailable" and "may have happened" in caught.value.message
    assert await call(server, "process") != first
    await server.aclose()


async def test_a_program_is_given_only_what_the_file_names() -> None:
    entry = McpEntry(command=COMMAND, env={"COLOUR": "deep-blue-1"}, pass_env=["SHOP_KEY"])
    server = McpServer("shop", entry, SECRETS.get)
    answers = [await call(server, "environment", name=name) for name in ("OTHER", "SHOP_KEY")]
    await server.aclose()
    assert "nothing" in str(answers[0])
    assert "[REDACTED]" in str(answers[1]) and SECRETS["SHOP_KEY"] not in str(answers)


async def test_an_agent_has_the_tools_its_patterns_name_and_no_others(shop: McpServer) -> None:
    shelf = ToolRegistry(servers={"shop": shop})
    some = await shelf.for_agent(Agent(name="ada", tools=["mcp:shop/add", "mcp:shop/b*"]))
    assert [tool.name for tool in some.tools] == ["mcp_shop_add", "mcp_shop_burn"]
    every = await shelf.for_agent(Agent(name="bo", tools=["mcp:shop/*"]))
    assert len(every.tools) == len(await shop.tools())
    none = await shelf.for_agent(Agent(name="cy"))
    assert none.tools == ()


async def test_a_server_that_is_not_there_leaves_its_tools_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = McpServer("shop", McpEntry(command=["/no/such/program"]), SECRETS.get)
    shelf = ToolRegistry(servers={"shop": gone})
    box = await shelf.for_agent(Agent(name="ada", tools=["mcp:shop/*"]))
    assert box.tools == () and gone.problem is not None
    [row] = await shelf.listed()
    assert row.name == "mcp:shop/*" and row.problem == gone.problem
    with pytest.raises(ToolError):
        await gone.unlisted("add").call({}, ERRAND)
    monkeypatch.setattr(mcp, "RETRY_S", 0.0)
    gone._entry = McpEntry(command=COMMAND)
    assert len(await gone.tools()) > 3
    await shelf.aclose()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timeout = 3", ":1: write either command or url"),
        ('command = ["a"]\nurl = "http://localhost/"', ":2: write either"),
        ('command = ["a"]\nheaders = {a = "b"}', ":3: headers and key_env are for url"),
        ('url = "http://me:pass@localhost/"', ":2: url"),
        ('url = "http://localhost/"\nenv = {a = "b"}', ":3: env, pass_env and cwd"),
        ("command = []", ":2: command"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ProjectError) as caught:
        parse_project(f"[mcp.shop]\n{text}\n", Path("moot.toml"), Settings)
    assert said in str(caught.value)


async def test_without_the_package_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(mcp.importlib, "import_module", missing)
    server = McpServer("shop", McpEntry(command=COMMAND), SECRETS.get)
    assert await server.tools() == {} and "[mcp]" in str(server.problem)


async def test_a_tool_nobody_has_listed_is_never_called_whatever_it_would_do() -> None:
    """Its server comes back between the question and the call: nobody has agreed to anything."""
    server = McpServer("shop", McpEntry(command=["/nowhere"]), SECRETS.get)
    shelf = ToolRegistry(servers={"shop": server})
    toolbox = await shelf.for_agent(Agent(name="ada", tools=["mcp:shop/*"]))
    burn = toolbox._find_unlisted("mcp_shop_burn")
    assert burn is not None
    server._entry = McpEntry(command=COMMAND)
    server.problem = None
    try:
        with pytest.raises(ToolError) as caught:
            await burn.call({"what": "the house"}, ERRAND)
        assert caught.value.code == "tool_unavailable"
        assert server._connection is None
    finally:
        await server.aclose()


async def test_a_tool_that_has_become_dangerous_is_not_called_without_a_persons_word() -> None:
    server = McpServer("shop", McpEntry(command=COMMAND), SECRETS.get)
    try:
        add = (await server.tools())["mcp:shop/add"]
        assert not add.dangerous
        server._entry = McpEntry(command=COMMAND, dangerous=["add"])
        await server.aclose()
        with pytest.raises(ToolError) as caught:
            await add.call({"a": 1, "b": 1}, ERRAND)
        assert caught.value.code == "tool_unavailable"
    finally:
        await server.aclose()


async def test_a_server_that_says_nothing_keeps_nobody_waiting_beyond_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await asyncio.to_thread(__import__, "mcp")
    monkeypatch.setattr(mcp, "START_S", 0.05)
    silent = [sys.executable, "-c", "import time; time.sleep(60)"]
    server = McpServer("shop", McpEntry(command=silent, timeout=0.05), SECRETS.get)
    async with asyncio.timeout(15):  # far below the twenty seconds a connection may take
        assert await server.tools() == {}
        assert server.problem is not None
        assert await server.tools() == {}, "and it is not asked again at once"
    await server.aclose()
