"""Print results: a table on a terminal, tab-separated in a pipe, JSON on request."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from moot.cli.shared.options import CommandOptions

T = TypeVar("T")

#: letters of an id that are enough to be unique; every command takes such a prefix
SHORT_ID_LENGTH = len("run_") + 8

#: characters that could move the cursor, colour the screen or turn the writing around: a person who
#: approves something must see that very thing
UNSAFE = {code: "\ufffd" for span in (
    range(0x20), range(0x7F, 0xA0), range(0x202A, 0x202F), range(0x2066, 0x206A)
) for code in span}  # fmt: skip

#: a text may have several lines, and JSON can escape every character
UNSAFE_IN_LINES = {code: mark for code, mark in UNSAFE.items() if chr(code) not in "\t\n"}
UNSAFE_IN_JSON = {code: f"\\u{code:04x}" for code in UNSAFE_IN_LINES}

#: blanks between columns; the least width of the last column, and of any, on a narrow terminal
GAP = 2
LAST_COLUMN_WIDTH = 12
NARROWEST_COLUMN = 3

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


def print_json(value: Any) -> None:
    _echo_json(json.dumps(value, indent=2, ensure_ascii=False, default=_to_builtins))


def print_json_line(value: Any) -> None:
    _echo_json(json.dumps(value, ensure_ascii=False, default=_to_builtins))


def _to_builtins(answer: Any) -> Any:
    """Return an answer of the server as the server has written it."""
    import msgspec

    return msgspec.to_builtins(answer)


def _echo_json(text: str) -> None:
    click.echo(text.translate(UNSAFE_IN_JSON) if on_terminal() else text)


def write_bytes(body: bytes) -> None:
    """Write bytes that others made: unchanged to a pipe, only the safe part to a terminal."""
    if on_terminal():
        body = safe_lines(body.decode(errors="replace")).encode()
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def safe_lines(text: str, err: bool = False) -> str:
    """Return text that others made; on a terminal nothing but its lines."""
    if not on_terminal(err):
        return text
    return text.replace("\r\n", "\n").translate(UNSAFE_IN_LINES)


def safe_line(text: Any, err: bool = False) -> str:
    """Return text that others made as one line of a terminal."""
    return one_line(str(text)) if on_terminal(err) else str(text)


def print_error(text: str) -> None:
    click.echo(safe_lines(text, err=True), err=True)


def print_answer(options: CommandOptions, answer: object, *lines: str) -> None:
    """Print the answer as JSON on request, else these lines."""
    if options.json:
        print_json(answer)
    else:
        print_lines(*lines)


def print_lines(*lines: str) -> None:
    for line in lines:
        click.echo(safe_line(line))


def print_secret(
    options: CommandOptions, answer: object, secrets: Sequence[object], sentence: str
) -> None:
    """Print an answer that is the only one with its secrets: the secrets alone on stdout."""
    if options.json:
        print_json(answer)
        return
    for secret in secrets:
        click.echo(secret)
    click.echo(f"{sentence}. Keep the secret; it is not shown again.", err=True)


def print_list(
    options: CommandOptions,
    rows: Sequence[T],
    columns: Sequence[str],
    cells: Callable[[T], Sequence[object]],
    empty: str = "Nothing.",
) -> None:
    """Print whole rows as JSON on request, else a table with the cells of each row."""
    if options.json:
        print_json(rows)
    else:
        print_table(columns, map(cells, rows), empty)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    empty: str = "Nothing.",
    heading: bool = True,
) -> None:
    """Print columns with a heading on a terminal, without empty columns; bare values in a pipe."""
    cells = [[_cell_text(value) for value in row] for row in rows]
    if not on_terminal():
        for row in cells:
            click.echo("\t".join(row))
    elif not cells:
        click.echo(empty)
    else:
        full = [n for n in range(len(columns)) if any(row[n] != "-" for row in cells)] or [0]
        full_columns = [[row[n] for n in full] for row in cells]
        _print_columns([columns[n] for n in full], full_columns, heading)


def _print_columns(columns: Sequence[str], rows: list[list[str]], heading: bool) -> None:
    """Shorten the last column on a narrow terminal first, then the widest."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    *widths, last = (max(map(len, cells)) for cells in zip(columns, *rows, strict=True))
    width_left = console.width - GAP * len(widths)
    while (
        sum(widths) + min(last, LAST_COLUMN_WIDTH) > width_left and max(widths) > NARROWEST_COLUMN
    ):
        widths[widths.index(max(widths))] -= 1
    last_width = max(NARROWEST_COLUMN, width_left - sum(widths))
    dim = "" if console.no_color else "dim"  # without colours print nothing but letters
    table = Table(
        box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style=dim, show_header=heading
    )
    for column, width in zip(columns, (*widths, last_width), strict=True):
        table.add_column(column, overflow="ellipsis", no_wrap=True, max_width=width)
    for row in rows:
        table.add_row(*(Text(value, style="" if not dim else _cell_style(value)) for value in row))
    console.print(table)


