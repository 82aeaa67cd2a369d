"""``python -m moot.cli`` forked from a process that has read Moot already.

What is forked has its own memory, folder, environment, files and exit code and takes signals like
one that was started; only the time for reading three hundred modules is not spent a thousand times.
With MOOT_COLD=1 every process is started afresh. Run as a program, this file is the one that forks.
"""

import atexit
import contextlib
import fcntl
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HEADER = struct.Struct("!I")
NUMBER = struct.Struct("!i")
#: settings that an interpreter reads when it starts, and never again
AT_START = ("PYTHON", "LC_", "LANG")
UNBUFFERED = "PYTHONUNBUFFERED"
#: what a project's first call of a model or a tool imports, and nothing before it
SDKS = ("anthropic.resources.messages", "openai.resources.chat", "mcp.client.streamable_http")
#: what says nothing and keeps nothing
NOTHING = os.open(os.devnull, os.O_RDWR)


def server_environment(**more: str) -> dict[str, str]:
    """This process' environment without its Moot settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MOOT_")}
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), kept.get("PYTHONPATH")]))
    return {**kept, **more}


class Order(NamedTuple):
    """What is to be run: its words, folder, environment, and whether it gets the terminal."""

    words: list[str]
    folder: str
    environment: dict[str, str]
    terminal: bool


class Forked:
    """A forked process, with what tests use of ``subprocess.Popen``."""

    def __init__(self, order: Order, files: tuple[int, int, int]) -> None:
        self.returncode: int | None = None
        self._told, theirs = socket.socketpair()
        project = (Path(order.folder) / "moot.toml").is_file()
        with theirs:
            _mother(SDKS if project else ()).send(order, (*files, theirs.fileno()))
        self.pid = self._number()

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = self._number()
            self._told.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._told], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("moot", timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # its end is known, and not yet told
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        data = self._told.recv(NUMBER.size, socket.MSG_WAITALL)
        assert data, "the process that forks has ended"
        return int(NUMBER.unpack(data)[0])


Process = Forked | subprocess.Popen[bytes]


def start(
    *words: Any,
    folder: Path,
    environment: dict[str, str],
    files: tuple[int, int, int],
    terminal: bool = False,
) -> Process:
    """``moot WORDS`` with these as its stdin, stdout and stderr."""
    said = [str(word) for word in words]
    if os.environ.get("MOOT_COLD") != "1" and _starts_alike(environment):
        return Forked(Order(said, str(folder), environment, terminal), files)
    return subprocess.Popen(
        [sys.executable, "-m", "moot.cli", *said],
        stdin=files[0], stdout=files[1], stderr=files[2], cwd=folder, env=environment,
        start_new_session=terminal,
        preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if terminal else None,
    )  # fmt: skip


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run(
    *words: Any,
    folder: Path,
    environment: dict[str, str],
    stdin: str = "",
    seconds: float = 60,
) -> Done:
    """``moot WORDS`` to its end, with pipes around it."""
    (theirs, told), (out, said), (err, complained) = os.pipe(), os.pipe(), os.pipe()
    process = start(
        *words, folder=folder, environment=environment, files=(theirs, said, complained)
    )
    for end in (theirs, said, complained):
        os.close(end)
    with ThreadPoolExecutor(2) as readers:
        reading = [readers.submit(_all_of, end) for end in (out, err)]
        with contextlib.suppress(BrokenPipeError), os.fdopen(told, "w") as pipe:
            pipe.write(stdin)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return Done(code, *(read.result() for read in reading))


def _all_of(pipe: int) -> str:
    with os.fdopen(pipe) as text:
        return text.read()


def _starts_alike(environment: dict[str, str]) -> bool:
    here, there = (
        {k: v for k, v in one.items() if k.startswith(AT_START) and k != UNBUFFERED}
        for one in (server_environment(), environment)
    )
    return here == there


class _Mother:
    """A process that forks, as seen from the tests."""

    def __init__(self, more: tuple[str, ...]) -> None:
        self._mine, theirs = socket.socketpair()
        self._turn = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *more],
                stdin=subprocess.DEVNULL, env=server_environment(), pass_fds=[theirs.fileno()],
            )  # fmt: skip
        atexit.register(self._end)

    def send(self, order: Order, files: tuple[int, ...]) -> None:
        said = json.dumps(order).encode()
        with self._turn:
            socket.send_fds(self._mine, [HEADER.pack(len(said))], files)
            self._mine.sendall(said)

    def _end(self) -> None:
        self._mine.close()
        self._process.wait()


@cache
def _mother(more: tuple[str, ...]) -> _Mother:
    """The one that has read these, too."""
    return _Mother(more)


def read_moot(more: list[str]) -> None:
    """Every module that a command or a server may want, but nothing of pytest."""
    import moot

    for module in pkgutil.walk_packages(moot.__path__, "moot."):
        if not module.name.startswith("moot.testing") and not module.name.endswith("__main__"):
            import_module(module.name)
    for name in ("http.client", "uvloop", "uvicorn", "rich.console", *more):
        import_module(name)
    assert threading.active_count() == 1, "what has threads cannot be forked"
    gc.collect()
    gc.freeze()


def fork_for_ever(control: socket.socket) -> tuple[Order, list[int]]:
    """Forks for every order; comes back in the one that was forked."""
    ended, end = os.pipe()
    os.set_blocking(end, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    children: dict[int, socket.socket] = {}
    while True:
        ready = select.select([control, ended], [], [])[0]
        if ended in ready:
            os.read(ended, 65_536)
            _tell_of_the_ended(children)
        if control in ready:
            order, files = _received(control)
            told = socket.socket(fileno=files.pop())
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for one in (control, told, *children.values()):
                    one.close()
                os.close(ended)
                os.close(end)
                return order, files
            told.sendall(NUMBER.pack(pid))
            children[pid] = told
            for file in files:
                os.close(file)


def _tell_of_the_ended(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with contextlib.suppress(BrokenPipeError), children.pop(pid) as told:
            told.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _received(control: socket.socket) -> tuple[Order, list[int]]:
    header, files, _, _ = socket.recv_fds(control, HEADER.size, 4)
    if not header:
        os._exit(0)  # the tests have ended
    left, said = HEADER.unpack(header)[0], b""
    while len(said) < left:  # a child that ends in between cuts the waiting for all of it short
        said += control.recv(left - len(said), socket.MSG_WAITALL)
    return Order(*json.loads(said)), files


def become(order: Order, files: list[int]) -> None:
    """As if the interpreter had just been started for it."""
    if order.terminal:
        os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in set(files) - {0, 1, 2}:
        os.close(file)
    if order.terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    sys.path[0] = order.folder
    sys.argv = ["moot", *order.words]
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding=sys.stdin.encoding, closefd=False)
    for number, name, errors in ((1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        stream = os.fdopen(number, "w", encoding=getattr(sys, name).encoding, errors=errors,
                           buffering=1 if number == 2 else -1, closefd=False)  # fmt: skip
        if order.environment.get(UNBUFFERED):
            stream.reconfigure(write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def leave_at_once(code: list[int]) -> None:
    """The last that is done at an exit: taking 600 modules apart would take most of the time."""
    if code:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code[0])


def main() -> None:
    code: list[int] = []
    atexit.register(leave_at_once, code)  # before all others, which makes it the last
    read_moot(sys.argv[2:])
    become(*fork_for_ever(socket.socket(fileno=int(sys.argv[1]))))
    try:
        runpy.run_module("moot.cli", run_name="__main__", alter_sys=True)
        code.append(0)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            code.append(end.code or 0)
        raise


if __name__ == "__main__":
    main()
