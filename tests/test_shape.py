"""The code keeps its shape: no long files, no long functions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers import ROOT

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
    "joining", "json", "nodes", "operations", "payloads", "project", "seams", "sentences", "server",
    "shared", "sqlite", "state", "streams", "text", "verify",
}  # fmt: skip


def bodies(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function with the length of its body, without the docstring."""
    for found in ast.walk(tree):
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
            steps = found.body[1:] if ast.get_docstring(found) else found.body
            if steps:
                yield found.name, int(steps[-1].end_lineno or 0) - steps[0].lineno + 1


def test_no_file_is_too_long() -> None:
    lengths = {name_of(file): file.read_text().count("\n") for file in SOURCES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_folders_are_named_after_nouns_of_the_product_or_technical_rooms() -> None:
    places = {file.relative_to(ROOT / "src" / "moot").parts for file in SOURCES}
    folders = {place[1] for place in places if len(place) > 2}
    assert sorted(folders - NOUNS - ROOMS) == []
    assert sorted((NOUNS | ROOMS) - folders) == []


def test_no_function_is_too_long() -> None:
    assert [
        f"{name_of(file)}: {function} has {length} lines"
        for file in SOURCES
        for function, length in bodies(ast.parse(file.read_text()))
        if length > LONGEST_BODY
    ] == []


def test_the_command_that_starts_a_run_is_built_in_two_places() -> None:
    """One for orders of callers and triggers, and one for child runs."""
    files = [file for file in SOURCES if re.search(r"\bStartRun\(\n", file.read_text())]
    assert [file.relative_to(ROOT / "src" / "moot").as_posix() for file in files] == [
        "core/children/decide.py", "engine/start.py",
    ]  # fmt: skip


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))
