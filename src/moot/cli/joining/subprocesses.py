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
from typing import IO, NamedTuple

from moot.cli.joining.process_tree import Family

#: characters of one answer, bytes of what is kept of complaints, lines of it that are shown
LONGEST = 32_000
KEPT = 8192
SHOWN = 5
PIECE = 65_536
#: pieces that are dropped at once: who prints without end is not waited for
MOST_UNREAD = 64
TICK = 0.2
#: how long somebody else may hold a pipe after the program itself has ended
LINGER = 1.0

#: told now and then while a program works: whether it has begun to answer
Beat = Callable[[bool], None]


class Failed(Exception):
    """How a program failed, in a few words, what it complained of last, and what it had said of
    its answer until then."""

    def __init__(self, how: str, last: str = "", begun: str = "") -> None:
        super().__init__(how)
        self.how, self.last, self.begun = how, last, begun


class How(NamedTuple):
    """How a program is run."""

    command: list[str]
    environment: dict[str, str]
    #: seconds that an answer may take
    limit: float
    family: Family


class Process:
    """One running program and its children, which end together."""

    def __init__(self, how: How) -> None:
        self._family = how.family
        self._folder = tempfile.TemporaryDirectory(prefix="moot-join-", ignore_cleanup_errors=True)
        try:
            self._process = subprocess.Popen(
                how.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder.name,
                env=how.environment,
                start_new_session=True,
                preexec_fn=how.family.tie,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
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

    def unread(self) -> bytes:
        """What it has printed by now and nobody has asked for."""
        found = b""
        with suppress(queue.Empty):
            for _ in range(MOST_UNREAD):
                piece = self._out.get_nowait()
                found += piece
                if not piece:
                    self._out.put_nowait(piece)  # its output has ended, which stays to be seen
                    break
        return found

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
        self._family.end_orphans()
        self._reader.join(LINGER)  # what it complained of at the end may still be on its way
        self._over.set()
        self._folder.cleanup()
        return code

    def last(self) -> str:
        """What it complained of, at the end."""
        lines = self._errors.decode(errors="replace").strip().splitlines()
        return "\n".join(line[:300] for line in lines[-SHOWN:])


class Once:
    """A program that is started for every answer: the prompt on stdin, the answer on stdout."""

    def __init__(self, how: How, trim: Callable[[str], str] | None = None) -> None:
        self._how, self._trim = how, trim

    def answer(self, prompt: str, beat: Beat) -> str:
        until = time.monotonic() + self._how.limit
        process, printed = Process(self._how), b""
        try:
            process.write(prompt.encode(errors="replace"), close=True)
            for piece in process.pieces(until, beat):
                printed = (printed + piece)[: 4 * LONGEST + 1]
        except Failed as failure:
            process.end()  # at once: its time is over
            raise Failed(failure.how, failure.last, bounded(printed)) from None
        except BaseException:
            process.end()  # somebody leaves
            raise
        code = process.end(until)
        late = time.monotonic() >= until
        if code != 0:
            raise Failed(ending(code, late), process.last(), bounded(printed))
        said = bounded(printed)
        return said if self._trim is None else self._trim(said)

    def check(self) -> None:
        """Nothing runs between two answers."""

    def close(self) -> None:
        """Nor afterwards."""


def ending(code: int, late: bool) -> str:
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
