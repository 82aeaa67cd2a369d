"""Agents by file: what is wrong with one is said with its line, and the others are taken."""

from pathlib import Path

import pytest

from moot.agents.definitions.manifest import Agent
from moot.agents.definitions.registry import AgentRegistry, read_agents_folder
from moot.cli import moot
from moot.cli.shared.errors import ExitCode
from moot.clock import SystemClock
from moot.core.errors import Conflict
from moot.store.memory.store import MemoryStore


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "agents"
    found.mkdir()
    (found / "ada.md").write_text("---\nrole: first\n---\nYou look.\n")
    (found / "zoe.md").write_text("---\nrole: second\nname: ada\n---\nYou look.\n")
    monkeypatch.chdir(tmp_path)
    return found


async def test_the_second_file_of_one_name_is_left_out_at_every_start(folder: Path) -> None:
    agents = AgentRegistry(MemoryStore(), SystemClock())
    for _ in range(2):
        [problem] = await agents.load("t", folder)
        assert problem.startswith("zoe.md:3: 'ada' is defined in ada.md, too")
    assert (await agents.must_find("t", "ada")).role == "first"
    assert len(await agents.history("t", "ada")) == 1


def test_moot_check_names_the_second_file_and_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(read_agents_folder(folder)[0]) == {"ada.md"}
    assert moot.main(["check"], standalone_mode=False) == ExitCode.FAILED
    found = capsys.readouterr()
    assert "zoe.md:3: 'ada' is defined in" in found.out + found.err


async def test_a_file_whose_id_is_somebodys_is_left_out_and_the_others_are_taken(
    folder: Path,
) -> None:
    (folder / "zoe.md").write_text("---\nmanifest: local.agents.ada\n---\nYou look.\n")
    agents = AgentRegistry(MemoryStore(), SystemClock())
    [problem] = await agents.load("t", folder)
    assert problem.startswith("zoe.md:1: 'local.agents.ada' is the id of the agent 'ada'")
    with pytest.raises(Conflict):
        await agents.put("t", Agent(name="zoe", manifest="local.agents.ada"), "x")


@pytest.mark.parametrize("line", ['persona: "A\\u202eda"', 'role: "a\\0b"'])
def test_what_no_reader_would_see_is_named_with_its_line(folder: Path, line: str) -> None:
    (folder / "zoe.md").write_text(f"---\nmodel: demo\n{line}\n---\nYou look.\n")
    [problem] = read_agents_folder(folder)[1]
    assert problem.startswith("zoe.md:3: a character that does not show")


@pytest.mark.parametrize(
    ("line", "said"),
    [("name: Bad Name!", "small letters"), ("memory: all", "none, run, long-term")],
)
def test_what_has_a_pattern_is_explained_in_words(folder: Path, line: str, said: str) -> None:
    (folder / "zoe.md").write_text(f"---\nmodel: demo\n{line}\n---\nYou look.\n")
    [problem] = read_agents_folder(folder)[1]
    assert problem.startswith("zoe.md:3: ")
    assert said in problem
    assert "regex" not in problem
