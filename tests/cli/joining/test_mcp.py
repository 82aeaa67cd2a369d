"""moot mcp, with the official client: it lists the tools, and each does what it says."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import mcp
import pytest

from moot.cli.joining.mcp import mcp as command
from moot.cli.shared.errors import CommandError
from tests.support.cli.commands import SERVER_ARGUMENTS, write_flows
from tests.support.cli.programs import Room, until
from tests.support.servers import ROOT, ServerProcess, server_environment


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
        room.moot("say", room.id, "You there?", "--to", "rex")
        room.moot("say", room.id, "That was for the other one.", "--reply-to", asked)
        room.moot("say", room.id, "Quite.")
        answer = await call(client, "ask_human", thread=room.id, after=late["after"])
        assert answer["from"] == "user" and answer["answer"].endswith("Quite.")
        run = await call(client, "start_run", workflow="hello", inputs={"name": "Ann"})
        assert inn.request("GET", f"/v1/runs/{run['runId']}")[0] == 200
        wrong = await client.call_tool("read_thread", {"thread": "th_none"})
        assert wrong.is_error and "th_none" in str(wrong.content)


async def test_who_says_something_to_nobody_is_warned(inn: ServerProcess) -> None:
    room = Room(inn, "rex")
    async with assistant(inn) as client:
        lost = await call(client, "say", thread=room.id, text="Well?", to="zork")
    assert lost["warning"] == "Nobody here is called zork; there are rex."


async def test_without_a_name_it_is_the_person_of_the_key(inn: ServerProcess) -> None:
    room = Room(inn)
    async with assistant(inn) as client:
        await call(client, "say", thread=room.id, text="Hello.")
        asks = await client.call_tool("ask_human", {"thread": room.id, "question": "Am I?"})
        assert asks.is_error and "--as" in str(asks.content)
    [said] = room.said()  # and not the question: who asked himself would answer himself
    assert (said["from"], said["content"]) == ("user", "Hello.")


async def test_asking_people_answers_nothing_that_others_have_asked(inn: ServerProcess) -> None:
    room = Room(inn)
    async with assistant(inn, "--as", "clara") as client:
        await call(client, "say", thread=room.id, text="Here.")
        room.moot("say", room.id, "Clara, are you there?", "--to", "clara", "--as", "user:ann")
        asking = asyncio.create_task(
            call(client, "ask_human", thread=room.id, question="May I?", seconds=30)
        )
        await asyncio.to_thread(until, lambda: len(room.said("clara")) == 2)
        question = room.said("clara")[-1]
        found = room.moot("wait", room.id, "--as", "user:eve")
        assert found.code == 0 and question["id"] in found.err, "whoever is a person is asked"
        room.moot("say", room.id, "Yes.", "--as", "user:eve", "--reply-to", question["id"])
        answer = await asking
        assert (answer["answered"], answer["from"]) == (True, "user:eve")
        due = await call(client, "wait_for_me", thread=room.id)
        assert due["asked"] and due["reply_to"] != question["id"]


async def test_no_assistant_takes_the_name_of_an_agent(inn: ServerProcess) -> None:
    body = {"name": "ada", "model": "demo"}
    assert inn.request("POST", "/v1/host/moot/agents", body)[0] == 201
    room = Room(inn)
    async with assistant(inn, "--as", "ada") as client:
        said = await client.call_tool("say", {"thread": room.id, "text": "I am Ada."})
        assert said.is_error and "agent of this host" in str(said.content)
    assert room.said() == []


async def test_what_says_nothing_or_replies_to_nothing_is_refused_in_the_words_of_threads(
    inn: ServerProcess,
) -> None:
    room, other = Room(inn), Room(inn)
    strange = other.moot("say", other.id, "Elsewhere.").lines()[0]
    async with assistant(inn, "--as", "clara") as client:

        async def wrong(tool: str, **given: Any) -> str:
            found = await client.call_tool(tool, given)
            assert found.is_error, found
            return str(found.content)

        assert "the text is empty" in await wrong("say", thread=room.id, text=" \n")
        for name in ("zzz", "", strange, f"{room.id}.999", f"{room.id}.{'9' * 40}"):
            told = await wrong("say", thread=room.id, text="Yes.", reply_to=name)
            assert f"nothing in this thread has the id '{name}'" in told
        assert "name a thread. list_threads" in await wrong("read_thread", thread="")
        for name in ("zzz", f"th_{'z' * 20}", f"run_{'z' * 20}:talk:1"):
            told = await wrong("read_thread", thread=name)
            assert f"there is no thread '{name}'. list_threads" in told and "moot run" not in told
    assert room.said("clara") == []


async def test_what_a_tool_does_not_take_is_refused_with_the_names_it_has(
    inn: ServerProcess,
) -> None:
    room = Room(inn)
    rows = (ROOT / "docs" / "joining.md").read_text().splitlines()
    async with assistant(inn, "--as", "clara") as client:
        for tool in (await client.list_tools()).tools:
            assert tool.input_schema["additionalProperties"] is False
            [row] = [row for row in rows if row.startswith(f"| `{tool.name}` |")]
            told = re.findall("`(.+?)`", row.split("|")[2])
            assert told == list(tool.input_schema["properties"])
            wrong = await client.call_tool(tool.name, {"timeout": 2, "thread": room.id})
            assert wrong.is_error and f"it takes {', '.join(told)}." in str(wrong.content)
        await call(client, "start_run", workflow="hello")
        await call(client, "say", thread="@last", text="Here.")
    assert [said["content"] for said in room.said("clara")] == ["Here."]


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {},
         "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip


def test_it_ends_quietly_when_nobody_reads_its_answers(inn: ServerProcess) -> None:
    with subprocess.Popen(
        [sys.executable, "-X", "dev", "-m", "moot.cli", "mcp", "--as", "clara"], cwd=inn.folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=server_environment(MOOT_DEBUG="1"),
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(_line("initialize", HELLO, 0))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(_line("notifications/initialized") + _line("tools/list", {}, 1))
        process.stdin.close()
        complaints = process.stderr.read().decode()
        assert process.wait(30) == 0, complaints
    assert "error" not in complaints.lower(), complaints


def _line(method: str, given: dict[str, Any] | None = None, number: int | None = None) -> bytes:
    told = {"jsonrpc": "2.0", "method": method, "params": given, "id": number}
    return (
        json.dumps({key: each for key, each in told.items() if each is not None}).encode() + b"\n"
    )


def test_it_ends_with_its_input_whatever_it_waits_for(inn: ServerProcess) -> None:
    room = Room(inn)
    with subprocess.Popen(
        [sys.executable, "-m", "moot.cli", "mcp", "--as", "clara"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=inn.folder, env=server_environment(),
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        waits = {"name": "wait_for_me", "arguments": {"thread": room.id, "seconds": 500}}
        for number, (method, given) in enumerate(
            [("initialize", HELLO), ("notifications/initialized", None), ("tools/call", waits)]
        ):
            process.stdin.write(_line(method, given, None if given is None else number))
            process.stdin.flush()
            if number == 0:
                process.stdout.readline()
        until(lambda: "clara" in room.presence())
        process.stdin.close()
        assert process.wait(30) == 0


def test_without_the_sdk_it_says_how_it_is_installed_from_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "moot.cli.joining.mcp_tools", None)
    with pytest.raises(CommandError) as refused:
        command.main([], standalone_mode=False)
    folder = ROOT
    assert f"{sys.executable} -m pip install -e '{folder}[mcp]'" in str(refused.value)
    assert "moot[mcp]" not in str(command.help)
