"""``moot diff A B``: two runs side by side, aligned by cause."""

from collections.abc import Iterator
from typing import Any

import click

from moot.cli.replay.align import Event, Pair
from moot.cli.replay.compare import changes, text_of, word_diff
from moot.cli.replay.diff_lines import (
    Edit,
    Stretch,
    as_json,
    common,
    edits,
    forked,
    origin,
    stretches,
)
from moot.cli.replay.lineage import descent
from moot.cli.runs.event_lines import summary
from moot.cli.runs.find import resolve
from moot.cli.shared import output
from moot.cli.shared.client import path_of, to_read
from moot.cli.shared.errors import Exit
from moot.cli.shared.logs import whole
from moot.cli.shared.options import Options, talks

#: events of each run that are compared
MOST = 50_000
COLOURS = {"-": "red", "+": "green", "~": "yellow"}
#: where the first column ends
LABEL = 9
TO = "\u2013"


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("-e", "--exit-code", "telling", is_flag=True, help="Exit 1 when they differ.")
@talks
def diff(options: Options, a: str, b: str, telling: bool) -> Exit:
    """Compare two runs, event by event.

    Shown is what they have in common, what was changed, and what came of it. Events are matched
    by what caused them, so that one more of them does not shift the rest. Times, durations and
    made-up ids are not compared. Lines begin with - for events of A only, + for events of B only,
    ~ for events of both that say something else.
    """
    api = to_read(options)
    runs = [api.get(path_of("v1", "runs", resolve(api, name))) for name in (a, b)]
    logs, all_read = [], True
    for run in runs:
        events, entire = whole(api, run["runId"], MOST)
        logs.append(events)
        all_read = all_read and entire
    found = stretches(*logs)
    if options.json:
        output.show_json(_as_json(runs, logs, found, all_read))
    else:
        _show(runs, logs, found)
    if not all_read:
        output.complain(f"Only the first {MOST} events of each run were compared.")
    return Exit.FAILED if telling and not _identical(found) else Exit.OK


def _identical(found: list[Stretch]) -> bool:
    return all(stretch.op == "same" for stretch in found)


def _edits(logs: list[list[Event]]) -> list[Edit]:
    kin = forked(*logs)
    return list(edits(*kin)) if kin is not None else []


def _as_json(
    runs: list[dict[str, Any]], logs: list[list[Event]], found: list[Stretch], all_read: bool
) -> dict[str, Any]:
    sides = [_side(run, log) for run, log in zip(runs, logs, strict=True)]
    told = [edit._asdict() for edit in _edits(logs)]
    return {
        "a": sides[0], "b": sides[1], "identical": _identical(found), "common": common(found),
        "changes": told, "lines": as_json(found), "complete": all_read,
    }  # fmt: skip


def _side(run: dict[str, Any], log: list[Event]) -> dict[str, Any]:
    """A run in figures."""
    shown = {"runId": run["runId"], "workflowId": run["workflowId"], "status": run["status"],
             "events": len(log), "seconds": _seconds(run, log), "tokens": tokens(log)}  # fmt: skip
    return {name: value for name, value in shown.items() if value is not None}


#: what a call of a model, or of anything else, has come to
FINISHED = "moot.effect.finished"


def tokens(log: list[Event]) -> int | None:
    """What models were paid for, as far as they told."""
    answers = [event["payload"].get("result") for event in log if event["type"] == FINISHED]
    told = [said["usage"] for said in answers if isinstance(said, dict) and said.get("usage")]
    counts = (said.get("inputTokens", 0) + said.get("outputTokens", 0) for said in told)
    return sum(counts) if told else None


def _seconds(run: dict[str, Any], log: list[Event]) -> float:
    """Until its end, or its last event."""
    return output.between(run["startedAt"], run.get("completedAt") or str(log[-1]["timestamp"]))


def _show(runs: list[dict[str, Any]], logs: list[list[Event]], found: list[Stretch]) -> None:
    shared = common(found)
    if shared:
        _labelled("common", _numbers(found[0]))
    told = _edits(logs)
    for edit in told:
        _labelled("change", _words(edit))
    for side, log in zip("AB", logs, strict=True):
        _tell_origin(side, origin(log), kin=forked(*logs) is not None)
    for stretch in found[1:] if shared else found:
        for mark, text in _stretch(stretch):
            output.fitted(f" {mark} {text}" if mark else text, COLOURS.get(mark))
    if _identical(found) and not told:
        _labelled("same", "nothing differs")
    _totals(runs, logs)


