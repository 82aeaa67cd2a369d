"""Python files of the user's, by path: a file of nodes and tools is read once for both."""

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

#: module name -> what the file was like when it was read
_read: dict[str, tuple[int, int]] = {}


def module(path: Path) -> ModuleType:
    """The file as a module; read anew when it has changed. Raises ValueError naming the file."""
    name = "moot_user_" + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"There is no Python file {path}.")
    found = path.stat()
    mark = (found.st_mtime_ns, found.st_size)
    if name in sys.modules and _read.get(name) == mark:
        return sys.modules[name]
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # annotations are looked up there
    try:
        spec.loader.exec_module(loaded)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ValueError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    _read[name] = mark
    return loaded


def own(found: ModuleType) -> list[Any]:
    """What is defined in the module; what it imports belongs elsewhere."""
    name = found.__name__
    return [value for value in vars(found).values() if getattr(value, "__module__", "") == name]
