"""Add or remove one table of moot.toml; every other byte stays as it is."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from moot.config.project import split_toml_key

_HEADER = re.compile(r"\s*\[\[?(.*?)\]\]?\s*(#.*)?$")


class NotEditable(ValueError):
    """The file is written in a way that only its author can change."""


def add_table(text: str, path: tuple[str, ...], values: Mapping[str, str]) -> str:
    """Return the file with one more table at its end. Raise NotEditable."""
    lines = [f"[{'.'.join(_toml_key(part) for part in path)}]"]
    lines += [f"{_toml_key(name)} = {_toml_value(value)}" for name, value in values.items()]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    edited = text + gap + "\n".join(lines) + "\n"
    expected = tomllib.loads(text)
    inner = expected
    for part in path[:-1]:
        inner = inner.setdefault(part, {})
    inner[path[-1]] = dict(values)
    return _verify_edit(edited, expected, path)


def remove_table(text: str, path: tuple[str, ...]) -> str:
    """Return the file without the table and its subtables. Raise NotEditable.

    Comments above its heading are kept.
    """
    kept_lines: list[str] = []
    table_lines: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line.rstrip("\r\n")):
            was_inside, inside = inside, split_toml_key(header[1])[: len(path)] == path
            if was_inside and not inside:
                kept_lines.extend(_trailing_comments(table_lines))
            if inside:
                table_lines = []
        if inside:
            table_lines.append(line)
        else:
            kept_lines.append(line)
    expected = tomllib.loads(text)
    inner: Any = expected
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]
    return _verify_edit("".join(kept_lines), expected, path)


def _trailing_comments(table_lines: list[str]) -> list[str]:
    """Return the comments at the end of a table, which belong to the next one."""
    tail: list[str] = []
    for line in reversed(table_lines[1:]):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        tail.insert(0, line)
    while tail and not tail[0].strip():
        tail.pop(0)
    return tail


def _verify_edit(edited: str, expected: Mapping[str, object], path: tuple[str, ...]) -> str:
    """Return the edited text if it has exactly the expected values. Raise NotEditable otherwise."""
    try:
        parsed = tomllib.loads(edited)
    except tomllib.TOMLDecodeError:
        parsed = None
    if parsed is None or _without_empty_tables(parsed) != _without_empty_tables(expected):
        raise NotEditable(f"[{'.'.join(path)}] cannot be changed by a program here")
    return edited


def _without_empty_tables(value: Any) -> Any:
    """Drop empty tables, because it makes no difference whether they are named."""
    if not isinstance(value, dict):
        return value
    inner = {name: _without_empty_tables(part) for name, part in value.items()}
    return {name: part for name, part in inner.items() if part != {}}


def _toml_value(value: str) -> str:
    """Return the value as JSON, which is TOML here except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