def _tell_origin(side: str, fork: dict[str, Any], kin: bool) -> None:
    """Why a fork was made; and where it comes from, when that is not the other one."""
    note = f'"{output.brief(fork["note"])}"' if fork.get("note") else ""
    if kin and note:
        _labelled("note", note)
    elif fork and not kin:
        _labelled("fork", f"{side} is a {descent(fork)}  {note}".rstrip())


def _labelled(label: str, text: str) -> None:
    output.fitted(f" {label:<{LABEL}}{text}")


def _words(edit: Edit) -> str:
    if edit.before is None and edit.after is None:
        return output.one_line(edit.what)
    before = "nothing" if edit.before is None else output.brief(edit.before, 60)
    after = "nothing" if edit.after is None else output.brief(edit.after, 60)
    return f"{output.one_line(edit.what)}  {before} → {after}"


def _stretch(stretch: Stretch) -> Iterator[tuple[str, str]]:
    """What differs event by event; what is the same as one line."""
    if stretch.op == "same":
        yield "", f" {'same':<{LABEL}}{_numbers(stretch)}"
        return
    for pair in stretch.pairs:
        yield from _differing(pair)


def _differing(pair: Pair) -> Iterator[tuple[str, str]]:
    if pair.a is None or pair.b is None:
        event = pair.a or pair.b
        assert event is not None
        yield ("-" if pair.a else "+"), _line(event, summary(event))
        return
    was, now = text_of(pair.a), text_of(pair.b)
    before, after = summary(pair.a), summary(pair.b)
    if was is not None and now is not None and was != now:
        words = output.one_line(word_diff(was, now))
        yield "~", _line(pair.a, f"{_speaker(pair.a)}{words}", pair.b)
    elif before != after:
        yield "-", _line(pair.a, before)
        yield "+", _line(pair.b, after)
    else:
        yield "~", _line(pair.a, f"{before}: {output.brief(changes(pair.a, pair.b), 300)}", pair.b)


def _speaker(event: Event) -> str:
    said = event["payload"]
    turn = said.get("turn") or said.get("initialTurn") or said.get("finalTurn") or {}
    return f"{output.one_line(str(turn['from']))}  " if turn.get("from") else ""


def _line(event: Event, text: str, other: Event | None = None) -> str:
    node = output.one_line(event.get("nodeId") or "")
    number = f"#{event['sequence']}"
    if other is not None and other["sequence"] != event["sequence"]:
        number += f"/#{other['sequence']}"
    return f"{number:<4} {node}{'  ' if node else ''}{text}"


def _numbers(stretch: Stretch) -> str:
    """``#4-#6 ↔ #9-#11``, or once where both sides have the same numbers."""
    left, right = (_span([pair[side] for pair in stretch.pairs]) for side in (0, 1))
    many = len(stretch.pairs)
    count = f"  ({many} events)" if many > 1 else ""
    return (left if left == right else f"{left} ↔ {right}") + count


def _span(events: list[Event | None]) -> str:
    numbers = [event["sequence"] for event in events if event is not None]
    first, last = numbers[0], numbers[-1]
    return f"#{first}" if first == last else f"#{first}{TO}#{last}"


def _totals(runs: list[dict[str, Any]], logs: list[list[Event]]) -> None:
    """Outcome, events, tokens and time, each as what it was and what it is."""
    a, b = (_side(run, log) for run, log in zip(runs, logs, strict=True))
    _labelled("outcome", f"{_outcome(runs[0])} → {_outcome(runs[1])}")
    figures = [f"events {a['events']} → {b['events']}"]
    if "tokens" in a or "tokens" in b:
        figures.append(f"tokens {a.get('tokens', 0)} → {b.get('tokens', 0)}")
    figures.append(f"time {output.span(a['seconds'])} → {output.span(b['seconds'])}")
    _labelled("", "    ".join(figures))


def _outcome(run: dict[str, Any]) -> str:
    code = run.get("error", {}).get("code")
    return output.one_line(f"{run['status']} ({code})" if code else run["status"])
