"""Run a server as a child process that ends with its parent.

The child reads its standard input, a pipe that only the parent holds open. The kernel closes it
with the parent, also where the parent is killed or its terminal closes.
"""

import os
import signal
import subprocess
import sys
import threading
from typing import IO

STOP_SECONDS = 10
#: tells ``serve`` to watch its standard input
FLAG = "--with-parent"


def start_server(
    arguments: list[str],
    env: dict[str, str] | None = None,
    stdout: int | None = None,
    stderr: IO[str] | None = None,
) -> "subprocess.Popen[str]":
    """Start ``moot serve`` in its own session, so that Ctrl-C reaches only the parent."""
    command = [sys.executable, "-m", "moot.cli", "serve", *arguments, FLAG]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=env, text=True,
        start_new_session=True,
    )  # fmt: skip


def stop_server(child: "subprocess.Popen[str] | None") -> None:
    """Stop it gracefully, and after STOP_SECONDS by force. Safe for a child that has ended."""
    if child is None:
        return
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()


def end_with_parent() -> None:
    """Treat the end of standard input as SIGTERM. Call this in the child."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def leave_on_signals() -> None:
    """Exit normally on SIGTERM and SIGHUP, as on Ctrl-C. Call this in the parent."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit_on_signal)


def _exit_on_signal(number: int, frame: object) -> None:
    sys.exit(128 + number)
