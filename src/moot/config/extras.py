"""How a package that Moot can do without is installed, where somebody finds that it is needed."""

import shlex
import sys
from pathlib import Path


def install(extra: str) -> str:
    """From a clone with its folder, for an index may know nothing of that name or another project,
    and with the Python that runs: the shell's pip may be that of another one."""
    folder = Path(__file__).resolve().parents[3]
    cloned = (folder / "pyproject.toml").is_file()
    what = f"-e {shlex.quote(f'{folder}[{extra}]')}" if cloned else f"'moot[{extra}]'"
    return f"{shlex.quote(sys.executable)} -m pip install {what}"
