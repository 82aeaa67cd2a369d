"""Docstrings, comments, errors and docs are plain English: banned words only ever become fewer.

Module and class docstrings have none. For the rest ``language_baseline.json`` holds how many each
kind of text still has; when you remove some, lower the number.
"""

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from real_server import ROOT

BASELINE = Path(__file__).with_name("language_baseline.json")
BANNED = re.compile(
    r"\b(?:whoever|whomever|somebody|nobody|anew|told|hired|manners|"
    r"is told|are told|was told|is said|stands? (?:in|where|for itself)|"
    r"is no (?:name|time|number|word|one)|there is none|goes on|go on|lets? .{1,20} be|"
    r"of whom|by which|of what|to whom|he is|he may|his own)\b",
    re.IGNORECASE,
)
#: a clause without a head: "What is waited for, given the log."
HEADLESS = re.compile(r"^(?:What|Who|Whom|Whose|Whether|How|Where|Whatever|Of what)\b(?!.*\?)")


def banned_in(text: str, headed: bool) -> list[str]:
    found = [match[0].lower() for match in BANNED.finditer(text)]
    first = text.strip().partition("\n")[0]
    return [*found, first] if headed and HEADLESS.match(first) else found


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Every docstring with its kind and line."""
    for node in ast.walk(tree):
        kinds = {ast.Module: "modules", ast.ClassDef: "classes"}
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield kinds.get(type(node), "functions"), text, getattr(node, "lineno", 1)


def comments(source: str) -> Iterator[tuple[str, str, int]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield "comments", token.string.lstrip("#: "), token.start[0]


def offenders() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {kind: [] for kind in (*KINDS, "docs")}
    for path in sorted((ROOT / "src" / "moot").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for kind, text, line in (*docstrings(ast.parse(source)), *comments(source)):
            words = banned_in(text, kind != "comments")
            found[kind] += [f"{path.relative_to(ROOT)}:{line} {word}" for word in words]
    for path in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"):
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = [match[0] for match in BANNED.finditer(text)]
            found["docs"] += [f"{path.relative_to(ROOT)}:{number} {word}" for word in words]
    return found


KINDS = ("modules", "classes", "functions", "comments")


def test_banned_words_become_fewer() -> None:
    found = offenders()
    allowed: dict[str, int] = json.loads(BASELINE.read_text(encoding="utf-8"))
    over = {kind: places for kind, places in found.items() if len(places) > allowed[kind]}
    assert over == {}
    counts = Counter({kind: len(places) for kind, places in found.items()})
    assert dict(counts) == allowed, "fewer than the baseline says: lower it"


def test_module_and_class_docstrings_have_no_banned_words() -> None:
    found = offenders()
    assert found["modules"] == []
    assert found["classes"] == []


def test_module_docstrings_begin_with_a_short_line() -> None:
    """At most 80 characters, and more than the module's own name."""
    poor = []
    for path in sorted((ROOT / "src" / "moot").rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first = text.partition("\n")[0]
        if not 12 <= len(first) <= 80:
            poor.append(f"{path.relative_to(ROOT)}: {first}")
    assert poor == []
