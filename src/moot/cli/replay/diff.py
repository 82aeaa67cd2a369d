"""``moot diff A B``: compare two runs side by side, aligned by cause."""

from collections.abc import Iterator

import click
from msgspec import Struct

from moot.cli.replay.align import Pair
from moot.cli.replay.compare import describe_changes, event_text, word_diff
from moot.cli.replay.diff_lines import (
    ForkEditLine,
    Stretch,
    compare_logs,
    count_common,
    fork_edits,
    fork_origin,
    source_and_fork,
    stretches_json,
)
from moot.cli.runs.event_lines import summarize
from moot.cli.runs.find import resolve_run_id
from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.logs import inner_object, read_log, turn_fields
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations.runs import get_run
from moot.core.events import Event, payload_fields
from moot.core.payloads.memory import EffectFinished
from moot.core.sentences.forks import describe_origin
from moot.wire.runs import Snapshot

#: events of each run that are compared
MAX_EVENTS = 50_000
COLOURS = {"-": "red", "+": "green", "~": "yellow"}
#: where the first column ends
LABEL = 9
TO = "\u2013"


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("-e", "--exit-code", "telling", is_flag=True, help="Exit 1 when they differ.")
@server_options
def diff(options: CommandOptions, a: str, b: str, telling: bool) -> ExitCode:
    """Compare two runs, event by event.

    Shown is what they have in common, what was changed, and what came of it. Events are matched
    by what caused them, so that one more of them does not shift the rest. Times, durations and
    made-up ids are not compared. Lines begin with - for events of A only, + for events of B only,
    ~ for events of both that say something else.
    """
    api = api_for_reading(options)
    runs = [api.send(get_run(resolve_run_id(api, name))) for name in (a, b)]
    logs, all_read = [], True
    for run in runs:
        events, entire = read_log(api, run.run_id, MAX_EVENTS)
        logs.append(events)
        all_read = all_read and entire
    stretches = compare_logs(*logs)
    if options.json:
        output.print_json(_diff_json(runs, logs, stretches, all_read))
    else:
        _print_diff(runs, logs, stretches)
    if not all_read:
        output.print_error(f"Only the first {MAX_EVENTS} events of each run were compared.")
    return ExitCode.FAILED if telling and not _is_identical(stretches) else ExitCode.OK


def _is_identical(stretches: list[Stretch]) -> bool:
    return all(stretch.op == "same" for stretch in stretches)


def _fork_edits(logs: list[list[Event]]) -> list[ForkEditLine]:
    relation = source_and_fork(*logs)
    return list(fork_edits(*relation)) if relation is not None else []


def _diff_json(
    runs: list[Snapshot], logs: list[list[Event]], stretches: list[Stretch], all_read: bool
) -> dict[str, object]:
    sides = [_run_figures(run, log) for run, log in zip(runs, logs, strict=True)]
    changes = [edit._asdict() for edit in _fork_edits(logs)]
    return {
        "a": sides[0], "b": sides[1], "identical": _is_identical(stretches),
        "common": count_common(stretches), "changes": changes,
        "lines": stretches_json(stretches), "complete": all_read,
    }  # fmt: skip


