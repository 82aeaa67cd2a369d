"""``moot.toml``: the project's file, read whole and checked; a mistake is named with its line."""

import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from moot.agents.models.config import ModelEntry, Price
from moot.agents.tools.config import HttpEntry, McpEntry
from moot.clock import Clock
from moot.core.text.nearest import nearest

if TYPE_CHECKING:
    from moot.agents.models.registry import Book
    from moot.agents.tools.registry import Shelf
    from moot.config.settings import Settings

SECTIONS = ("server", "limits", "models", "prices", "tools", "mcp")
#: settings that bound something; all others stand under [server]
LIMITS = re.compile(r"max_.*|rate_limit|queue_limit|tenant_.*_per_day")
#: settings that are paths, which are meant from where the file lies
PATHS = ("database", "workflows", "agents", "nodes", "tools", "openwop_dir", "cassette")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


class Project(Struct, frozen=True, kw_only=True):
    """What the file says; all of it may be absent."""

    file: Path | None = None
    settings: dict[str, Any] = {}
    models: dict[str, ModelEntry] = {}
    prices: dict[str, Price] = {}
    tools: dict[str, HttpEntry] = {}
    mcp: dict[str, McpEntry] = {}


class ProjectError(ValueError):
    """A mistake in the file, and where it is."""


def book_of(
    found: Project | None,
    settings: "Settings",
    secret: Callable[[str], str | None],
    clock: Clock,
    again: Callable[[], Project | None] | None = None,
) -> "Book":
    """The models of the project, spoken to as the settings say; with ``again``, which reads the
    project anew, also those that are added to it while this process runs."""
    from moot.agents.models.registry import Book, Ways

    ways = Ways(mode=settings.models_mode, cassette=settings.cassette, demo_wps=settings.demo_wps)
    project = found or Project()
    later = None if again is None else lambda: _models_and_prices(again() or Project())
    return Book(project.models, secret, clock, ways, project.prices, later=later)


def _models_and_prices(project: Project) -> tuple[dict[str, ModelEntry], dict[str, Price]]:
    return project.models, project.prices


def shelf_of(
    found: Project | None, settings: "Settings", secret: Callable[[str], str | None]
) -> "Shelf":
    """The tools of the project: functions, addresses, servers. Raises ValueError with the file."""
    from moot.agents.tools import functions, http
    from moot.agents.tools.mcp import McpServer
    from moot.agents.tools.registry import Shelf
    from moot.net.outbound import Outbound

    project = found or Project()
    known = functions.from_entry_points()
    for place in filter(None, (settings.nodes, settings.tools)):
        for tool, source in functions.from_path(Path(place)).values():
            functions.add(known, [tool], source)
    outbound = Outbound(settings.allow_private_targets)
    return Shelf(
        known,
        {
            name: http.http_tool(name, each, outbound, secret)
            for name, each in project.tools.items()
        },
        {name: McpServer(name, entry, secret) for name, entry in project.mcp.items()},
        outbound,
    )


