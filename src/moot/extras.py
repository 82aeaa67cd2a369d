"""How a package that Moot can do without is installed, where somebody finds that it is needed."""

from pathlib import Path


def install(extra: str) -> str:
    """From a clone with its folder: elsewhere the name alone may be another project's."""
    folder = Path(__file__).resolve().parents[2]
    cloned = (folder / "pyproject.toml").is_file()
    return f"pip install -e '{folder}[{extra}]'" if cloned else f"pip install 'moot[{extra}]'"
