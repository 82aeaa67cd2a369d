"""The properties are tried on the same examples whatever was run before: one tree, one answer."""

import importlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st


def examples() -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []

    @given(st.integers(), st.text())
    def look(number: int, text: str) -> None:
        found.append((number, text))

    look()
    return found


@pytest.mark.skipif("MOOT_EXPLORE" in os.environ, reason="it seeks new examples")
def test_a_module_that_was_read_meanwhile_changes_no_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = examples()
    numbers = ", ".join(str(1_000_003 * number) for number in range(1, 500))
    words = ", ".join(f"'word {number}'" for number in range(500))
    (tmp_path / "many_constants.py").write_text(f"NUMBERS = [{numbers}]\nWORDS = [{words}]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("many_constants")
    assert examples() == before
