"""The command that installs an optional package."""

import shlex
import sys
from pathlib import Path


def install_hint(extra: str) -> str:
    """Return the pip command for an extra of Moot.

    In a clone it names the folder, because an index may have no such package or another one. It
    names the running Python, because the shell's pip may belong to another one.
    """
    folder = Path(__file__).resolve().parents[3]
    is_clone = (folder / "pyproject.toml").is_file()
    package = f"-e {shlex.quote(f'{folder}[{extra}]')}" if is_clone else f"'moot[{extra}]'"
    return f"{shlex.quote(sys.executable)} -m pip install {package}"
