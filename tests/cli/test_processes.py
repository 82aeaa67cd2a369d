"""Most tests fork the command line instead of starting it: that must not show in what it does."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moot.cli import COMMANDS
from tests.support import processes
from tests.support.cli.commands import Cli
from tests.support.servers import server_environment

FLOW = "workflow: hello\nsteps: [{set: {greeting: grüß dich}}]\n"


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """After ``cold()`` what follows is started afresh."""
    monkeypatch.delenv("MOOT_COLD", raising=False)
    return lambda: monkeypatch.setenv("MOOT_COLD", "1")


@pytest.mark.parametrize(
    ("words", "stdin", "environment"),
    [
        (("flw",), "", {}),
        (("flow", "check", "flow.yaml"), "", {"PYTHONIOENCODING": "ascii:replace"}),
        (("doctor",), "", {"MOOT_PORT": "wrong", "MOOT_DEBUG": "1"}),
        (("api", "POST", "/", "-d", "-", "--server", "http://127.0.0.1:1"), "{}", {}),
        (("db", "verify", "nothing.db"), "", {}),
    ],
)
def test_a_forked_command_says_and_ends_like_a_started_one(
    alone: Cli,
    cold: Callable[[], None],
    words: tuple[str, ...],
    stdin: str,
    environment: dict[str, str],
) -> None:
    (alone.folder / "flow.yaml").write_text(FLOW)
    forked = alone(*words, stdin=stdin, **environment)
    cold()
    assert alone(*words, stdin=stdin, **environment) == forked


def test_a_forked_command_sees_the_same_terminal(alone: Cli, cold: Callable[[], None]) -> None:
    words = ("models", "list")
    forked = [alone.on_terminal(*words, columns=columns) for columns in (60, 120)]
    cold()
    assert [alone.on_terminal(*words, columns=columns) for columns in (60, 120)] == forked


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_a_forked_command_like_a_started_one(
    tmp_path: Path, cold: Callable[[], None], number: signal.Signals
) -> None:
    def ended() -> int:
        ours, theirs = os.pipe()
        nothing = processes.NOTHING
        process = processes.start(
            "serve", "--port", "0", folder=tmp_path, environment=server_environment(),
            files=(nothing, theirs, nothing),
        )  # fmt: skip
        os.close(theirs)
        with os.fdopen(ours) as banner:
            assert "http://" in banner.readline()
            process.send_signal(number)
            return process.wait(60)

    forked = ended()
    cold()
    assert ended() == forked


def test_every_command_finds_what_it_imports_without_the_others() -> None:
    """Those who are forked have read all modules: here each is read alone."""
    code = """
import os, sys, click, moot.cli
for name in sys.argv[1:]:
    if (child := os.fork()) == 0:
        command = moot.cli.moot.get_command(click.Context(moot.cli.moot), name)
        os._exit(0 if command.name == name else 1)
    assert os.waitpid(child, 0)[1] == 0, name
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *COMMANDS], env=server_environment(), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
