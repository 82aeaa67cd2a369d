"""The code keeps its shape: no long files, no long functions, a public surface that is a list."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import moot
from tests.support.servers import ROOT

LONGEST_FILE = 400
LONGEST_BODY = 40
SOURCES = sorted((ROOT / "src" / "moot").rglob("*.py"))


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


def test_no_function_is_too_long() -> None:
    assert [
        f"{name_of(file)}: {function} has {length} lines"
        for file in SOURCES
        for function, length in bodies(ast.parse(file.read_text()))
        if length > LONGEST_BODY
    ] == []


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def test_what_can_be_imported_is_what_is_listed() -> None:
    assert moot.__all__ == [
        "ApiError", "AsyncClient", "Client", "Completed", "Failed", "NodeContext", "__version__",
        "node", "tool",
    ]  # fmt: skip
    for name in moot.__all__:
        assert getattr(moot, name)
    with pytest.raises(AttributeError):
        moot.nothing  # noqa: B018
