"""The code keeps its shape: no long files, no long functions."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_server import ROOT

LONGEST_FILE = 400
LONGEST_BODY = 40
SOURCES = sorted((ROOT / "src" / "moot").rglob("*.py"))
#: a folder inside a layer is named after a noun of the product or after a technical room
NOUNS = {
    "agent_bridge", "agents", "children", "conversations", "councils", "interrupts", "memory",
    "models", "peers", "prompts", "replay", "roster", "runs", "schedules", "search", "supervisors",
    "threads", "tools", "triggers", "webhooks", "workflows",
}  # fmt: skip
ROOMS = {
    "access", "definitions", "effects", "errors", "host", "http", "inbound", "invocation",
    "joining", "json", "nodes", "operations", "project", "seams", "server", "shared",
    "sqlite", "state", "streams", "text", "verify",
}  # fmt: skip


def bodies(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function with the length of its body, without the docstring."""
    for found in ast.walk(tree):
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
            steps = found.body[1:] if ast.get_docstring(found) else found.body
            if steps:
                yield found.name, int(steps[-1].end_lineno or 0) - steps[0].lineno + 1


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_file_and_no_function_is_too_long(file: Path) -> None:
    text = file.read_text()
    assert text.count("\n") <= LONGEST_FILE
    assert [name for name, length in bodies(ast.parse(text)) if length > LONGEST_BODY] == []


def test_folders_are_named_after_nouns_of_the_product_or_technical_rooms() -> None:
    places = {file.relative_to(ROOT / "src" / "moot").parts for file in SOURCES}
    folders = {place[1] for place in places if len(place) > 2}
    assert sorted(folders - NOUNS - ROOMS) == []
    assert sorted((NOUNS | ROOMS) - folders) == []


def test_the_command_that_starts_a_run_is_built_in_two_places() -> None:
    """One for orders of callers and triggers, and one for child runs."""
    files = [file for file in SOURCES if re.search(r"\bStartRun\(\n", file.read_text())]
    assert [file.relative_to(ROOT / "src" / "moot").as_posix() for file in files] == [
        "core/children/decide.py", "engine/start.py",
    ]  # fmt: skip


def test_every_test_file_can_be_told_from_the_others_by_its_name() -> None:
    """Folders of tests are not packages: two files of one name would be taken for one."""
    plain = [file for file in (ROOT / "tests").rglob("test_*.py") if not packed(file)]
    names = Counter(file.name for file in plain)
    assert [name for name, times in names.items() if times > 1] == []


def packed(file: Path) -> bool:
    return (file.parent / "__init__.py").exists()
