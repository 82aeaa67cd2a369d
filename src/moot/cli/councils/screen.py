"""Where a council is shown. A pipe gets whole lines; a terminal has, below what is settled, a few
rows that change: words as they are spoken, who is next, and the line that is being typed.

What is settled scrolls away and is never touched again. The rows below it are drawn anew each
time, each narrower than the terminal, so that nothing ever wraps and nothing is left over.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import click

from moot.cli.councils.transcript_lines import Told

PROMPT = "\u203a "
LEAST_COLUMNS = 20
#: of further lines of a turn in a pipe
INDENT = 8


class Pipe:
    """Lines without colours, each turn when it is whole."""

    def tell(self, told: list[Told], rows: list[str] | None = None) -> None:
        for one in told:
            text = f"{one.head}  {one.text}" if one.head else one.text
            text = text.replace("\n", "\n" + " " * INDENT)
            click.echo(f"{text}  {one.tail}" if one.tail else text, color=False)
            if one.command:
                click.echo(" " * INDENT + one.command)

    def below(self, rows: list[str], typed: str | None = None, at: int = 0) -> None:
        """There is nothing below."""

    def __enter__(self) -> "Pipe":
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing was changed."""


class Terminal:
    """The screen of a person. With ``keys`` its keyboard is read key by key until the end."""

    def __init__(self, keys: bool, coloured: bool = True) -> None:
        self._keys, self._coloured = keys, coloured
        self._drawn = 0
        self._rows: list[str] = []
        self._typed: tuple[str, int] | None = None
        self._before: list[Any] | None = None

    def __enter__(self) -> "Terminal":
        if self._keys:
            import termios

            self._before = termios.tcgetattr(sys.stdin)
            self._by_key()
            signal.signal(signal.SIGCONT, lambda *_: self._by_key())  # a shell has changed it
            signal.signal(signal.SIGTERM, _terminated)
        return self

    def _by_key(self) -> None:
        """Ctrl-C still interrupts, and what was typed ahead is not lost."""
        import termios
        import tty

        tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def __exit__(self, *_: Any) -> None:
        self._write(self._erased())
        if self._before is not None:
            import termios

            for number in (signal.SIGCONT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
            self._before = None

    def tell(self, told: list[Told], rows: list[str] | None = None) -> None:
        """Settled, above the rows that change; with ``rows`` in their place, as it is told."""
        if told:
            self._rows = self._rows if rows is None else rows
            lines = [line for one in told for line in laid_out(one, self._columns())]
            self._write(
                self._erased() + "".join(f"{line}\n" for line in lines) + self._drawn_anew()
            )

    def below(self, rows: list[str], typed: str | None = None, at: int = 0) -> None:
        """The rows that change, and the line that is being typed with its cursor."""
        line = None if typed is None else (typed, at)
        if (rows, line) != (self._rows, self._typed):
            self._rows, self._typed = rows, line
            self._write(self._erased() + self._drawn_anew())

    def _erased(self) -> str:
        up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
        drawn, self._drawn = self._drawn, 0
        return f"{up}\r\x1b[J" if drawn else ""

    def _drawn_anew(self) -> str:
        columns = self._columns()
        rows = [cut(row, columns - 1) for row in self._rows]
        where = ""
        if self._typed is not None:
            shown, at = window(*self._typed, columns - len(PROMPT) - 1)
            rows.append(PROMPT + shown)
            where = f"\r\x1b[{len(PROMPT) + at}C"
        self._drawn = len(rows)
        return "\n".join(rows) + where

    def _columns(self) -> int:
        import shutil

        return max(LEAST_COLUMNS, shutil.get_terminal_size().columns)

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text if self._coloured else _plain(text))
            sys.stdout.flush()


Screen = Pipe | Terminal


def _terminated(number: int, frame: FrameType | None) -> None:
    """The terminal is put right on the way out."""
    sys.exit(128 + number)


def _plain(text: str) -> str:
    """Without colours; what moves the cursor stays."""
    import re

    return re.sub("\x1b\\[[0-9;]*m", "", text)


def laid_out(told: Told, columns: int) -> list[str]:
    """Wrapped beside its head; what it took at the end of the last line, or below it. A command
    follows whole from the edge on: a terminal that folds it still copies it as one line."""
    from rich.cells import cell_len

    indent = cell_len(click.unstyle(told.head)) + 2 if told.head else 0
    room = max(LEAST_COLUMNS // 2, columns - indent - 1)
    lines = wrapped(told.text, room)
    tail = click.unstyle(told.tail)
    if tail and cell_len(tail) <= room:
        if cell_len(lines[-1]) + 2 + cell_len(tail) <= room:
            lines[-1] += " " * (room - cell_len(lines[-1]) - cell_len(tail)) + told.tail
        else:
            lines.append(" " * (room - cell_len(tail)) + told.tail)
    if told.quiet:
        lines = [click.style(line, dim=True) for line in lines]
    head = f"{told.head}  " if told.head else ""
    more = [told.command] if told.command else []
    return [head + lines[0], *(" " * indent + line for line in lines[1:]), *more]


def wrapped(text: str, room: int) -> list[str]:
    """Lines of at most so many cells, broken at blanks where there are any."""
    from rich.cells import cell_len

    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            while cell_len(word) > room:
                head = fitting(word, room - cell_len(line) - bool(line))
                lines.append(f"{line} {head}" if line and head else line or head)
                word, line = word[len(head) :], ""
            wider = f"{line} {word}" if line else word
            if cell_len(wider) > room:
                lines.append(line)
                line = word
            else:
                line = wider
        lines.append(line)
    return lines


def fitting(text: str, room: int) -> str:
    """As much of its beginning as fits; at least one character of a line of its own."""
    from rich.cells import cell_len

    taken = 0
    for number, mark in enumerate(text):
        taken += cell_len(mark)
        if taken > room:
            return text[: max(number, 1 if room >= 1 else 0)]
    return text


def cut(row: str, room: int) -> str:
    """One row that gives way at the edge, without its colours if it must."""
    from rich.cells import cell_len

    plain = click.unstyle(row)
    return row if cell_len(plain) <= room else fitting(plain, room - 1) + "…"


def window(text: str, at: int, room: int) -> tuple[str, int]:
    """The part of a long line that is around the cursor, and the cell the cursor is in."""
    from rich.cells import cell_len

    start, taken = at, 0
    while start > 0 and taken + cell_len(text[start - 1]) < room:
        start -= 1
        taken += cell_len(text[start])
    return fitting(text[start:], room), taken


class Keyboard:
    """Bytes of standard input, when there are some."""

    def __init__(self) -> None:
        self.file = sys.stdin.fileno()

    def read(self) -> bytes:
        """Nothing when it is gone."""
        with suppress(OSError):
            return os.read(self.file, 4096)
        return b""
