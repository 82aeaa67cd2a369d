"""One table added to moot.toml or taken out; every other byte of the file stays as it is."""

import json
import re
import tomllib
from typing import Any

from moot.config.project import key_parts

_HEADER = re.compile(r"\s*\[\[?(.*?)\]\]?\s*(#.*)?$")


class NotEditable(ValueError):
    """The file is written in a way that only its author can change."""


def with_table(text: str, path: tuple[str, ...], values: dict[str, Any]) -> str:
    """The file with one more table at its end."""
    lines = [f"[{'.'.join(_key(part) for part in path)}]"]
    lines += [f"{_key(name)} = {_value(value)}" for name, value in values.items()]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    edited = text + gap + "\n".join(lines) + "\n"
    wanted = tomllib.loads(text)
    inner = wanted
    for part in path[:-1]:
        inner = inner.setdefault(part, {})
    inner[path[-1]] = values
    return _sure(edited, wanted, path)


def without_table(text: str, path: tuple[str, ...]) -> str:
    """The file without the table and those below it; what stands above its heading is kept."""
    kept: list[str] = []
    dropped: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line.rstrip("\r\n")):
            was, inside = inside, key_parts(header[1])[: len(path)] == path
            if was and not inside:
                kept.extend(_remarks(dropped))
            if inside:
                dropped = []
        if inside:
            dropped.append(line)
        else:
            kept.append(line)
    wanted = tomllib.loads(text)
    inner: Any = wanted
    for part in path[:-1]:
        inner = inner[part]
    del inner[path[-1]]
    return _sure("".join(kept), wanted, path)


def _remarks(dropped: list[str]) -> list[str]:
    """Comments at the end of a table belong to the next one."""
    tail: list[str] = []
    for line in reversed(dropped[1:]):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        tail.insert(0, line)
    while tail and not tail[0].strip():
        tail.pop(0)
    return tail


def _sure(edited: str, wanted: dict[str, Any], path: tuple[str, ...]) -> str:
    """The edited text, if it says what it should and nothing else."""
    try:
        found = tomllib.loads(edited)
    except tomllib.TOMLDecodeError:
        found = None
    if found is None or _bare(found) != _bare(wanted):
        raise NotEditable(f"[{'.'.join(path)}] cannot be changed by a program here")
    return edited


def _bare(value: Any) -> Any:
    """Without tables that have nothing in them: whether they are named makes no difference."""
    if not isinstance(value, dict):
        return value
    inner = {name: _bare(part) for name, part in value.items()}
    return {name: part for name, part in inner.items() if part != {}}


def _value(value: Any) -> str:
    """JSON is TOML here, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
