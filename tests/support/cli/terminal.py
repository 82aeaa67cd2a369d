"""A person at a terminal: a real pseudo-terminal, and what its screen would show."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from pathlib import Path
from typing import Any

from tests.support import processes
from tests.support.servers import server_environment

PATIENCE = 80
#: what the line that is being typed begins with
MARK = "\u203a"


class Glass:
    """What a terminal makes of what is written to it: as much as the command line uses."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines = [""]
        self.row = self.column = 0
        self._rest = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def feed(self, data: bytes) -> None:
        text, self._rest = self._rest + self._decode(data), ""
        for part in re.findall("\x1b(?:\\[[0-9;?]*[A-Za-z]?)?|[^\x1b]", text, re.S):
            if re.fullmatch("\x1b(\\[[0-9;?]*)?", part):
                self._rest = part  # the end of it is still to come
            elif part.startswith("\x1b"):
                self._act(part)
            else:
                self._put(part)

    def _act(self, sequence: str) -> None:
        number = int(re.sub(r"\D", "", sequence) or 1)
        match sequence[-1]:
            case "A":
                assert number <= self.row, "above the first line"
                self.row -= number
            case "C":
                self.column += number
            case "J":
                del self.lines[self.row + 1 :]
                self.lines[self.row] = self.lines[self.row][: self.column]
            case "m":
                pass
            case other:
                raise AssertionError(f"a terminal is told {other!r}")

    def _put(self, mark: str) -> None:
        if mark == "\r":
            self.column = 0
        elif mark == "\n":
            self.row += 1
            if self.row == len(self.lines):
                self.lines.append("")
        else:
            assert mark.isprintable(), mark
            if self.column == self.columns:
                self._put("\r")
                self._put("\n")
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + mark + line[self.column + 1 :]
            self.column += 1

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)


class Person:
    """Types at a command and reads its screen."""

    def __init__(self, folder: Path, *words: Any, columns: int = 100, **environment: str) -> None:
        self._master, slave = pty.openpty()
        size = struct.pack("HHHH", 40, columns, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        self.glass = Glass(columns)
        #: every screen that was erased, as it stood
        self.before: list[str] = []
        self.process = processes.start(
            *words, folder=folder, files=(slave, slave, slave), terminal=True,
            environment=server_environment(**{"TERM": "xterm", **environment}),
        )  # fmt: skip
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        self.type(f"{text}\r")

    def until(self, *wanted: str) -> str:
        """The screen, once it shows all of these; a pattern each."""
        deadline = time.monotonic() + PATIENCE
        while not all(re.search(pattern, self.glass.text, re.M) for pattern in wanted):
            assert time.monotonic() < deadline, f"no {wanted} in:\n{self.glass.text}"
            if not self._read(1.0) and self.process.poll() is not None:
                missing = [one for one in wanted if not re.search(one, self.glass.text, re.M)]
                assert not missing, f"ended without {missing}:\n{self.glass.text}"
        return self.glass.text

    def end(self) -> int:
        """Its exit code, with everything it wrote on the screen."""
        deadline = time.monotonic() + PATIENCE
        while self._read(1.0) or self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end:\n{self.glass.text}"
        return self.process.wait()

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed by itself."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def echo(self) -> None:
        """As a shell sets it."""
        modes = termios.tcgetattr(self._master)
        modes[3] |= termios.ECHO | termios.ICANON
        termios.tcsetattr(self._master, termios.TCSANOW, modes)

    def leave(self, hang_up: bool = False) -> None:
        """By force, or by closing the terminal as its window does."""
        if hang_up:
            os.close(self._master)
        elif self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if not hang_up:
            os.close(self._master)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        try:
            piece = os.read(self._master, 65_536)
        except OSError:  # the other side is closed
            return False
        *erased, rest = re.split(b"(?=\r\x1b\\[J|\x1b\\[[0-9]+A\r)", piece)
        for part in erased:
            self.glass.feed(part)
            self.before.append(self.glass.text)
        self.glass.feed(rest)
        return bool(piece)
