"""The pages for developers: what they show runs as it stands there."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.docs.test_pages import DOCS, blocks
from tests.support.servers import ROOT, ServerProcess, server_environment


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=server_environment(**environment), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_program_of_the_page_of_the_client_runs_from_top_to_bottom(
    server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    flows = str(ROOT / "examples" / "flows")
    host = server("--workflows", flows, MOOT_DEMO_WPS="0")
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks(DOCS / "sdk.md", "python")))
    said = run([sys.executable, "page.py"], tmp_path, MOOT_URL=host.url, MOOT_KEY=host.key)
    assert "checked" in said and "A pilot in June" in said
    assert "run_not_found" in said


def test_the_tests_of_the_page_of_testing_pass_in_a_new_project(tmp_path: Path) -> None:
    run([sys.executable, "-m", "moot.cli", "init", "acme"], tmp_path)
    folder = tmp_path / "acme"
    for number, text in enumerate(blocks(DOCS / "testing.md", "python")):
        (folder / "tests" / f"test_page_{number}.py").write_text(text)
    command = [sys.executable, "-m", "moot.cli", "test", "-q", "-k", "page"]
    assert "4 passed" in run(command, folder)
