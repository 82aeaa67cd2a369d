"""Print how readable the source tree is, in figures with their bars: ``python -m tools.shape``.

The exit code is 1 when ``--check`` is given and a bar is missed.
"""

import argparse
import ast
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
#: the modules that may spell the names of events
CATALOGUE = ("moot.core.payloads",)
#: a module of at most this many lines with one importer is a crumb
CRUMB_LINES = 40
#: a path is over when the host has been quiet for so long
QUIET_S = 0.4


class Module(NamedTuple):
    """One source file."""

    name: str
    path: Path
    text: str
    tree: ast.Module


class Figure(NamedTuple):
    """One line of the table; ``offenders`` are printed with ``--list``."""

    name: str
    value: int
    bar: int
    offenders: list[str]


def read_modules(source: Path = SOURCE) -> list[Module]:
    modules = []
    for path in sorted((source / "moot").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(name, path, text, ast.parse(text)))
    return modules


def is_any_dict(node: ast.AST) -> bool:
    """Whether the node is the type ``dict[str, Any]``."""
    return isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]"


def any_dict_aliases(modules: list[Module]) -> set[tuple[str, str]]:
    """Return module and name of every alias of ``dict[str, Any]``."""
    return {
        (module.name, target.id)
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.Assign) and is_any_dict(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def aliases_in(module: Module, aliases: set[tuple[str, str]]) -> set[str]:
    """Return the aliases that the module defines or imports, by the names it uses."""
    own = {name for home, name in aliases if home == module.name}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            own |= {a.asname or a.name for a in node.names if (node.module, a.name) in aliases}
    return own


def count_any_dicts(modules: list[Module]) -> Figure:
    aliases = any_dict_aliases(modules)
    places = []
    for module in modules:
        own = aliases_in(module, aliases)
        for node in ast.walk(module.tree):
            used = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            if is_any_dict(node) or (used and node.id in own):
                places.append(f"{module.name}:{node.lineno}")
    return Figure("dict[str, Any] and its aliases", len(places), 400, places)


def event_names() -> set[str]:
    from moot.core.catalogue import CATALOGUE as ROWS

    return {row.name for row in ROWS}


def count_event_strings(modules: list[Module]) -> Figure:
    names = event_names()
    places = [
        f"{module.name}:{node.lineno} {node.value}"
        for module in modules
        if not module.name.startswith(CATALOGUE)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]
    return Figure("event names spelled outside the catalogue", len(places), 0, places)


def count_double_classes(modules: list[Module]) -> Figure:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module.name)
    doubles = [f"{name}: {', '.join(places)}" for name, places in homes.items() if len(places) > 1]
    return Figure("class names used twice or more", len(doubles), 20, sorted(doubles))


def importers(modules: list[Module]) -> dict[str, set[str]]:
    names = {module.name for module in modules}
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for target in imported_modules(module, names):
            if target != module.name:
                found[target].add(module.name)
    return found


def imported_modules(module: Module, names: set[str]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module in names:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in names else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)


def count_crumbs(modules: list[Module]) -> Figure:
    known = importers(modules)
    crumbs = [
        f"{module.name} <- {next(iter(known[module.name]))}"
        for module in modules
        if module.path.name != "__init__.py"
        and module.text.count("\n") <= CRUMB_LINES
        and len(known[module.name]) == 1
    ]
    return Figure(f"modules of <= {CRUMB_LINES} lines with one importer", len(crumbs), 0, crumbs)


def count_aliases(modules: list[Module]) -> Figure:
    aliases = [
        f"{module.name}:{node.lineno} {alias.name} as {alias.asname}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("moot")
        for alias in node.names
        if alias.asname is not None and alias.asname != alias.name
    ]
    return Figure("imports of ours under another name", len(aliases), 0, aliases)


def count_full_folders(modules: list[Module]) -> Figure:
    sizes = Counter(str(module.path.parent.relative_to(SOURCE)) for module in modules)
    full = [f"{folder}: {size}" for folder, size in sizes.items() if size > 31]
    return Figure("folders with more than 30 modules", len(full), 0, full)


def count_lines(modules: list[Module]) -> Figure:
    return Figure("lines in src", sum(m.text.count("\n") for m in modules), 80_000, [])


class Trace:
    """The modules of ours in which a function was called."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.calls = 0
        self.on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if self.on and event == "call":
            name = frame.f_globals.get("__name__", "")
            # what a class body or a module runs at import is not a call
            if name.startswith("moot.") and frame.f_code.co_name != "<module>":
                if not name.startswith("moot.testing"):
                    self.modules.add(name)
                self.calls += 1

    def record(self, act: Callable[[], object]) -> list[str]:
        """Return the modules entered by ``act`` and by all that follows from it."""
        self.modules, self.on = set(), True
        act()
        calls = -1
        while calls != self.calls:
            calls = self.calls
            time.sleep(QUIET_S)
        self.on = False
        return sorted(self.modules)


ONE_NODE = """
workflow: shape-one
steps:
  - set: {answer: 42}
"""


def measure_paths() -> list[Figure]:
    """Trace the second run of each path: imports and first-time caches are done by then."""
    trace = Trace()
    threading.setprofile(trace)
    from moot.testing import Bench

    with Bench() as bench:
        bench.flow(ONE_NODE)
        bench.agent("ada", "You are Ada.", model="demo").agent("bob", "You are Bob.", model="demo")
        client = bench.client
        client.runs.start("shape-one")
        time.sleep(QUIET_S)
        run = trace.record(lambda: client.runs.start("shape-one"))
        policy = {"mode": "addressed"}
        thread = client.convene("Which database?", "ada", "bob", policy=policy)
        trace.record(lambda: thread.say("What about backups?", to="ada"))
        turn = trace.record(lambda: thread.say("What about cost?", to="ada"))
    return [
        Figure("modules entered by a one-node run", len(run), 50, run),
        Figure("modules entered by a council turn", len(turn), 75, turn),
    ]


def measure(paths: bool = True) -> list[Figure]:
    modules = read_modules()
    counts = (
        count_any_dicts, count_event_strings, count_double_classes, count_crumbs, count_aliases,
        count_full_folders, count_lines,
    )  # fmt: skip
    figures = [count(modules) for count in counts]
    return [*figures, *measure_paths()] if paths else figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.shape", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bar is missed")
    parser.add_argument("--list", action="store_true", help="print every offender")
    options = parser.parse_args()
    figures = measure()
    for figure in figures:
        mark = "ok  " if figure.value <= figure.bar else "OVER"
        print(f"{mark} {figure.value:>7,} of {figure.bar:>6,}  {figure.name}")
        if options.list:
            print("".join(f"          {offender}\n" for offender in figure.offenders), end="")
    if options.check and any(figure.value > figure.bar for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
