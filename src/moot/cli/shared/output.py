"""How results look: a table on a terminal, tab-separated when piped, whole objects as JSON."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

#: enough of an id to be the only one; every command takes such a prefix
SHORT = len("run_") + 8

#: what could move the cursor, colour the screen or turn the writing around: nobody who is asked
#: to approve something may be shown something else
UNSAFE = {code: "\ufffd" for span in (
    range(0x20), range(0x7F, 0xA0), range(0x202A, 0x202F), range(0x2066, 0x206A)
) for code in span}  # fmt: skip

#: a text may have lines; and JSON has a way to write everything
UNSAFE_IN_LINES = {code: mark for code, mark in UNSAFE.items() if chr(code) not in "\t\n"}
UNSAFE_IN_JSON = {code: f"\\u{code:04x}" for code in UNSAFE_IN_LINES}

#: between columns; what the last one keeps on a narrow terminal, and what any keeps
GAP = 2
LEAST = 12
NARROW = 3

MARKS = {
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("✗", "yellow"),
    "running": ("●", "cyan"),
    "talking": ("●", "cyan"),
    "live": ("●", "cyan"),
    "pending": ("○", "cyan"),
    "running, pausing": ("⏸", "yellow"),
    "paused": ("⏸", "yellow"),
    "waiting-approval": ("⏸", "magenta"),
    "waiting-input": ("⏸", "magenta"),
    "waiting-external": ("⏸", "cyan"),
}


def on_terminal(err: bool = False) -> bool:
    return (sys.stderr if err else sys.stdout).isatty()


def show_json(value: Any) -> None:
    _echo_json(json.dumps(value, indent=2, ensure_ascii=False))


def json_line(value: Any) -> None:
    _echo_json(json.dumps(value, ensure_ascii=False))


def _echo_json(text: str) -> None:
    click.echo(text.translate(UNSAFE_IN_JSON) if on_terminal() else text)


def write(body: bytes) -> None:
    """Somebody else's bytes: for programs as they are, on a terminal only what is safe there."""
    if on_terminal():
        body = lines(body.decode(errors="replace")).encode()
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def lines(text: str, err: bool = False) -> str:
    """Somebody else's text; a terminal gets no more of it than its lines."""
    if not on_terminal(err):
        return text
    return text.replace("\r\n", "\n").translate(UNSAFE_IN_LINES)


def line(text: Any, err: bool = False) -> str:
    """Somebody else's word within a line of ours, which must stay one."""
    return one_line(str(text)) if on_terminal(err) else str(text)


def complain(text: str) -> None:
    click.echo(lines(text, err=True), err=True)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    empty: str = "Nothing.",
    heading: bool = True,
) -> None:
    """Columns with a heading for people, those without any value left out; bare values for
    programs."""
    found = [[_cell(value) for value in row] for row in rows]
    if not on_terminal():
        for row in found:
            click.echo("\t".join(row))
    elif not found:
        click.echo(empty)
    else:
        full = [n for n in range(len(columns)) if any(row[n] != "-" for row in found)] or [0]
        shown = [[row[n] for n in full] for row in found]
        _pretty([columns[n] for n in full], shown, heading)


def _pretty(columns: Sequence[str], rows: list[list[str]], heading: bool) -> None:
    """Where the terminal is too narrow, the last column gives way, and then the widest."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    *widths, last = (max(map(len, cells)) for cells in zip(columns, *rows, strict=True))
    room = console.width - GAP * len(widths)
    while sum(widths) + min(last, LEAST) > room and max(widths) > NARROW:
        widths[widths.index(max(widths))] -= 1
    rest = max(NARROW, room - sum(widths))
    faint = "" if console.no_color else "dim"  # no colours: nothing but letters
    drawn = Table(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style=faint, show_header=heading
    )
    for column, width in zip(columns, (*widths, rest), strict=True):
        drawn.add_column(column, overflow="ellipsis", no_wrap=True, max_width=width)
    for row in rows:
        drawn.add_row(*(Text(value, style="" if not faint else _style(value)) for value in row))
    console.print(drawn)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return one_line(str(value)) if value != "" else "-"


def one_line(text: str) -> str:
    return " ".join(text.split()).translate(UNSAFE)


def _style(value: str) -> str:
    return MARKS.get(value.removeprefix("✓ ").removeprefix("✗ "), ("", ""))[1]


def parts(*words: str) -> None:
    """Facts with a dot between them; a terminal breaks the line only there."""
    import shutil

    room, rows = shutil.get_terminal_size().columns if on_terminal() else 0, [words[0]]
    for word in words[1:]:
        if room and len(rows[-1]) + len(word) + 3 > room:
            rows.append(f"  {word}")
        else:
            rows[-1] += f" · {word}"
    click.echo("\n".join(rows))


def fitted(text: str, colour: str | None = None) -> None:
    """One line of ours that gives way at the edge of a terminal; a pipe gets all of it."""
    import shutil

    plain, room = click.unstyle(text), shutil.get_terminal_size().columns
    if on_terminal() and len(plain) > room:
        text = plain[: max(1, room - 1)] + "…"
    click.echo(click.style(text, fg=colour) if colour else text)


def status_mark(status: str) -> str:
    """``✓ completed`` in its colour."""
    mark, colour = MARKS.get(status, ("·", None))
    return click.style(f"{mark} {status}", fg=colour)


def short(run_id: str) -> str:
    """On a terminal the first letters of an id, for programs all of it."""
    return run_id[:SHORT] if on_terminal() else run_id


def moment(timestamp: str) -> datetime:
    return datetime.fromisoformat(timestamp)


def clock(timestamp: str) -> str:
    """The time of day here, to the millisecond."""
    return moment(timestamp).astimezone().strftime("%H:%M:%S.%f")[:-3]


def age(timestamp: str) -> str:
    """How long ago, in one unit."""
    return span(seconds_since(timestamp))


def seconds_since(timestamp: str) -> float:
    return -_seconds_to(timestamp)


def left(timestamp: str) -> str:
    """How long until then, in one unit."""
    return span(_seconds_to(timestamp))


def _seconds_to(timestamp: str) -> float:
    from moot.clock import SystemClock

    then = moment(timestamp).astimezone(UTC).timestamp() * 1000
    return (then - SystemClock().millis()) / 1000


def between(start: str, end: str) -> float:
    """Seconds from one timestamp to another."""
    return (moment(end) - moment(start)).total_seconds()


def span(seconds: float) -> str:
    """``8 ms``, ``1.2 s``, ``12 min``, ``3 h``, ``2 d``."""
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    for size, word, most in ((60, "min", 7200), (3600, "h", 172_800), (86_400, "d", 1e12)):
        if seconds < most:
            return f"{seconds / size:.0f} {word}"
    return "-"


def brief(value: Any, most: int = 160) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1] + "…"
