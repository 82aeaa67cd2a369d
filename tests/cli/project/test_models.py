"""moot models: added, listed, tested, removed; moot.toml stays as its author wrote it."""

import json
import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.cli.project.toml_edit import NotEditable, add_table, remove_table
from moot.cli.server.dev import describe_changes, file_stamps
from moot.config.settings import Settings
from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess, server_environment

LOCAL = ("models", "add", "local", "--url", "http://localhost:11434/v1", "--model", "llama3.1")

FILE = """\
# the project's file

[server]
port = 0   # any

  # how we speak
[models.first]
model = "one"   # a small one
[models.first.options]
effort = "low"

# the next one is dear
[models."second"]
provider = "anthropic"
model = 'two'

[limits]
rate_limit = 100
"""


def test_a_model_is_added_listed_and_removed(alone: Cli) -> None:
    added = alone(*LOCAL)
    assert (added.code, added.err) == (0, "")
    assert "moot models test local" in added.out
    assert alone("models", "list").lines() == [
        "demo\tdemo\tdemo\t-\tnone needed",
        "local\topenai\tllama3.1\thttp://localhost:11434/v1\tnone",
    ]
    assert alone("models", "remove", "local").code == 0
    assert (alone.folder / "moot.toml").read_text() == ""


def test_a_server_that_runs_knows_a_model_that_is_added(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "ada.md").write_text("You doubt.")
    server = ServerProcess(tmp_path, [], server_environment())
    try:
        moot = Cli(tmp_path)
        assert moot("agent", "set", "ada", "model=quiet").code == 1
        moot("models", "add", "quiet", "--provider", "demo", "--model", "whisper")
        assert moot("agent", "set", "ada", "model=quiet").code == 0
        answer = json.loads(moot("ask", "ada", "Why?", "--json").out)
        assert answer["meta"]["model"] == "quiet/whisper"
    finally:
        server.stop()


def test_dev_looks_at_the_file_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MOOT_CONFIG", raising=False)
    before = file_stamps(Settings())
    (tmp_path / "moot.toml").write_text("")
    assert describe_changes(before, file_stamps(Settings())) == ["moot.toml is new"]
    monkeypatch.setenv("MOOT_CONFIG", "gone.toml")
    assert file_stamps(Settings()) == {}


def test_a_key_is_named_and_never_written(alone: Cli) -> None:
    words = ("models", "add", "work", "--url", "https://api.example.com/v1", "--model", "gpt-x")
    done = alone(*words, "--key-env", "WORK_KEY")
    assert "WORK_KEY, which is not set yet" in done.err
    assert alone("models", "list").lines()[1].endswith("WORK_KEY (not set)")
    assert alone("models", "list", WORK_KEY="secret").lines()[1].endswith("\tWORK_KEY")
    refused = alone("models", "test", "work")
    assert refused.code == 5
    assert "export WORK_KEY=" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "x"), "--model is missing"),
        (("add", "no/slash", "--model", "m"), "is no name"),
        (("add", "x", "--model", "m", "--url", "localhost"), "must begin with http"),
        (("add", "x", "--model", "m", "--url", "http://me:pw@x/v1"), "no key or password"),
        (("add", "x", "--model", "m", "--key-env", "sk-123"), "key_env"),
        (("remove", "nobody"), "there is no model 'nobody'"),
    ],
)
def test_a_mistake_changes_nothing(alone: Cli, words: tuple[str, ...], said: str) -> None:
    done = alone("models", *words)
    assert done.code in (2, 5)
    assert said in done.err
    assert not (alone.folder / "moot.toml").exists()


def test_a_name_is_not_given_twice(alone: Cli) -> None:
    alone(*LOCAL)
    done = alone(*LOCAL)
    assert done.code == 2
    assert "moot models remove local" in done.err


