"""ARCHITECTURE.md is a true map: every file, folder and name in it exists."""

import re
import tomllib

from tests.support.servers import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "moot"


def test_every_file_that_the_map_names_exists() -> None:
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", PAGE))
    assert len(named) > 60
    assert sorted(name for name in named if not (SOURCE / name).exists()) == []


def test_every_folder_of_the_first_level_is_on_the_map() -> None:
    tree = PAGE[PAGE.index("src/moot/\n") :].partition("```")[0]
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert {name for name in folders if f"  {name}/" not in tree} == set()


def test_every_name_in_brackets_is_defined_in_its_file() -> None:
    pairs = re.findall(r"`([\w/]+\.py)` \(`([\w.]+)`\)", PAGE)
    assert len(pairs) >= 5
    missing = [
        (file, name)
        for file, name in pairs
        if f" {name.rpartition('.')[2]}(" not in (SOURCE / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_commands_may_use_four_parts_of_the_core() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [commands] = [each for each in contracts["contracts"] if each["name"].startswith("Commands")]
    forbidden = {
        name.removeprefix("moot.core.")
        for name in commands["forbidden_modules"]
        if name.startswith("moot.core.")
    }
    core = SOURCE / "core"
    parts = {path.stem for path in core.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert (
        parts - {"__init__", "__pycache__", "events", "payloads", "sentences", "text"} == forbidden
    )
