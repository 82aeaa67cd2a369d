"""Run programs that take part in a thread, and end them for sure.

A program runs in an empty folder, with a time limit, a cleaned environment and none of our keys.
Its output is bounded, and bytes that are not text are replaced.
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

from moot.cli.joining.process_tree import ProcessFamily

#: characters of one answer, bytes of stderr that are kept, lines of it that are shown
MAX_ANSWER = 32_000
MAX_STDERR_BYTES = 8192
STDERR_LINES = 5
PIECE = 65_536
#: pieces that are dropped at once: a program may print without end
MAX_UNREAD = 64
TICK = 0.2
#: seconds that another process may hold a pipe after the program itself has ended
LINGER = 1.0

#: called now and then while a program works, with whether it has begun to answer
ProgressCallback = Callable[[bool], None]


class ProgramFailed(Exception):
    """A program failed: the way it ended, its last stderr lines, and its answer so far."""

    def __init__(self, how: str, last: str = "", begun: str = "") -> None:
        super().__init__(how)
        self.how, self.last, self.begun = how, last, begun


class ProgramSettings(NamedTuple):
    """The command, environment and limit of a program."""

    command: list[str]
    environment: dict[str, str]
    #: seconds that an answer may take
    limit: float
    family: ProcessFamily


class ProgramProcess:
    """One running program and its children, which end together."""

    def __init__(self, settings: ProgramSettings) -> None:
        self._family = settings.family
        self._folder = tempfile.TemporaryDirectory(prefix="moot-join-", ignore_cleanup_errors=True)
        try:
            self._process = subprocess.Popen(
                settings.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder.name,
                env=settings.environment,
                start_new_session=True,
                preexec_fn=settings.family.tie,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._folder.cleanup()
            why = getattr(error, "strerror", None) or str(error)
            raise ProgramFailed(f"cannot be started: {why}") from None
        #: bounded, so that a program that prints too much has to wait
        self._out: queue.Queue[bytes] = queue.Queue(16)
        self._ended_event = threading.Event()
        self._errors = b""
        for target, pipe in (
            (self._read, self._process.stdout),
            (self._keep_errors, self._process.stderr),
        ):
            self._reader = threading.Thread(target=target, args=(pipe,), daemon=True)
            self._reader.start()

    def _read(self, pipe: IO[bytes]) -> None:
        while not self._ended_event.is_set():
            piece = os.read(pipe.fileno(), PIECE)
            self._put(piece)
            if not piece:
                return

    def _put(self, piece: bytes) -> None:
        while not self._ended_event.is_set():
            with suppress(queue.Full):
                self._out.put(piece, timeout=TICK)
                return

    def _keep_errors(self, pipe: IO[bytes]) -> None:
        while not self._ended_event.is_set() and (piece := os.read(pipe.fileno(), PIECE)):
            self._errors = (self._errors + piece)[-MAX_STDERR_BYTES:]

    def write(self, data: bytes, close: bool) -> None:
        """Write in the background, because a program need not read its input."""
        pipe = self._process.stdin
        assert pipe is not None

        def tell() -> None:
            with suppress(OSError, ValueError):
                pipe.write(data)
                pipe.flush()
                if close:
                    pipe.close()

        threading.Thread(target=tell, daemon=True).start()

    def pieces(self, until: float, beat: ProgressCallback) -> Iterator[bytes]:
        """Yield its output to the end. Raise ProgramFailed when the time is over."""
        begun, ended_at = False, 0.0
        while True:
            now = time.monotonic()
            if now > until:
                raise ProgramFailed("no answer in time", self.last())
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
        """Return the output that it has printed by now and that was not read."""
        data = b""
        with suppress(queue.Empty):
            for _ in range(MAX_UNREAD):
                piece = self._out.get_nowait()
                data += piece
                if not piece:
                    self._out.put_nowait(piece)  # keep the mark that its output has ended
                    break
        return data

    @property
    def ended(self) -> bool:
        """Whether it has ended. It is not reaped before its children have ended, too."""
        if self._process.returncode is not None:
            return True
        status = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return status is not None

    def end(self, until: float = 0.0) -> int:
        """End it and everything that it has started; return its exit code.

        Before ``until`` it may end by itself.
        """
        while not self.ended and time.monotonic() < until:
            time.sleep(TICK / 10)
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._family.end_orphans()
        self._reader.join(LINGER)  # its last errors may still be on their way
        self._ended_event.set()
        self._folder.cleanup()
        return code

    def last(self) -> str:
        """Return the last lines of its stderr."""
        lines = self._errors.decode(errors="replace").strip().splitlines()
        return "\n".join(line[:300] for line in lines[-STDERR_LINES:])


class OneShotProgram:
    """A program that is started for every answer: the prompt on stdin, the answer on stdout."""

    def __init__(self, settings: ProgramSettings, trim: Callable[[str], str] | None = None) -> None:
        self._settings, self._trim = settings, trim

    def answer(self, prompt: str, beat: ProgressCallback) -> str:
        until = time.monotonic() + self._settings.limit
        process, printed = ProgramProcess(self._settings), b""
        try:
            process.write(prompt.encode(errors="replace"), close=True)
            for piece in process.pieces(until, beat):
                printed = (printed + piece)[: 4 * MAX_ANSWER + 1]
        except ProgramFailed as failure:
            process.end()  # at once, because its time is over
            raise ProgramFailed(failure.how, failure.last, bounded_text(printed)) from None
        except BaseException:
            process.end()  # the user leaves
            raise
        code = process.end(until)
        late = time.monotonic() >= until
        if code != 0:
            raise ProgramFailed(describe_exit(code, late), process.last(), bounded_text(printed))
        text = bounded_text(printed)
        return text if self._trim is None else self._trim(text)

    def check(self) -> None:
        """Do nothing, because no program runs between two answers."""

    def close(self) -> None:
        """Do nothing, for the same reason."""


def describe_exit(code: int, late: bool) -> str:
    if late:
        return "no answer in time"
    if code < 0:
        with suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit {code}"


def bounded_text(printed: bytes) -> str:
    """Return an answer as text of at most MAX_ANSWER characters."""
    text = printed.decode(errors="replace").strip()
    return text if len(text) <= MAX_ANSWER else text[: MAX_ANSWER - 1] + "…"
