"""The README, followed word for word on a clean copy of the project."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers import ROOT, component_missing, server_environment

LEFT_OUT = (
    ".git", ".venv", "demo", "moot-demo.*", ".*_cache", "__pycache__", ".hypothesis", "*.db*",
)  # fmt: skip
SERVE = ".venv/bin/moot serve"

START = """\
[ -z "${{SERVER:-}}" ] || {{ kill "$SERVER"; wait "$SERVER"; }}
{command} >> served.txt 2>&1 &
SERVER=$!
until curl -sf http://127.0.0.1:{port}/healthz > healthy.txt; do kill -0 "$SERVER"; sleep 0.05; done
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy without anything that was built, beside the tools that were installed."""
    folder = tmp_path / "moot"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    for stamp in (".ready", ".installed"):
        (folder / ".venv" / stamp).touch()
    return folder


def script(text: str, port: int) -> str:
    """All blocks as one session; a server is started in the background and waited for."""
    lines = ["set -euo pipefail"]
    for block in re.findall(r"^```(?:bash|console)\n(.*?)^```$", text, re.M | re.S):
        if block.startswith(SERVE):
            lines.append(START.format(command=block.strip(), port=port))
        else:
            lines.append(block)
    lines += ['kill "$SERVER"', 'wait "$SERVER"']
    return "\n".join(lines).replace("127.0.0.1:7666", f"127.0.0.1:{port}")


@pytest.mark.timeout(600)  # many commands, each a process started afresh
def test_every_command_of_the_readme_works_in_order(clone: Path) -> None:
    if shutil.which("curl") is None:
        component_missing("curl, which the README shows the API with, is not here")
    with socket.socket() as held:  # nobody else gets the port while no server is there
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        environment = server_environment(MOOT_PORT=str(port), MOOT_DEMO_WPS="0")
        session = script((clone / "README.md").read_text(), port)
        done = subprocess.run(
            ["bash", "-c", session],
            cwd=clone,
            env={**environment, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "event: run.completed",
        '"status":"completed"',
        "flows/tea.yaml: tea is fine",
        "A large pot for Grace",
        "250 g of Darjeeling",
        "moot.db is whole",
        "outcome  completed → completed",
        "0 model calls, identical ✓",
        "Seated a council of 3",
        "Minutes written to moot-demo.md.",
        "Closed. Decision recorded",
        "# Which tea for the office?",
        "is on staff · next: restock",
        "Sally is paused until Mon",
    ):
        assert said in done.stdout
