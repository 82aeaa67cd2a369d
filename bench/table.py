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
            ours / theirs if theirs else math.inf  # less than the clock can tell
            for ours, theirs in zip(values, bare, strict=False)
        )
    if goal is not None:
        made.met = "NO" if best(goal, made.best) != made.best else "best"
        made.met = "yes" if best(goal, made.median) == made.median else made.met
    return made


class Pair(Struct, kw_only=True):
    """One figure of two trees. A ratio above 1 says that this tree does better."""

    name: str
    unit: str
    median: float
    beside: float
    #: of the medians, and the least and the most of one round's two figures
    ratio: float
    low: float
    high: float
    bar: str
    #: by the ratio, only by a part of the spread, not at all
    met: Literal["yes", "spread", "NO"]


def pair(
    name: str,
    unit: str,
    values: list[float],
    others: list[float],
    better: Better,
    bar: float,
    goal: float | None = None,
) -> Pair:
    """Compare rounds of two trees. A goal is for this tree alone and takes the bar's place."""
    ratios = [_advantage(*each, better) for each in zip(values, others, strict=True)]
    median, beside = statistics.median(values), statistics.median(others)
    ratio = _advantage(median, beside, better)
    if goal is None:
        met = _verdict(ratio >= bar, max(ratios) >= bar)
    else:
        met = _verdict(median <= goal, min(values) <= goal)
    return Pair(
        name=name,
        unit=unit,
        median=median,
        beside=beside,
        ratio=ratio,
        low=min(ratios),
        high=max(ratios),
        bar=f"{bar:.2f}" if goal is None else f"≤ {number(goal)} {unit}",
        met=met,
    )


def _advantage(ours: float, theirs: float, better: Better) -> float:
    above, below = (ours, theirs) if better == "more" else (theirs, ours)
    return above / below if below else math.inf


def _verdict(by_median: bool, by_any: bool) -> Literal["yes", "spread", "NO"]:
    return "yes" if by_median else "spread" if by_any else "NO"


PAIR_COLUMNS = ("what", "unit", "this tree", "beside", "ratio", "spread", "bar", "met")


def pair_text(pairs: list[Pair]) -> str:
    return _markdown([PAIR_COLUMNS, *map(_pair_cells, pairs)])


def _pair_cells(pair: Pair) -> tuple[str, ...]:
    return (
        pair.name,
        pair.unit,
        number(pair.median),
        number(pair.beside),
        f"{pair.ratio:.2f}",
        f"{pair.low:.2f}-{pair.high:.2f}",
        pair.bar,
        pair.met,
    )


COLUMNS = ("what", "unit", "best", "median", "bare best", "bare median", "ratio", "goal", "met")


def text(rows: list[Row]) -> str:
    return _markdown([COLUMNS, *map(_cells, rows)])


def _markdown(lines: list[tuple[str, ...]]) -> str:
    """A Markdown table, aligned so that it reads in a terminal too."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
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
