"""What is installed is all that is needed."""

import subprocess
import sys
import zipfile
from pathlib import Path

from real_server import ROOT


def test_the_wheel_has_everything_the_program_reads(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    shipped = {
        str(path.relative_to(source))
        for path in (source / "moot").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped <= names
    assert "moot/samples/order-intake.yaml" in names
    assert "moot/guides/workflows.md" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
