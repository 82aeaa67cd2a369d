"""Read and check ``moot.toml``, the project's file. Errors name file and line."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from moot.config.models import ModelEntry, Price
from moot.config.tools import HttpEntry, McpEntry
from moot.core.text.nearest import nearest_word

SECTIONS = ("server", "limits", "models", "prices", "tools", "mcp")
#: settings that are limits; all others belong under [server]
LIMITS = re.compile(r"max_.*|rate_limit|queue_limit|tenant_.*_per_day")
#: settings that are paths, relative to the folder of the file
PATHS = ("database", "workflows", "agents", "nodes", "tools", "openwop_dir", "cassette")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


class ProjectConfig(Struct, frozen=True, kw_only=True):
    """The content of the file; every part is optional."""

    file: Path | None = None
    settings: dict[str, object] = {}
    models: dict[str, ModelEntry] = {}
    prices: dict[str, Price] = {}
    tools: dict[str, HttpEntry] = {}
    mcp: dict[str, McpEntry] = {}


class ProjectError(ValueError):
    """A mistake in the file, with its line."""


def read_project(file: Path, settings: type[Struct]) -> ProjectConfig:
    """Return the parsed file. Raise ProjectError with file, line, mistake and suggestion."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(f"{file}: it cannot be read: {error}") from None
    return parse_project(text, file, settings)


def parse_project(text: str, file: Path, settings: type[Struct]) -> ProjectConfig:
    source = _SourceLines(file, text)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise source.syntax_error(error) from None
    for section, table in tables.items():
        source.check_word(section, SECTIONS, (), "the file")
        if not isinstance(table, dict):
            raise source.error((section,), f"[{section}] must be a table")
    return ProjectConfig(
        file=file,
        settings=_read_settings(tables, settings, source),
        models=_read_entries(tables.get("models", {}), ModelEntry, ("models",), source),
        prices=_read_entries(tables.get("prices", {}), Price, ("prices",), source),
        tools=_read_entries(tables.get("tools", {}), HttpEntry, ("tools",), source),
        mcp=_read_entries(tables.get("mcp", {}), McpEntry, ("mcp",), source),
    )


def _read_settings(
    tables: dict[str, Any], settings: type[Struct], source: "_SourceLines"
) -> dict[str, object]:
    names = settings.__struct_fields__
    limits = [name for name in names if LIMITS.fullmatch(name)]
    sections = {"server": [name for name in names if name not in limits], "limits": limits}
    values: dict[str, object] = {}
    for section, allowed in sections.items():
        table = tables.get(section, {})
        for name in table:
            if name in names and name not in allowed:
                other = next(one for one in sections if one != section)
                raise source.error((section, name), f"'{name}' belongs under [{other}]")
            source.check_word(name, allowed, (section,), f"[{section}]")
        _convert_table(table, settings, (section,), source)
        values.update(table)
    for name in PATHS:
        if isinstance(path := values.get(name), str) and source.file.parent != Path():
            values[name] = str(source.file.parent / path)
    return values


def _read_entries(
    tables: Mapping[str, object], kind: type[Any], path: tuple[str, ...], source: "_SourceLines"
) -> dict[str, Any]:
    """Return entries by name, as in [models.NAME] or [prices."PATTERN"]."""
    entries = {}
    for name, table in tables.items():
        here = (*path, name)
        if not isinstance(table, dict):
            raise source.error(here, f"[{'.'.join(here)}] must be a table")
        if path != ("prices",) and not NAME.fullmatch(name):
            raise source.error(here, f"'{name}' is no name: use letters, digits, _ and -")
        entries[name] = _convert_table(table, kind, here, source)
        if kind is ModelEntry:
            _check_model(entries[name], here, source)
        elif kind in (HttpEntry, McpEntry) and (problem := entries[name].problem()):
            raise source.error((*here, problem[0]), problem[1])
    return entries


def _check_model(entry: ModelEntry, path: tuple[str, ...], source: "_SourceLines") -> None:
    if entry.provider != "demo" and (entry.script or entry.fail):
        word = "script" if entry.script else "fail"
        raise source.error((*path, word), f"'{word}' is for provider = \"demo\" only")
    if entry.url is not None and not re.match(r"https?://[^\s/@]+(/\S*)?$", entry.url):
        message = "url must begin with http:// or https:// and hold no key or password"
        raise source.error((*path, "url"), message)


def _convert_table(
    table: Mapping[str, object], kind: type[Any], path: tuple[str, ...], source: "_SourceLines"
) -> Any:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        inner = tuple(part for part in re.split(r"[.\[\]`]+", place) if part and part != "...")
        unknown = re.search(r"unknown field `(.*)`", message)
        if unknown and not inner:
            source.check_word(unknown[1], kind.__struct_fields__, path, f"[{'.'.join(path)}]")
        if unknown:
            inner = (*inner, unknown[1])
        text = f"{'.'.join(inner) or 'the table'}: {message}"
        raise source.error((*path, *inner), text) from None


class _SourceLines:
    """The lines of the file, to find the line of a value."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self._lines = text.splitlines()

    def error(self, path: tuple[str, ...], message: str) -> ProjectError:
        return ProjectError(f"{self.file}:{self.line_of(path)}: {message}")

    def syntax_error(self, error: tomllib.TOMLDecodeError) -> ProjectError:
        message = str(error)
        place = re.search(r"\(at line (\d+)[^)]*\)", message)
        line = int(place[1]) if place else max(1, len(self._lines))
        bare = re.sub(r"\s*\(at .*\)", "", message)
        return ProjectError(f"{self.file}:{line}: this is not TOML: {bare}")

    def check_word(
        self, word: str, words: Iterable[str], path: tuple[str, ...], place: str
    ) -> None:
        """Raise ProjectError for a word that is not one of ``words``."""
        choices = list(words)
        if word not in choices:
            similar = nearest_word(word, choices)
            listed = ", ".join(choices)
            hint = f" — did you mean '{similar}'?" if similar else f" — use one of {listed}"
            raise self.error((*path, word), f"unknown word '{word}' in {place}{hint}")

    def line_of(self, path: tuple[str, ...]) -> int:
        """Return the line of the deepest part of the path that the file has, else 1."""
        best, depth = 1, 0
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, start=1):
            if header := re.match(r"\s*\[\[?(.*?)\]\]?\s*(#.*)?$", line):
                table = split_toml_key(header[1])
                here = table
            elif assigned := re.match(r"\s*([^=#]+?)\s*=", line):
                here = (*table, *split_toml_key(assigned[1]))
            else:
                continue
            if here == path[: len(here)] and len(here) > depth:
                best, depth = number, len(here)
        return best


def split_toml_key(text: str) -> tuple[str, ...]:
    """Split a TOML key: ``models."a.b"`` has two parts."""
    parts = re.findall(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s.\"']+)", text)
    return tuple(double or single or bare for double, single, bare in parts)
