"""Load Python files of the user. A file with nodes and tools is loaded once."""

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

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


def list_own_definitions(module: ModuleType) -> list[Any]:
    """Return the values that the module defines, without those it imports."""
    name = module.__name__
    return [value for value in vars(module).values() if getattr(value, "__module__", "") == name]
