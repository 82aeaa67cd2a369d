"""The one table, and the same as JSON."""

import math
import statistics
from typing import Literal

from msgspec import Struct

Better = Literal["more", "less"]


class Row(Struct, kw_only=True):
    """One figure: the best and the median round, the bare limit beside it, and the goal."""

    name: str
    unit: str
    best: float
    median: float
    bare_best: float | None = None
    bare_median: float | None = None
    #: the median of moot / bare over the rounds
    ratio: float | None = None
    better: Better = "more"
    goal: float | None = None
    #: by the median round, by the best one only (other load makes rounds worse, never better), no
    met: Literal["yes", "best", "NO", ""] = ""


def row(
    name: str,
    unit: str,
    values: list[float],
    bare: list[float] | None = None,
    better: Better = "more",
    goal: float | None = None,
) -> Row:
    best = max if better == "more" else min
    made = Row(
        name=name,
        unit=unit,
        best=best(values),
        median=statistics.median(values),
        better=better,
        goal=goal,
    )
    if bare:
        made.bare_best, made.bare_median = best(bare), statistics.median(bare)
        made.ratio = statistics.median(
            ours / theirs if theirs else math.inf  # less than one tick of the processor's clock
            for ours, theirs in zip(values, bare, strict=False)
        )
    if goal is not None:
        made.met = "NO" if best(goal, made.best) != made.best else "best"
        made.met = "yes" if best(goal, made.median) == made.median else made.met
    return made


COLUMNS = ("what", "unit", "best", "median", "bare best", "bare median", "ratio", "goal", "met")


def text(rows: list[Row]) -> str:
    """A Markdown table, aligned so that it reads in a terminal too."""
    lines = [COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    shown = [
        "| " + " | ".join(_padded(cell, width, n) for n, (cell, width) in enumerate(pairs)) + " |"
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])


def _padded(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)


def _cells(row: Row) -> tuple[str, ...]:
    sign = "≥ " if row.better == "more" else "≤ "
    return (
        row.name,
        row.unit,
        number(row.best),
        number(row.median),
        number(row.bare_best),
        number(row.bare_median),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.goal is None else sign + number(row.goal),
        row.met,
    )


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
