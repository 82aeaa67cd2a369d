"""A server as a child: it goes when whoever started it goes, however that ends.

The child reads its standard input, a pipe that only the parent holds open; the kernel closes it
with the parent, also where the parent is killed or its terminal goes away.
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


def start(
    arguments: list[str],
    env: dict[str, str] | None = None,
    stdout: int | None = None,
    stderr: IO[str] | None = None,
) -> "subprocess.Popen[str]":
    """``moot serve`` in a session of its own, so that Ctrl-C is for the parent alone."""
    command = [sys.executable, "-m", "moot.cli", "serve", *arguments, FLAG]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=env, text=True,
        start_new_session=True,
    )  # fmt: skip


def end(child: "subprocess.Popen[str] | None") -> None:
    """Gracefully, and at last by force. Safe for one that has ended."""
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
    """In the child: the end of standard input counts as SIGTERM."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def leave_on_signals() -> None:
    """In the parent: SIGTERM and a terminal that goes away unwind it, as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)


def _leave(number: int, frame: object) -> None:
    sys.exit(128 + number)