class RunFigures(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The size of a run; its seconds last until its end, or until its last event."""

    run_id: str
    workflow_id: str
    status: str
    events: int
    seconds: float
    tokens: int | None = None


def _run_figures(run: Snapshot, log: list[Event]) -> RunFigures:
    seconds = output.seconds_between(run.started_at, run.completed_at or log[-1].timestamp)
    tokens = count_tokens(log)
    return RunFigures(run.run_id, run.workflow_id, run.status, len(log), seconds, tokens)


def count_tokens(log: list[Event]) -> int | None:
    """Return the tokens of all model calls, as far as the models report them."""
    results = [payload_fields(event) for event in log if event.type == EffectFinished.event_type]
    usages = [inner_object(inner_object(each, "result"), "usage") for each in results]
    counts = [each.get(name, 0) for each in usages for name in ("inputTokens", "outputTokens")]
    return sum(count for count in counts if isinstance(count, int)) if any(usages) else None


def _print_diff(runs: list[Snapshot], logs: list[list[Event]], stretches: list[Stretch]) -> None:
    has_common = count_common(stretches)
    if has_common:
        _print_labelled("common", _stretch_numbers(stretches[0]))
    changes = _fork_edits(logs)
    for edit in changes:
        _print_labelled("change", _edit_text(edit))
    for side, log in zip("AB", logs, strict=True):
        _print_origin(side, fork_origin(log), related=source_and_fork(*logs) is not None)
    for stretch in stretches[1:] if has_common else stretches:
        for mark, text in _stretch_lines(stretch):
            output.print_fitted(f" {mark} {text}" if mark else text, COLOURS.get(mark))
    if _is_identical(stretches) and not changes:
        _print_labelled("same", "nothing differs")
    _print_totals(runs, logs)


def _print_origin(side: str, fork: dict[str, object], related: bool) -> None:
    """Print the note of a fork, and its source when that is not the other run."""
    note = f'"{output.shorten(fork["note"])}"' if fork.get("note") else ""
    if related and note:
        _print_labelled("note", note)
    elif fork and not related:
        _print_labelled("fork", f"{side} is a {describe_origin(fork)}  {note}".rstrip())


def _print_labelled(label: str, text: str) -> None:
    output.print_fitted(f" {label:<{LABEL}}{text}")


def _edit_text(edit: ForkEditLine) -> str:
    if edit.before is None and edit.after is None:
        return output.one_line(edit.what)
    before = "nothing" if edit.before is None else output.shorten(edit.before, 60)
    after = "nothing" if edit.after is None else output.shorten(edit.after, 60)
    return f"{output.one_line(edit.what)}  {before} → {after}"


def _stretch_lines(stretch: Stretch) -> Iterator[tuple[str, str]]:
    """Yield each differing event; equal events become one line."""
    if stretch.op == "same":
        yield "", f" {'same':<{LABEL}}{_stretch_numbers(stretch)}"
        return
    for pair in stretch.pairs:
        yield from _pair_lines(pair)


def _pair_lines(pair: Pair) -> Iterator[tuple[str, str]]:
    if pair.a is None or pair.b is None:
        event = pair.a or pair.b
        assert event is not None
        yield ("-" if pair.a else "+"), _event_line(event, summarize(event))
        return
    old_text, new_text = event_text(pair.a), event_text(pair.b)
    before, after = summarize(pair.a), summarize(pair.b)
    if old_text is not None and new_text is not None and old_text != new_text:
        words, speaker = (
            output.one_line(word_diff(old_text, new_text)),
            turn_fields(pair.a).get("from"),
        )
        prefix = f"{output.one_line(str(speaker))}  " if speaker else ""
        yield "~", _event_line(pair.a, f"{prefix}{words}", pair.b)
    elif before != after:
        yield "-", _event_line(pair.a, before)
        yield "+", _event_line(pair.b, after)
    else:
        changes = output.shorten(describe_changes(pair.a, pair.b), 300)
        yield "~", _event_line(pair.a, f"{before}: {changes}", pair.b)


def _event_line(event: Event, text: str, other: Event | None = None) -> str:
    node = output.one_line(event.node_id or "")
    number = f"#{event.sequence}"
    if other is not None and other.sequence != event.sequence:
        number += f"/#{other.sequence}"
    return f"{number:<4} {node}{'  ' if node else ''}{text}"


def _stretch_numbers(stretch: Stretch) -> str:
    """Return ``#4-#6 ↔ #9-#11``, or one span where both sides have the same numbers."""
    left, right = (_number_span([pair[side] for pair in stretch.pairs]) for side in (0, 1))
    many = len(stretch.pairs)
    count = f"  ({many} events)" if many > 1 else ""
    return (left if left == right else f"{left} ↔ {right}") + count


def _number_span(events: list[Event | None]) -> str:
    numbers = [event.sequence for event in events if event is not None]
    first, last = numbers[0], numbers[-1]
    return f"#{first}" if first == last else f"#{first}{TO}#{last}"


def _print_totals(runs: list[Snapshot], logs: list[list[Event]]) -> None:
    """Print outcome, events, tokens and time of both runs."""
    a, b = (_run_figures(run, log) for run, log in zip(runs, logs, strict=True))
    _print_labelled("outcome", f"{_outcome_text(runs[0])} → {_outcome_text(runs[1])}")
    figures = [f"events {a.events} → {b.events}"]
    if a.tokens is not None or b.tokens is not None:
        figures.append(f"tokens {a.tokens or 0} → {b.tokens or 0}")
    figures.append(f"time {output.format_span(a.seconds)} → {output.format_span(b.seconds)}")
    _print_labelled("", "    ".join(figures))


def _outcome_text(run: Snapshot) -> str:
    return output.one_line(f"{run.status} ({run.error.code})" if run.error else run.status)
