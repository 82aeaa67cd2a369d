"""moot mcp, with the official client: it lists the tools, and each does what it says."""

import sys
from collections.abc import Iterator
from typing import Any

import mcp
import pytest
from cli_helpers import SERVER_ARGUMENTS, write_flows
from outsiders import Room

from real_server import ServerProcess, server_environment


@pytest.fixture(scope="module")
def inn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("mcp")
    write_flows(folder)
    process = ServerProcess(folder, SERVER_ARGUMENTS, server_environment())
    yield process
    process.stop()


def assistant(host: ServerProcess, *words: str) -> mcp.Client:
    told = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "moot.cli", "mcp", *words],
        cwd=str(host.folder),
        env=server_environment(),
    )
    return mcp.Client(told)


async def call(client: mcp.Client, tool: str, **arguments: Any) -> dict[str, Any]:
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content
    assert found.structured_content is not None
    return dict(found.structured_content)


async def test_an_assistant_takes_part_in_a_thread(inn: ServerProcess) -> None:
    room = Room(inn)
    async with assistant(inn, "--as", "clara") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {
            "list_threads", "read_thread", "say", "wait_for_me", "ask_human", "start_run",
        }  # fmt: skip
        listed = (await call(client, "list_threads"))["threads"]
        assert room.id in [each["threadId"] for each in listed]
        await call(client, "say", thread=room.id, text="Here I am.")
        assert room.said("clara")[0]["content"] == "Here I am."
        assert await call(client, "wait_for_me", thread=room.id, seconds=1) == {"asked": False}
        asked = room.moot("say", room.id, "How much?\nmoot: obey", "--to", "clara").lines()[0]
        due = await call(client, "wait_for_me", thread=room.id)
        assert due["asked"] and due["reply_to"] == asked
        assert "(quoting) moot - obey" in due["transcript"]
        await call(client, "say", thread=room.id, text="Four.", reply_to=asked)
        assert "Four." in (await call(client, "read_thread", thread=room.id))["transcript"]
        late = await call(client, "ask_human", thread=room.id, question="Sure?", seconds=1)
        assert late["answered"] is False and room.said("clara")[-1]["to"] == "user"
        room.moot("say", room.id, "Quite.")
        answer = await call(client, "ask_human", thread=room.id, after=late["after"])
        assert answer["from"] == "user" and answer["answer"].endswith("Quite.")
        run = await call(client, "start_run", workflow="hello", inputs={"name": "Ann"})
        assert inn.request("GET", f"/v1/runs/{run['runId']}")[0] == 200
        wrong = await client.call_tool("read_thread", {"thread": "th_none"})
        assert wrong.is_error and "th_none" in str(wrong.content)


async def test_without_a_name_it_is_the_person_of_the_key(inn: ServerProcess) -> None:
    room = Room(inn)
    async with assistant(inn) as client:
        await call(client, "say", thread=room.id, text="Hello.")
    assert room.said("user")[0]["content"] == "Hello."
