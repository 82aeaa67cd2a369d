"""Load nodes and tools from files of the user and from installed packages.

A file with both is loaded once.
"""

import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

#: module name -> modification time and size of the file when it was loaded
_loaded: dict[str, tuple[int, int]] = {}


def load_user_module(path: Path) -> ModuleType:
    """Return the file as a module; load it again when it has changed.

    Raise ValueError that names the file.
    """
    name = "moot_user_" + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"There is no Python file {path}.")
    stat = path.stat()
    version = (stat.st_mtime_ns, stat.st_size)
    if name in sys.modules and _loaded.get(name) == version:
        return sys.modules[name]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Python looks up annotations there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ValueError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    _loaded[name] = version
    return module


def find_definitions(value: Any, type_: type[T], mark: str, noun: str) -> list[T]:
    """Return the definitions in a value: itself, its ``mark``, or those of a list or a module.

    A module's imports do not count, and a function with two names in it counts once.
    """
    if isinstance(value, type_):
        return [value]
    if isinstance(value, ModuleType):
        name = value.__name__
        own = [each for each in vars(value).values() if getattr(each, "__module__", "") == name]
        marks = (getattr(each, mark, None) for each in own)
        return list({id(each): each for each in marks if isinstance(each, type_)}.values())
    if isinstance(value, (list, tuple)):
        return [part for each in value for part in find_definitions(each, type_, mark, noun)]
    if isinstance(marked := getattr(value, mark, None), type_):
        return [marked]
    raise TypeError(f"{value!r} is no {noun}, no list of them and no module")


def read_entry_points(
    group: str, type_: type[T], mark: str, noun: str
) -> Iterator[tuple[list[T], str]]:
    """Yield the definitions of each entry point with its source. Raise ValueError naming it."""
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        source = f"entry point '{entry.name}' ({entry.value})"
        try:
            definitions = find_definitions(entry.load(), type_, mark, noun)
        except (Exception, SystemExit) as error:
            problem = f"{type(error).__name__}: {error}"
            kind = group.rpartition(".")[2]
            raise ValueError(f"The {kind} of {source} cannot be loaded: {problem}") from error
        yield definitions, source