def read(file: Path, settings: type[Struct]) -> Project:
    """Raises ProjectError: file, line, what is wrong, the word that was most likely meant."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(f"{file}: it cannot be read: {error}") from None
    return parse(text, file, settings)


def parse(text: str, file: Path, settings: type[Struct]) -> Project:
    where = _Where(file, text)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise where.unreadable(error) from None
    for section, table in found.items():
        where.known(section, SECTIONS, (), "the file")
        if not isinstance(table, dict):
            raise where.error((section,), f"[{section}] must be a table")
    return Project(
        file=file,
        settings=_settings(found, settings, where),
        models=_tables(found.get("models", {}), ModelEntry, ("models",), where),
        prices=_tables(found.get("prices", {}), Price, ("prices",), where),
        tools=_tables(found.get("tools", {}), HttpEntry, ("tools",), where),
        mcp=_tables(found.get("mcp", {}), McpEntry, ("mcp",), where),
    )


def _settings(found: dict[str, Any], settings: type[Struct], where: "_Where") -> dict[str, Any]:
    names = settings.__struct_fields__
    sections = {
        "server": [name for name in names if not LIMITS.fullmatch(name)],
        "limits": [name for name in names if LIMITS.fullmatch(name)],
    }
    given: dict[str, Any] = {}
    for section, known in sections.items():
        table = found.get(section, {})
        for name in table:
            if name in names and name not in known:
                other = next(one for one in sections if one != section)
                raise where.error((section, name), f"'{name}' belongs under [{other}]")
            where.known(name, known, (section,), f"[{section}]")
        _checked(table, settings, (section,), where)
        given.update(table)
    for name in PATHS:
        if isinstance(given.get(name), str) and where.file.parent != Path():
            given[name] = str(where.file.parent / given[name])
    return given


def _tables(
    found: dict[str, Any], kind: type[Any], path: tuple[str, ...], where: "_Where"
) -> dict[str, Any]:
    """Tables by name: [models.NAME], [prices."PATTERN"]."""
    tables = {}
    for name, table in found.items():
        here = (*path, name)
        if not isinstance(table, dict):
            raise where.error(here, f"[{'.'.join(here)}] must be a table")
        if path != ("prices",) and not NAME.fullmatch(name):
            raise where.error(here, f"'{name}' is no name: use letters, digits, _ and -")
        tables[name] = _checked(table, kind, here, where)
        if kind is ModelEntry:
            _complete(tables[name], here, where)
        elif isinstance(tables[name], HttpEntry | McpEntry) and (wrong := tables[name].problem()):
            raise where.error((*here, wrong[0]), wrong[1])
    return tables


def _complete(entry: ModelEntry, path: tuple[str, ...], where: "_Where") -> None:
    if entry.provider != "demo" and (entry.script or entry.fail):
        word = "script" if entry.script else "fail"
        raise where.error((*path, word), f"'{word}' is for provider = \"demo\" only")
    if entry.url is not None and not re.match(r"https?://[^\s/@]+(/\S*)?$", entry.url):
        said = "url must begin with http:// or https:// and hold no key or password"
        raise where.error((*path, "url"), said)


def _checked(table: dict[str, Any], kind: type[Any], path: tuple[str, ...], where: "_Where") -> Any:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$")
        inner = tuple(part for part in re.split(r"[.\[\]`]+", place) if part and part != "...")
        unknown = re.search(r"unknown field `(.*)`", said)
        if unknown and not inner:
            where.known(unknown[1], kind.__struct_fields__, path, f"[{'.'.join(path)}]")
        if unknown:
            inner = (*inner, unknown[1])
        raise where.error((*path, *inner), f"{'.'.join(inner) or 'the table'}: {said}") from None


class _Where:
    """Finds the line a value stands in."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self._lines = text.splitlines()

    def error(self, path: tuple[str, ...], message: str) -> ProjectError:
        return ProjectError(f"{self.file}:{self.line_of(path)}: {message}")

    def unreadable(self, error: tomllib.TOMLDecodeError) -> ProjectError:
        said = str(error)
        found = re.search(r"\(at line (\d+)[^)]*\)", said)
        line = int(found[1]) if found else max(1, len(self._lines))
        bare = re.sub(r"\s*\(at .*\)", "", said)
        return ProjectError(f"{self.file}:{line}: this is not TOML: {bare}")

    def known(self, word: str, words: Iterable[str], path: tuple[str, ...], place: str) -> None:
        """Raises for a word that is not one of these."""
        choices = list(words)
        if word not in choices:
            meant = nearest(word, choices)
            listed = ", ".join(choices)
            hint = f" — did you mean '{meant}'?" if meant else f" — use one of {listed}"
            raise self.error((*path, word), f"unknown word '{word}' in {place}{hint}")

    def line_of(self, path: tuple[str, ...]) -> int:
        """The deepest part of the path that is found; the first line where nothing is."""
        best, depth = 1, 0
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, start=1):
            if header := re.match(r"\s*\[\[?(.*?)\]\]?\s*(#.*)?$", line):
                table = key_parts(header[1])
                here = table
            elif assigned := re.match(r"\s*([^=#]+?)\s*=", line):
                here = (*table, *key_parts(assigned[1]))
            else:
                continue
            if here == path[: len(here)] and len(here) > depth:
                best, depth = number, len(here)
        return best


def key_parts(text: str) -> tuple[str, ...]:
    """``models."a.b"`` is two words."""
    found = re.findall(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s.\"']+)", text)
    return tuple(double or single or bare for double, single, bare in found)
