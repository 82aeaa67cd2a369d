"""The table of node types: built in, installed, from a file."""

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from moot.config import user_files
from moot.conformance.nodes.mock_nodes import PROVIDERS
from moot.core.workflows.node_types import NodeKind, NodeType
from moot.engine.nodes import registry
from tests.support.engine.node_calls import TYPES

FUNCTIONS = {
    NodeKind.INSTANT: "instant",
    NodeKind.TIMER: "duration",
    NodeKind.CHILD: "child",
    NodeKind.ACTIVITY: "activity",
    NodeKind.GATE: "gate",
}


@pytest.mark.parametrize("type_", TYPES.values(), ids=lambda type_: type_.type_id)
def test_exactly_the_function_of_the_kind_is_set(type_: NodeType) -> None:
    given = {name for name in FUNCTIONS.values() if getattr(type_, name) is not None}
    assert given == {FUNCTIONS[type_.kind]}


def test_types_of_the_test_suite_come_only_with_the_flag() -> None:
    normal, all_ = registry.built_in_types(), TYPES
    assert set(normal) < set(all_)
    models = {"core.ai.callPrompt", "core.ai.structuredOutput"}
    assert all("onformance" in name or name in models for name in set(all_) - set(normal))
    assert not {"conformance.secret.echo", "conformance.cost.emit"} & set(all_)


def test_the_mandatory_mock_provider_is_there() -> None:
    assert "stream-text" in PROVIDERS


GOOD = """
from moot import node

@node("acme.shout")
def shout(text: str) -> str:
    return text.upper()

@node("acme.double", pure=True)
def double(n: int) -> int:
    return 2 * n

again = shout
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "nodes.py"
    path.write_text(text)
    return path


def test_a_file_gives_its_functions(tmp_path: Path) -> None:
    found = registry.types_from_file(written(tmp_path, GOOD))
    assert {name: type_.kind for name, type_ in found.items()} == {
        "acme.shout": NodeKind.ACTIVITY,
        "acme.double": NodeKind.INSTANT,
    }


def test_a_file_read_again_gives_what_stands_there_now(tmp_path: Path) -> None:
    registry.types_from_file(written(tmp_path, GOOD))
    changed = GOOD.replace("acme.double", "acme.triple_the_number")
    assert "acme.triple_the_number" in registry.types_from_file(written(tmp_path, changed))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def broken(:", "SyntaxError"),
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ('from moot import node\n@node("core.mine")\ndef f() -> None: ...', "belong to the host"),
        (GOOD.replace("acme.double", "acme.shout"), "'acme.shout' is defined twice"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=complaint) as caught:
        registry.types_from_file(path)
    assert "nodes.py" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no Python file"):
        registry.types_from_file(tmp_path / "none.py")


class Entry:
    """An entry point that gives what the test says."""

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.value, self.found = name, f"package:{name}", found

    def load(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def installed(monkeypatch: pytest.MonkeyPatch, *entries: Entry) -> None:
    def entry_points(group: str) -> tuple[Entry, ...]:
        assert group == "moot.nodes"
        return entries

    monkeypatch.setattr(user_files, "entry_points", entry_points)


def example(type_id: str) -> NodeType:
    return NodeType(type_id=type_id, kind=NodeKind.TIMER, duration=lambda call: 0)


def test_nothing_installed_gives_nothing() -> None:
    assert not list(importlib.metadata.entry_points(group="moot.nodes"))
    assert registry.types_from_entry_points() == {}


def test_packages_give_a_type_a_list_or_a_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = user_files.load_user_module(written(tmp_path, GOOD))
    installed(
        monkeypatch,
        Entry("one", example("acme.one")),
        Entry("some", [example("acme.two"), example("acme.three")]),
        Entry("module", module),
    )
    assert set(registry.types_from_entry_points()) == {
        "acme.one", "acme.two", "acme.three", "acme.shout", "acme.double",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        (ImportError("no such thing"), "ImportError: no such thing"),
        ("a text", "no node type"),
        (example("core.noop"), "belong to the host"),
        ([example("acme.a"), example("acme.a")], "defined twice"),
    ],
)
def test_a_broken_package_is_named(
    monkeypatch: pytest.MonkeyPatch, found: Any, complaint: str
) -> None:
    installed(monkeypatch, Entry("bad", found))
    with pytest.raises(ValueError, match=complaint) as caught:
        registry.types_from_entry_points()
    assert "'bad' (package:bad)" in str(caught.value)
