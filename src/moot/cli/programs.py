"""Programs that take part: started in an empty folder, given so much time, and ended for sure.

A program gets a cleaned environment and none of our keys. What it prints is bounded, and bytes
that are no text are replaced.
"""

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO

#: characters of one answer, bytes of what is kept of complaints, lines of it that are shown
LONGEST = 32_000
KEPT = 8192
SHOWN = 5
PIECE = 65_536
TICK = 0.2
#: how long somebody else may hold a pipe after the program itself has ended
LINGER = 1.0

#: told now and then while a program works: whether it has begun to answer
Beat = Callable[[bool], None]


class Failed(Exception):
    """How a program failed, in a few words, and what it said last."""

    def __init__(self, how: str, last: str = "") -> None:
        super().__init__(how)
        self.how, self.last = how, last


class Process:
    """One running program and its children: a group, which ends together."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="moot-join-", ignore_cleanup_errors=True)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder.name,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._folder.cleanup()
            why = getattr(error, "strerror", None) or str(error)
            raise Failed(f"cannot be started: {why}") from None
        #: bounded: who prints more than is read waits
        self._out: queue.Queue[bytes] = queue.Queue(16)
        self._over = threading.Event()
        self._errors = b""
        for target, pipe in (
            (self._read, self._process.stdout),
            (self._keep, self._process.stderr),
        ):
            self._reader = threading.Thread(target=target, args=(pipe,), daemon=True)
            self._reader.start()

    def _read(self, pipe: IO[bytes]) -> None:
        while not self._over.is_set():
            piece = os.read(pipe.fileno(), PIECE)
            self._put(piece)
            if not piece:
                return

    def _put(self, piece: bytes) -> None:
        while not self._over.is_set():
            with suppress(queue.Full):
                self._out.put(piece, timeout=TICK)
                return

    def _keep(self, pipe: IO[bytes]) -> None:
        while not self._over.is_set() and (piece := os.read(pipe.fileno(), PIECE)):
            self._errors = (self._errors + piece)[-KEPT:]

    def write(self, data: bytes, close: bool) -> None:
        """In the background: a program need not read what it is told."""
        pipe = self._process.stdin
        assert pipe is not None

        def tell() -> None:
            with suppress(OSError, ValueError):
                pipe.write(data)
                pipe.flush()
                if close:
                    pipe.close()

        threading.Thread(target=tell, daemon=True).start()

    def pieces(self, until: float, beat: Beat) -> Iterator[bytes]:
        """What it prints, to the end of it. Raises Failed when the time is over."""
        begun, ended_at = False, 0.0
        while True:
            now = time.monotonic()
            if now > until:
                raise Failed("no answer in time", self.last())
            try:
                piece = self._out.get(timeout=TICK)
            except queue.Empty:
                beat(begun)
                ended_at = ended_at or (now if self.ended else 0.0)
                if ended_at and now - ended_at > LINGER:
                    return
                continue
            if not piece:
                return
            begun = True
            beat(begun)
            yield piece

    @property
    def ended(self) -> bool:
        """Whether it has; it is not forgotten before its children are ended, too."""
        if self._process.returncode is not None:
            return True
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None

    def end(self, until: float = 0.0) -> int:
        """Ends it and whatever it has started; its exit code. Until then it may end by itself."""
        while not self.ended and time.monotonic() < until:
            time.sleep(TICK / 10)
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._reader.join(LINGER)  # what it complained of at the end may still be on its way
        self._over.set()
        self._folder.cleanup()
        return code

    def last(self) -> str:
        """What it complained of, at the end."""
        return _end_of(self._errors)


class Once:
    """A program that is started for every answer: the prompt on stdin, the answer on stdout."""

    def __init__(self, command: list[str], environment: dict[str, str], limit: float) -> None:
        self.command, self._environment, self._limit = command, environment, limit

    def answer(self, prompt: str, beat: Beat) -> str:
        until = time.monotonic() + self._limit
        process, printed = Process(self.command, self._environment), b""
        try:
            process.write(prompt.encode(errors="replace"), close=True)
            for piece in process.pieces(until, beat):
                printed = (printed + piece)[: 4 * LONGEST + 1]
        except Failed as failure:
            process.end()
            raise Failed(failure.how, _both(failure.last, printed)) from None
        except BaseException:
            process.end()  # at once: somebody leaves
            raise
        code = process.end(until)
        late = time.monotonic() >= until
        if code != 0:
            raise Failed(_ending(code, late), _both(process.last(), printed))
        return bounded(printed)

    def check(self) -> None:
        """Nothing runs between two answers."""

    def close(self) -> None:
        """Nor afterwards."""


class Lines:
    """A program that stays: one JSON object per line in, one per line out."""

    def __init__(self, command: list[str], environment: dict[str, str], limit: float) -> None:
        self.command, self._environment, self._limit = command, environment, limit
        self._process: Process | None = None
        self._rest = b""

    def answer(self, asked: str, beat: Beat) -> str:
        until = time.monotonic() + self._limit
        if self._process is None:
            self._process, self._rest = Process(self.command, self._environment), b""
        self._process.write(asked.encode(errors="replace") + b"\n", close=False)
        try:
            for piece in self._process.pieces(until, beat):
                self._rest += piece
                line, end, rest = self._rest.partition(b"\n")
                if end:
                    self._rest = rest[: 8 * LONGEST]
                    return line.decode(errors="replace")
                if len(self._rest) > 8 * LONGEST:
                    raise Failed("a line without an end", self._process.last())
        except BaseException:
            self.close()
            raise
        process, self._process = self._process, None
        raise Failed(_ending(process.end(until), False), process.last())

    def check(self) -> None:
        """Raises Failed when it has ended."""
        if self._process is not None and self._process.ended:
            process, self._process = self._process, None
            raise Failed(_ending(process.end(), False), process.last())

    def close(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


def _end_of(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()
    return "\n".join(line[:300] for line in lines[-SHOWN:])


def _both(complaints: str, printed: bytes) -> str:
    """What it complained of, and what it had begun to answer."""
    begun = _end_of(printed)
    return "\n".join(filter(None, [complaints, f"It had begun: {begun}" if begun else ""]))


def _ending(code: int, late: bool) -> str:
    if late:
        return "no answer in time"
    if code < 0:
        with suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit {code}"


def bounded(printed: bytes) -> str:
    """An answer as it is said."""
    text = printed.decode(errors="replace").strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
