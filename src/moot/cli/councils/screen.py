"""Screens for a council: whole lines for a pipe, changing rows on a terminal.

On a terminal, finished lines scroll away and are never touched again. Below them a few rows
change: words as they are spoken, the next speaker, and the line that is being typed. Those rows are
drawn again each time, each narrower than the terminal, so that none wraps and nothing is left over.
"""

import os
import re
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import click

from moot.cli.councils.transcript_lines import TranscriptLine
from moot.cli.shared import output

PROMPT = "\u203a "
LEAST_COLUMNS = 20
#: blanks before further lines of a turn in a pipe
INDENT = 8


class PipeScreen:
    """Prints lines without colours, each turn when it is complete."""

    def tell(self, lines: list[TranscriptLine], rows: list[str] | None = None) -> None:
        for line in lines:
            text = f"{line.head}  {line.text}" if line.head else line.text
            text = text.replace("\n", "\n" + " " * INDENT)
            click.echo(f"{text}  {line.tail}" if line.tail else text, color=False)
            if line.command:
                click.echo(" " * INDENT + line.command)

    def below(self, rows: list[str], typed: str | None = None, at: int = 0) -> None:
        """Do nothing, because a pipe has no rows below."""

    def __enter__(self) -> "PipeScreen":
        return self

    def __exit__(self, *_: Any) -> None:
        """Do nothing, because nothing was changed."""


class TerminalScreen:
    """A person's screen. With ``keys`` it reads the keyboard key by key until the end."""

    def __init__(self, keys: bool, coloured: bool = True) -> None:
        self._keys, self._coloured = keys, coloured
        self._drawn = 0
        self._rows: list[str] = []
        self._typed_line: tuple[str, int] | None = None
        self._saved_settings: list[Any] | None = None

    def __enter__(self) -> "TerminalScreen":
        if self._keys:
            import termios

            self._saved_settings = termios.tcgetattr(sys.stdin)
            self._read_by_key()
            # a shell may have changed it
            signal.signal(signal.SIGCONT, lambda *_: self._read_by_key())
            signal.signal(signal.SIGTERM, _exit_on_signal)
        return self

    def _read_by_key(self) -> None:
        """Read key by key. Ctrl-C still interrupts, and text typed ahead is not lost."""
        import termios
        import tty

        tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def __exit__(self, *_: Any) -> None:
        self._write(self._erase())
        if self._saved_settings is not None:
            import termios

            for number in (signal.SIGCONT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved_settings)
            self._saved_settings = None

    def tell(self, lines: list[TranscriptLine], rows: list[str] | None = None) -> None:
        """Print finished lines above the changing rows. ``rows`` replaces those rows."""
        if lines:
            self._rows = self._rows if rows is None else rows
            rendered = [line for each in lines for line in lay_out_line(each, self._columns())]
            self._write(self._erase() + "".join(f"{line}\n" for line in rendered) + self._redraw())

    def below(self, rows: list[str], typed: str | None = None, at: int = 0) -> None:
        """Draw the changing rows, and the line that is being typed with its cursor."""
        line = None if typed is None else (typed, at)
        if (rows, line) != (self._rows, self._typed_line):
            self._rows, self._typed_line = rows, line
            self._write(self._erase() + self._redraw())

    def _erase(self) -> str:
        up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
        drawn, self._drawn = self._drawn, 0
        return f"{up}\r\x1b[J" if drawn else ""

    def _redraw(self) -> str:
        columns = self._columns()
        rows = [cut_row(row, columns - 1) for row in self._rows]
        cursor = ""
        if self._typed_line is not None:
            visible, at = cursor_window(*self._typed_line, columns - len(PROMPT) - 1)
            rows.append(PROMPT + visible)
            cursor = f"\r\x1b[{len(PROMPT) + at}C"
        self._drawn = len(rows)
        return "\n".join(rows) + cursor

    def _columns(self) -> int:
        import shutil

        return max(LEAST_COLUMNS, shutil.get_terminal_size().columns)

    def _write(self, text: str) -> None:
        if text:
            # without colours, keep the codes that move the cursor
            sys.stdout.write(text if self._coloured else re.sub("\x1b\\[[0-9;]*m", "", text))
            sys.stdout.flush()


Screen = PipeScreen | TerminalScreen


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    """Exit, so that the terminal is restored on the way out."""
    sys.exit(128 + number)


def lay_out_line(line: TranscriptLine, columns: int) -> list[str]:
    """Wrap the text beside its head, and put the tail at the end of the last line or below it.

    A command follows whole at the left edge: a terminal that folds it copies it as one line.
    """
    from rich.cells import cell_len

    indent = cell_len(click.unstyle(line.head)) + 2 if line.head else 0
    room = max(LEAST_COLUMNS // 2, columns - indent - 1)
    rows = wrap_text(line.text, room)
    tail = click.unstyle(line.tail)
    if tail and cell_len(tail) <= room:
        if cell_len(rows[-1]) + 2 + cell_len(tail) <= room:
            rows[-1] += " " * (room - cell_len(rows[-1]) - cell_len(tail)) + line.tail
        else:
            rows.append(" " * (room - cell_len(tail)) + line.tail)
    if line.quiet:
        rows = [click.style(row, dim=True) for row in rows]
    head = f"{line.head}  " if line.head else ""
    more = [line.command] if line.command else []
    return [head + rows[0], *(" " * indent + row for row in rows[1:]), *more]


def wrap_text(text: str, room: int) -> list[str]:
    """Return lines of at most ``room`` cells, broken at blanks where there are any."""
    from rich.cells import cell_len

    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            while cell_len(word) > room:
                head = fit_text(word, room - cell_len(line) - bool(line))
                lines.append(f"{line} {head}" if line and head else line or head)
                word, line = word[len(head) :], ""
            longer = f"{line} {word}" if line else word
            if cell_len(longer) > room:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    return lines


def fit_text(text: str, room: int) -> str:
    """Return as much of the start as fits, and at least one character if there is room."""
    from rich.cells import cell_len

    cells = 0
    for number, character in enumerate(text):
        cells += cell_len(character)
        if cells > room:
            return text[: max(number, 1 if room >= 1 else 0)]
    return text


def cut_row(row: str, room: int) -> str:
    """Cut a row at the edge, and drop its colours if it is cut."""
    from rich.cells import cell_len

    plain = click.unstyle(row)
    return row if cell_len(plain) <= room else fit_text(plain, room - 1) + "…"


def cursor_window(text: str, at: int, room: int) -> tuple[str, int]:
    """Return the part of a long line around the cursor, and the cursor's cell."""
    from rich.cells import cell_len

    start, cells = at, 0
    while start > 0 and cells + cell_len(text[start - 1]) < room:
        start -= 1
        cells += cell_len(text[start])
    return fit_text(text[start:], room), cells


class Keyboard:
    """Reads bytes of standard input."""

    def __init__(self) -> None:
        self.file = sys.stdin.fileno()

    def read(self) -> bytes:
        """Return nothing when standard input has closed."""
        with suppress(OSError):
            return os.read(self.file, 4096)
        return b""


def open_screen(prompt: bool) -> Screen:
    """Return a terminal screen where the cursor can move, else a pipe screen."""
    from moot.config.settings import client_environment

    environ = client_environment()
    if not output.on_terminal() or environ.get("TERM") == "dumb":
        return PipeScreen()
    keys = prompt and sys.stdin.isatty()
    return TerminalScreen(keys, coloured=not environ.get("NO_COLOR"))


def terminal_columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns
