"""What holds for every command: help, output, errors, exit codes."""

import json
import subprocess
import sys

import pytest

from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess, server_environment

HEAVY = {"asyncio", "httpx2", "http.client", "msgspec", "rich", "apsw", "uvicorn", "yaml"}


def test_the_overview_has_the_first_sentence_of_each_command() -> None:
    from moot.cli import moot
    from moot.cli.command_table import COMMANDS

    for name, (_, summary) in COMMANDS.items():
        command = moot.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None and command.help is not None
        assert " ".join(command.help.split()).startswith(summary), name


def test_help_is_quick_because_nothing_heavy_is_imported(alone: Cli) -> None:
    code = (
        "import sys, moot.cli; moot.cli.moot.main(['--help'], standalone_mode=False);"
        f" print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=server_environment(),
        check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
    assert "doctor" in alone("--help").out


def test_the_package_can_be_run_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moot", "--version"], capture_output=True, text=True,
        env=server_environment(), check=True,
    )  # fmt: skip
    assert done.stdout.startswith("moot ")


def test_every_command_has_help(alone: Cli) -> None:
    import click

    from moot.cli import moot

    def walk(command: click.Command, path: list[str]) -> None:
        assert command.help, path
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None and child.name == name, [*path, name]
                walk(child, [*path, name])

    walk(moot, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("flw",), "Did you mean 'flow'?"),
        (("run", "list", "--limt"), "--limit"),
        (("run", "show"), "Missing argument"),
        (("api", "FOO", "/"), "FOO"),
    ],
)
def test_a_usage_mistake_exits_2_with_one_line(
    alone: Cli, words: tuple[str, ...], said: str
) -> None:
    done = alone(*words)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert said in done.err
    assert "--help" in done.err


def test_a_terminal_gets_a_table_and_a_pipe_gets_tabs(moot: Cli) -> None:
    moot("run", "hello")
    screen = moot.on_terminal("run", "list", "-n", 1).out
    assert "STATUS" in screen
    assert "\t" not in screen
    piped = moot("run", "list", "-n", 1).out
    assert "STATUS" not in piped
    assert piped.count("\t") == 9


def test_no_color_means_no_escape_codes(moot: Cli) -> None:
    moot("run", "hello")
    assert "\x1b[3" in moot.on_terminal("run", "show", "@last").out
    for words in (("run", "show", "@last"), ("run", "hello"), ("doctor",), ("run", "list")):
        assert "\x1b[" not in moot.on_terminal(*words, NO_COLOR="1").out


def test_ids_are_short_on_a_terminal_and_whole_in_a_pipe(moot: Cli) -> None:
    [run_id] = moot("run", "hello", "-d").lines()
    assert run_id in moot("run", "list").out
    screen = moot.on_terminal("run", "list").out
    assert run_id[:12] in screen
    assert run_id not in screen


@pytest.mark.parametrize("words", ["openapi", "api GET /v1/openapi.json"])
def test_a_reader_that_stops_early_ends_it_quietly(moot: Cli, words: str) -> None:
    code = f"{sys.executable} -m moot.cli {words} | head -c 10"
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, env=server_environment(),
        cwd=moot.folder, check=False,
    )  # fmt: skip
    assert done.stderr == ""


def test_debug_shows_where_an_error_came_from(alone: Cli) -> None:
    words = ("run", "list", "--server", "http://127.0.0.1:1")
    assert "Traceback" not in alone(*words).err
    assert "Traceback" in alone(*words, MOOT_DEBUG="1").err


def test_version_is_printed_for_people_and_programs(alone: Cli) -> None:
    from moot import __version__

    assert alone("version").out == f"moot {__version__}\n"
    assert alone("--version").out == f"moot {__version__}\n"
    assert json.loads(alone("version", "--json").out)["moot"] == __version__


def test_the_api_is_described_without_a_server(alone: Cli) -> None:
    assert json.loads(alone("openapi").out)["openapi"].startswith("3.1")


def test_any_route_can_be_called(moot: Cli) -> None:
    assert moot("run", "hello").code == 0
    assert json.loads(moot("api", "get", "v1/host/moot/runs?limit=1").out)["runs"]
    made = moot("api", "POST", "/v1/runs", "-d", "-", "-i", stdin='{"workflowId": "hello"}')
    assert made.out.startswith("HTTP/1.1 201")
    (moot.folder / "body.json").write_text('{"workflowId": "hello"}')
    headers = ("-H", "Idempotency-Key: once")
    first = moot("api", "POST", "/v1/runs", "-d", "@body.json", *headers)
    assert moot("api", "POST", "/v1/runs", "-d", "@body.json", *headers).out == first.out
    lost = moot("api", "GET", "/v1/nothing")
    assert (lost.code, json.loads(lost.out)["error"]) == (5, "not_found")
    assert moot("api", "POST", "/v1/runs", "-d", "{}").code == 1


def test_an_address_needs_no_http(moot: Cli, host: ServerProcess) -> None:
    place = host.url.removeprefix("http://")
    assert moot("api", "GET", "/healthz", "--server", place).code == 0


def test_a_stream_is_passed_on_as_it_is(moot: Cli) -> None:
    [run_id] = moot("run", "hello", "-d").lines()
    assert "event: run.completed" in moot("api", "GET", f"/v1/runs/{run_id}/events").out


def test_the_doctor_finds_a_healthy_server(moot: Cli) -> None:
    done = moot("doctor")
    assert done.code == 0
    assert "answers at" in done.out
    assert "max_body_bytes" in done.out
    found = json.loads(moot("doctor", "--json").out)
    assert {row["result"] for row in found["checks"]} <= {"ok", "warning"}


def test_the_doctor_finds_what_is_wrong(alone: Cli) -> None:
    (alone.folder / "moot.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 8192)
    (alone.folder / "moot.db.key").write_text("hk_secret\n")
    (alone.folder / "moot.db.key").chmod(0o644)
    done = alone("doctor", MOOT_PORT="0")
    assert done.code == 1
    assert "✗ store" in done.out
    assert "chmod 600" in done.out
    assert "hk_secret" not in done.out