def _cell_text(value: Any) -> str:
    if value is None:
        return "-"
    return one_line(str(value)) if value != "" else "-"


def one_line(text: str) -> str:
    return " ".join(text.split()).translate(UNSAFE)


def _cell_style(value: str) -> str:
    return MARKS.get(value.removeprefix("✓ ").removeprefix("✗ "), ("", ""))[1]


def print_facts(*words: str) -> None:
    """Print facts with a dot between them; a terminal breaks the line only there."""
    import shutil

    width, rows = shutil.get_terminal_size().columns if on_terminal() else 0, [words[0]]
    for word in words[1:]:
        if width and len(rows[-1]) + len(word) + 3 > width:
            rows.append(f"  {word}")
        else:
            rows[-1] += f" · {word}"
    click.echo("\n".join(rows))


def print_fitted(text: str, colour: str | None = None) -> None:
    """Print one line that is cut at the edge of a terminal; a pipe gets all of it."""
    import shutil

    plain, width = click.unstyle(text), shutil.get_terminal_size().columns
    if on_terminal() and len(plain) > width:
        text = plain[: max(1, width - 1)] + "…"
    click.echo(click.style(text, fg=colour) if colour else text)


def status_mark(status: str) -> str:
    """Return ``✓ completed`` in its colour."""
    mark, colour = MARKS.get(status, ("·", None))
    return click.style(f"{mark} {status}", fg=colour)


def short_id(run_id: str) -> str:
    """Return the first letters of an id on a terminal, all of it in a pipe."""
    return run_id[:SHORT_ID_LENGTH] if on_terminal() else run_id


def parse_timestamp(timestamp: str) -> datetime:
    return datetime.fromisoformat(timestamp)


def clock_time(timestamp: str) -> str:
    """Return the local time of day, to the millisecond."""
    return parse_timestamp(timestamp).astimezone().strftime("%H:%M:%S.%f")[:-3]


def format_age(timestamp: str) -> str:
    """Return the time since then, in one unit."""
    return format_span(seconds_since(timestamp))


def seconds_since(timestamp: str) -> float:
    return -_seconds_until(timestamp)


def format_time_left(timestamp: str) -> str:
    """Return the time until then, in one unit."""
    return format_span(_seconds_until(timestamp))


def _seconds_until(timestamp: str) -> float:
    from moot.clock import SystemClock

    instant = parse_timestamp(timestamp).astimezone(UTC).timestamp() * 1000
    return (instant - SystemClock().millis()) / 1000


def seconds_between(start: str, end: str) -> float:
    return (parse_timestamp(end) - parse_timestamp(start)).total_seconds()


def format_span(seconds: float) -> str:
    """Return ``8 ms``, ``1.2 s``, ``12 min``, ``3 h`` or ``2 d``."""
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    for size, word, limit in ((60, "min", 7200), (3600, "h", 172_800), (86_400, "d", 1e12)):
        if seconds < limit:
            return f"{seconds / size:.0f} {word}"
    return "-"


def shorten(value: Any, most: int = 160) -> str:
    """Return a value on one line of at most ``most`` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = one_line(text)
    return text if len(text) <= most else text[: most - 1] + "…"
