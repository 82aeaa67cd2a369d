"""``moot fork RUN@N``: a run that goes on otherwise from an event of another."""

from typing import Any

import click

from moot.cli.replay.edits import (
    ANSWERS,
    EDITABLE,
    REPLACING,
    Draft,
    Edit,
    draft,
    gathered,
    written,
)
from moot.cli.replay.lineage import spot
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.logs import Event, Histories, page_of
from moot.cli.shared.options import Options, talks
from moot.cli.shared.run_refs import place_of

#: what an answer causes at once: who names one of these means the answer
ANSWERED = ("approval.received", "clarification.resolved", "node.resumed")
#: events before one that are looked through for those that can be edited, and how many are named
LOOKED, NAMED = 200, 5


@click.command()
@click.argument("place", metavar="RUN@N")
@click.option(
    "-s", "--set", "given", multiple=True, metavar="K=V",
    help="Change a variable, input.NAME, model.AGENT, turn, decision or answer; repeat it.",
)  # fmt: skip
@click.option("--edit", "by_hand", is_flag=True, help="Write event N anew in an editor.")
@click.option("--note", help="Why; it is shown wherever the fork is.")
@click.option("-w", "--watch", is_flag=True, help="Follow the fork to its end.")
@talks
def fork(
    options: Options,
    place: str,
    given: tuple[str, ...],
    by_hand: bool,
    note: str | None,
    watch: bool,
) -> Exit:
    """Take a run up at one of its events, with something changed.

    The fork has the history of RUN up to event N, and a life of its own from there: agents are
    asked, effects are made. Nothing happens to RUN.

    \b
    moot fork @last@17                            again from there
    moot fork @last@17 --set price=9              a variable
    moot fork @last@0 --set input.topic=tea       an input
    moot fork @last@17 --set model.ada=local      another model for an agent
    moot fork @last@12 --set answer=reject        instead of the answer at #12
    moot fork @last@12 --edit                     #12 itself, in an editor
    moot fork @last@turn5 --edit                  turn 5 of a council

    A turn, a decision or an answer takes the place of event N; it must be one. All else is
    changed after it. The numbers stand in: moot run tail RUN
    """
    api = to_write(options)
    run_id, sequence = place_of(api, place, "fork")
    at = _meant(Histories(api), run_id, sequence, given, by_hand)
    edit = _edit(api, at, given, by_hand)
    body: dict[str, Any] = {"fromSeq": _first(edit, at)}
    if edit:
        body["edit"] = edit
    if note is not None:
        body["note"] = note
    made = api.post(path_of("v1", "host", "moot", "runs", run_id) + ":fork", body)
    if not (watch and options.json):  # one object for each event then
        _show(options, made, edit)
    if not watch:
        return Exit.OK
    from moot.cli.runs.run import follow_on

    return follow_on(options, api, made["runId"], after=made["fromSeq"] - 1)


def _meant(
    histories: Histories, run_id: str, sequence: int, given: tuple[str, ...], by_hand: bool
) -> Event:
    """The event that is named; of an answer that is several events, the first one."""
    at = histories.expect(run_id, sequence)
    if by_hand or _answers(given):
        for _ in ANSWERED:
            cause_run, _, place = str(at.get("causationId")).rpartition(".")
            if at["type"] in ANSWERED and cause_run == run_id and place.isdecimal():
                at = histories.expect(run_id, int(place))
    return at


def _answers(given: tuple[str, ...]) -> bool:
    return any(word.startswith("answer=") for word in given)


def _edit(api: Api, at: Event, given: tuple[str, ...], by_hand: bool) -> Edit:
    if _answers(given) and at["type"] not in ANSWERS:
        raise _misfit(api, at, "is no answer", ANSWERS)
    edit = gathered(given, at)
    if "inputs" in edit and at["sequence"] != 0:
        name = next(iter(edit["inputs"]))
        where = way(f"fork {at['runId']}@0 --set input.{name}=…")
        raise click.UsageError(f"inputs belong to the beginning: {where}")
    if not by_hand:
        return edit
    found = draft(at)
    if found is None:
        raise _misfit(api, at, "is nothing that somebody said", EDITABLE)
    _refuse_both(edit, found)
    new = written(found)
    return {**edit, **new}


def _refuse_both(edit: Edit, found: Draft) -> None:
    if found.part in edit:
        raise click.UsageError(f"--edit changes the {found.part}, and so does --set; use one.")


def _misfit(api: Api, at: Event, said: str, kinds: tuple[str, ...]) -> Trouble:
    """Which events would do, nearest last."""
    before = page_of(api, at["runId"], max(-1, at["sequence"] - LOOKED))["events"]
    found = [event for event in before if event["type"] in kinds][-NAMED:]
    ways = ", ".join(f"#{event['sequence']} {event['type']}" for event in found)
    hint = f" These would do: {ways}." if ways else f" See: {way('run tail ' + at['runId'])}"
    return Trouble(f"event #{at['sequence']} ({at['type']}) {said}.{hint}", Exit.USAGE)


def _first(edit: Edit, at: Event) -> int:
    """The first sequence that is not history: event N itself when something takes its place."""
    replaces = any(part in edit for part in REPLACING)
    return int(at["sequence"]) if replaces else int(at["sequence"]) + 1


def _show(options: Options, made: dict[str, Any], edit: Edit) -> None:
    if options.json:
        output.show_json(made)
        return
    kinds = [part for part in REPLACING if part in edit]
    where = spot({**made, "edit": {"kinds": kinds}})
    said = f"branch of {output.short(made['sourceRunId'])} {where}"
    click.echo(f"{output.short(made['runId'])}{'  ' if output.on_terminal() else chr(9)}{said}")
