"""A project from nothing: made, checked, tested and served, offline; nothing is overwritten."""

import json
from pathlib import Path

import pytest

from moot import Client
from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess, server_environment

FILES = {
    ".gitignore", "README.md", "agents/ada.md", "agents/checker.md", "agents/finder.md",
    "agents/mo.md", "flows/brief.yaml", "moot.toml", "nodes.py", "pytest.ini",
    "tests/test_brief.py", "tools.py",
}  # fmt: skip


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def acme(alone: Cli) -> Cli:
    assert alone("init", "acme").code == 0
    return Cli(alone.folder / "acme")


def test_a_new_project_passes_its_checks_and_its_tests_offline(alone: Cli) -> None:
    made = alone("init", "acme")
    assert made.code == 0 and "cd acme && moot check && moot test" in made.out
    acme = Cli(alone.folder / "acme")
    assert files_in(acme.folder) == FILES
    checked = acme("check")
    assert (checked.code, checked.err) == (0, "")
    assert "flows/brief.yaml: brief is fine" in checked.out
    tested = acme("test", "-q", "-p", "no:cacheprovider")
    assert tested.code == 0, tested.out
    assert "5 passed" in tested.out


def test_a_new_project_is_served_and_its_workflow_runs(acme: Cli) -> None:
    environment = server_environment(MOOT_DEMO_WPS="0")
    server = ServerProcess(acme.folder, [], environment)
    try:
        with Client(server.url, server.key) as client:
            run = client.runs.start("brief", topic="bees").wait(60)
            assert run.status == "waiting-approval"
            run.approve()
            page = run.wait(60).outputs["page"]
            assert page.startswith("# bees\n") and "Bees do well on roofs" in page
        rows = server.request("GET", "/v1/host/moot/runs")[1]["runs"]
        paths = [f"/v1/runs/{row['runId']}/events/poll?limit=500" for row in rows]
        used = [event["payload"]["toolName"] for path in paths
                for event in server.request("GET", path)[1]["events"]
                if event["type"] == "agent.toolCalled"]  # fmt: skip
        assert used == ["library"]
    finally:
        server.stop()


def test_nothing_that_is_there_is_overwritten(alone: Cli) -> None:
    (alone.folder / "nodes.py").write_text("mine = True\n")
    again = alone("init", "--here", "--json")
    told = json.loads(again.out)
    assert told["kept"] == ["nodes.py"] and set(told["made"]) == FILES - {"nodes.py"}
    assert (alone.folder / "nodes.py").read_text() == "mine = True\n"
    assert json.loads(alone("init", "--here", "--json").out)["made"] == []
    (alone.folder / "taken").mkdir()
    refused = alone("init", "taken")
    assert refused.code == 1 and "there already" in refused.err and "--here" in refused.err


@pytest.mark.parametrize("given", [(), ("acme", "--here"), ("a b",)])
def test_a_project_has_one_name(alone: Cli, given: tuple[str, ...]) -> None:
    refused = alone("init", *given)
    assert refused.code == 2 and refused.err.startswith("error: ")


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("flows/brief.yaml", "ask: ada", "ask: adda",
         "flows/brief.yaml:26: unknown agent 'adda' — did you mean 'ada'?"),
        ("flows/brief.yaml", "finder, checker]", "finder, checker, finer]",
         "flows/brief.yaml:15: unknown agent 'finer' — did you mean 'finder'?"),
        ("flows/brief.yaml", "    node: team.page", "    node: team.pgae", "flows/brief.yaml:30"),
        ("flows/brief.yaml", "    approve:", "    aprove:", "did you mean 'approve'?"),
        ("agents/ada.md", "role:", "rolle:", "agents/ada.md:2: 'rolle' is not known here"),
        ("moot.toml", "agents =", "agnets =", "moot.toml:6: unknown word 'agnets'"),
        ("agents/finder.md", "[library]", "[libary]", "agents/finder.md:4: "),
        ("agents/ada.md", "model: writer", "model: writr",
         "agents/ada.md:3: unknown model 'writr' — did you mean 'writer'?"),
        ("agents/ada.md", "model: writer", "model: openai",
         "agents/ada.md:3: 'openai' does not say which model; write openai/MODEL."),
        ("tools.py", "topic: str", "topic: 1", "tools.py"),
        ("nodes.py", "@node(", "@nod(", "nodes.py cannot be loaded: NameError"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_file_and_line(
    acme: Cli, file: str, before: str, after: str, said: str
) -> None:
    place = acme.folder / file
    place.write_text(place.read_text().replace(before, after, 1))
    found = acme("check")
    assert found.code == 1 and said in found.err, found.err
    if file == "agents/ada.md":
        assert acme("check", "agents").err.count(said) == 1
    if file.startswith("flows"):
        [line] = [json.loads(row) for row in acme("check", "--json", file).out.splitlines()
                  if '"ok": false' in row or '"ok":false' in row]  # fmt: skip
        assert line["file"] == file and line["line"] >= 1


def test_single_files_can_be_checked_and_none_is_said_to_be_none(acme: Cli, tmp_path: Path) -> None:
    assert "ada.md is fine" in acme("check", "agents/ada.md").out
    assert acme("check", "flows/gone.yaml").code == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    assert Cli(empty)("check").code == 5


def test_a_test_that_leaves_the_machine_fails_and_pytest_gets_its_arguments(acme: Cli) -> None:
    (acme.folder / "tests" / "test_far.py").write_text(
        "import socket\n\ndef test_far():\n    socket.create_connection(('192.0.2.1', 80), 1)\n"
    )
    far = acme("test", "-q", "-k", "far", "-p", "no:cacheprovider")
    assert far.code == 1 and "is not this machine" in far.out
    none = acme("test", "-q", "-k", "nothing_is_called_so", "-p", "no:cacheprovider")
    assert none.code == 5 and "no tests here" in none.err


def names(acme: Cli, *more: str) -> list[str]:
    return sorted(line.split("\t")[0] for line in acme("agent", "list", *more).lines())


def test_an_agent_whose_file_is_gone_is_gone_with_the_next_start(acme: Cli) -> None:
    server = ServerProcess(acme.folder, [], server_environment())
    try:
        (acme.folder / "agents" / "ada.md").unlink()
        server.restart()
        file = ("--database", str(server.database))
        assert names(acme, *file) == ["checker", "finder", "mo"]
        assert acme("agent", "remove", "mo", *file).code == 0
        assert names(acme, *file) == ["checker", "finder"]
    finally:
        server.stop()


def test_an_agent_may_name_any_model_there_is_and_the_doctor_names_those_that_are_not(
    acme: Cli,
) -> None:
    place = acme.folder / "agents" / "ada.md"
    for model, fine in (("ollama/llama3.1", True), ("writer/other", True), ("wirter", False)):
        text = place.read_text()
        place.write_text("\n".join(
            f"model: {model}" if line.startswith("model:") else line for line in text.splitlines()
        ))  # fmt: skip
        assert (acme("check").code == 0) is fine
        checks = json.loads(acme("doctor", "--json").out)["checks"]
        [found] = [row for row in checks if row["check"] == "agents"]
        said = "agents/ada.md:3: unknown model 'wirter' — did you mean 'writer'?"
        assert (said in json.dumps(found, ensure_ascii=False)) is not fine