def test_the_rest_of_the_file_stays_as_it_was(alone: Cli) -> None:
    file = alone.folder / "moot.toml"
    file.write_text(FILE)
    file.chmod(0o600)
    assert alone(*LOCAL).code == 0
    assert file.read_text().startswith(FILE)
    assert alone("models", "remove", "local").code == 0
    assert file.read_text().rstrip("\n") == FILE.rstrip("\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert alone("models", "remove", "first").code == 0
    kept = file.read_text()
    for remark in ("# the project's file", "# any", "# how we speak", "# the next one is dear"):
        assert remark in kept
    assert "options" not in kept
    assert alone("models", "remove", "second").code == 0
    assert tomllib.loads(file.read_text()) == {"server": {"port": 0}, "limits": {"rate_limit": 100}}


def test_what_a_program_cannot_change_safely_is_left_to_its_author() -> None:
    text = 'models = {first = {model = "x"}}\n'
    with pytest.raises(NotEditable):
        remove_table(text, ("models", "first"))
    with pytest.raises(NotEditable):
        add_table(text, ("models", "second"), {"model": "y"})
    tricky = '[models.a]\nmodel = """\n[models.b]\n"""\n[models.b]\nmodel = "y"\n'
    with pytest.raises(NotEditable):
        remove_table(tricky, ("models", "b"))


names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
tables = st.dictionaries(names, st.fixed_dictionaries({"model": st.text(max_size=10)}), max_size=4)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(tables, names, st.text(max_size=10))
def test_adding_and_removing_is_doing_nothing(found: dict[str, Any], name: str, model: str) -> None:
    text = "# mine\n"
    for one, values in found.items():
        text = add_table(text, ("models", one), values)
    if name not in found:
        more = add_table(text, ("models", name), {"model": model})
        assert tomllib.loads(more)["models"][name] == {"model": model}
        assert remove_table(more, ("models", name)).rstrip("\n") == text.rstrip("\n")


def test_a_mistake_in_the_file_stops_every_command_that_reads_it(alone: Cli) -> None:
    (alone.folder / "moot.toml").write_text("[server]\nport = 1\nprot = 2\n")
    for words in (("models", "list"), ("run", "list"), ("serve",), ("doctor",)):
        done = alone(*words)
        assert done.code == 2
        assert "moot.toml:3: unknown word 'prot' in [server] — did you mean 'port'?" in done.err


def test_every_command_means_the_database_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "moot.toml").write_text('[server]\ndatabase = "data/moot.db"\n')
    server = ServerProcess(tmp_path / "data", [], server_environment())
    try:
        moot = Cli(tmp_path)
        assert moot("key", "list").err == ""  # the server was found, not only its file
        shown = json.loads(moot("doctor", "--json").out)["settings"]
        assert shown["database"] == "data/moot.db"
        other = json.loads(moot("doctor", "--json", MOOT_PORT="1", MOOT_DATABASE="e.db").out)
        assert (other["settings"]["port"], other["settings"]["database"]) == (1, "e.db")
    finally:
        server.stop()


def test_the_file_may_lie_elsewhere(alone: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("project")
    (folder / "acme.toml").write_text('[server]\ndatabase = "acme.db"\n[models.x]\nmodel = "m"\n')
    found = alone("models", "list", MOOT_CONFIG=str(folder / "acme.toml"))
    assert "x\topenai\tm\t" in found.out
    shown = alone("doctor", "--json", MOOT_CONFIG=str(folder / "acme.toml"))
    assert json.loads(shown.out)["settings"]["database"] == str(folder / "acme.db")
    missing = alone("models", "list", MOOT_CONFIG="nowhere.toml")
    assert missing.code == 2
    assert "MOOT_CONFIG names nowhere.toml" in missing.err


def test_the_demo_model_answers_without_anything(alone: Cli) -> None:
    done = alone("models", "test", "demo", "--full", MOOT_DEMO_WPS="0")
    assert done.code == 0
    for said in ("✓ demo answered in", "tokens", "✓ streams", "json mode", "demo says: "):
        assert said in done.out
    found = json.loads(alone("models", "test", "demo", "--json", MOOT_DEMO_WPS="0").out)
    assert found["streams"] is True


def test_a_model_that_does_not_answer_says_why_and_what_to_do(alone: Cli) -> None:
    with socket.socket() as mine:  # nobody else gets the port, and nobody listens there
        mine.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{mine.getsockname()[1]}/v1"
        alone("models", "add", "local", "--url", url, "--model", "m")
        done = alone("models", "test", "local")
        assert done.code == 1
        assert f"{url} cannot be reached: Connection refused" in done.err
        checked = alone("doctor")
        refused = f"local {url}: connection refused → start it, or: moot models remove local"
        assert refused in checked.out
        told = json.loads(alone("models", "test", "local", "--json").out)
        assert told["error"] == "model_unavailable"


def test_an_unknown_model_gets_the_nearest(alone: Cli) -> None:
    done = alone("models", "test", "dmo")
    assert done.code == 5
    assert "Did you mean 'demo'?" in done.err
