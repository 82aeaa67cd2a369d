"""With no server running the file itself is read, and said to be read."""

import json
from pathlib import Path

import pytest
from cli_helpers import SERVER_ARGUMENTS, Cli, write_flows


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A database whose server has stopped."""
    from real_server import ServerProcess, server_environment

    folder = tmp_path_factory.mktemp("offline")
    write_flows(folder)
    server = ServerProcess(folder, SERVER_ARGUMENTS, server_environment())
    moot = Cli(folder)
    for flow in ("asks", "hello", "remembers", "mails"):
        moot("run", flow)
    assert server.stop() == 0
    return moot


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("run", "list"), "mails\tcompleted"),
        (("run", "show", "@last"), "mails"),
        (("run", "tail", "@last"), "effect acme:mail finished"),
        (("tree", "@last"), "mails\tcompleted"),
        (("why", "@last@3"), "run started"),
        (("diff", "@last", "@last"), "nothing differs"),
        (("inbox",), "asks/gate\tapprove reject refine edit\tShip it?"),
        (("flow", "list"), "flaky.yaml"),
        (("flow", "show", "flaky"), "acme.flaky"),
        (("key", "list"), "local"),
        (("memory", "list"), "desk\t1"),
        (("memory", "list", "desk"), "Ada likes tea"),
        (("search", "mails", "kind:run"), "run\t"),
    ],
)
def test_reading_commands_read_the_file_and_say_so(
    left_behind: Cli, words: tuple[str, ...], found: str
) -> None:
    done = left_behind(*words)
    assert done.code == 0
    assert found in done.out
    assert done.err == "No server runs; reading moot.db itself.\n"


def test_the_answer_is_the_same_as_the_servers(moot: Cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    run_id = json.loads(moot("run", "hello", "--json").out)["runId"]
    online = moot("run", "show", run_id, "--json").out
    assert moot("db", "backup", copy).code == 0
    offline = Cli(tmp_path)("run", "show", run_id, "--json", MOOT_DATABASE="copy.db")
    assert offline.out == online


@pytest.mark.parametrize(
    "words", ["run hello", "run cancel @last", "api GET /", "approve 1", "inbox --watch"]
)
def test_other_commands_need_a_server(left_behind: Cli, words: str) -> None:
    done = left_behind(*words.split())
    assert done.code == 6
    assert "moot serve" in done.err


def test_a_server_that_was_named_is_never_replaced_by_a_file(left_behind: Cli) -> None:
    assert left_behind("run", "list", "--server", "http://127.0.0.1:1").code == 6
    assert left_behind("run", "list", MOOT_URL="http://127.0.0.1:1").code == 6


def test_a_file_that_was_chosen_is_never_replaced_by_another_server(
    left_behind: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from click.testing import CliRunner

    from moot.cli import moot
    from moot.cli.shared import options
    from moot.cli.shared.client import Api, ServerTransport, ServerUnreachable
    from moot.client.operations.host import get_index

    def refuse(*_: object) -> None:
        raise AssertionError("another server was asked")

    monkeypatch.setattr(ServerTransport, "_connect", refuse)
    database = left_behind.folder / "moot.db"
    done = CliRunner().invoke(moot, ["run", "list", "--database", str(database)])
    assert done.exit_code == 0, done.output
    assert "mails\tcompleted" in done.stdout
    assert done.stderr == f"No server runs; reading {database} itself.\n"
    asked = options.CommandOptions()
    asked.database = str(tmp_path / "other.db")
    with pytest.raises(ServerUnreachable, match=r"no server runs on .*other\.db"):
        Api(options.resolve_place(asked)).send(get_index())


def test_a_file_that_lies_here_is_never_replaced_by_another_server(
    left_behind: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from moot.cli import moot
    from moot.cli.shared.client import ServerTransport, ServerUnreachable

    def refuse(*_: object) -> None:
        raise AssertionError("another server was asked")

    monkeypatch.setattr(ServerTransport, "_connect", refuse)
    monkeypatch.chdir(left_behind.folder)
    done = CliRunner().invoke(moot, ["run", "list"])
    assert done.exit_code == 0, done.output
    assert "mails\tcompleted" in done.stdout
    with pytest.raises(ServerUnreachable, match=r"no server runs on moot\.db"):
        CliRunner().invoke(moot, ["run", "hello"], catch_exceptions=False)


def test_a_chosen_file_that_is_not_there_exits_5(alone: Cli) -> None:
    for done in (
        alone("run", "list", "--database", "x.db"),
        alone("run", "list", MOOT_DATABASE="x.db"),
    ):
        assert (done.code, done.err) == (5, "error: there is no file x.db.\n")
    assert alone("run", "hello", "--database", "x.db").code == 6


def test_without_server_and_file_the_way_out_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from click.testing import CliRunner

    from moot.cli import moot
    from moot.cli.shared.errors import CommandError, ExitCode
    from moot.config import server_location

    monkeypatch.setattr(server_location, "DEFAULT_URL", "http://127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=r"no file moot\.db .* moot serve") as refused:
        CliRunner().invoke(moot, ["run", "list"], catch_exceptions=False)
    assert refused.value.exit_code is ExitCode.UNREACHABLE


def test_a_file_that_is_no_database_is_refused_in_a_sentence(alone: Cli) -> None:
    (alone.folder / "moot.db").write_text("not a database, but long enough to look at" * 10)
    done = alone("run", "list")
    assert done.code == 1
    assert "moot.db" in done.err
