"""``moot fork RUN@N``: start a run that continues from an event of another."""

import click

from moot.cli.replay.edits import (
    ANSWERS,
    EDITABLE,
    draft_from_event,
    edit_draft,
    has_part,
    parse_edits,
    replaced_parts,
)
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.logs import LogReader, read_events
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.run_refs import parse_run_place
from moot.client.operations import runs
from moot.core.events import Event
from moot.core.payloads.interrupts import ApprovalReceived, ClarificationResolved
from moot.core.payloads.nodes import NodeResumed
from moot.core.sentences.forks import describe_place
from moot.wire.replay import ForkEdit, ForkedRun

#: direct effects of an answer: a user who names one of these means the answer
ANSWER_EFFECTS = (
    ApprovalReceived.event_type,
    ClarificationResolved.event_type,
    NodeResumed.event_type,
)
#: events that are searched for editable ones, and how many of those are suggested
SEARCHED_EVENTS, SUGGESTED_EVENTS = 200, 5


@click.command()
@click.argument("place", metavar="RUN@N")
@click.option(
    "-s", "--set", "given", multiple=True, metavar="K=V",
    help="Change a variable, input.NAME, model.AGENT, turn, decision or answer; repeat it.",
)  # fmt: skip
@click.option("--edit", "by_hand", is_flag=True, help="Write event N anew in an editor.")
@click.option("--note", help="Why; it is shown wherever the fork is.")
@click.option("-w", "--watch", is_flag=True, help="Follow the fork to its end.")
@server_options
def fork(
    options: CommandOptions,
    place: str,
    given: tuple[str, ...],
    by_hand: bool,
    note: str | None,
    watch: bool,
) -> ExitCode:
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
    api = api_for_writing(options)
    run_id, sequence = parse_run_place(api, place, "fork")
    at = _event_to_fork(LogReader(api), run_id, sequence, given, by_hand)
    edit = _build_edit(api, at, given, by_hand)
    # N itself is not history when an edit replaces event N
    first = at.sequence if replaced_parts(edit) else at.sequence + 1
    forked = api.send(runs.fork_run(run_id, first, edit, note=note))
    if not (watch and options.json):  # one object for each event then
        _print_fork(options, forked, edit)
    if not watch:
        return ExitCode.OK
    from moot.cli.runs.run import follow_events_and_end

    return follow_events_and_end(options, api, forked.run_id, after=forked.from_seq - 1)


def _event_to_fork(
    log_reader: LogReader, run_id: str, sequence: int, settings: tuple[str, ...], by_hand: bool
) -> Event:
    """Return the named event, or the first event of the answer that it belongs to."""
    at = log_reader.expect(run_id, sequence)
    if by_hand or _sets_answer(settings):
        for _ in ANSWER_EFFECTS:
            cause_run, _, sequence_text = str(at.causation_id).rpartition(".")
            if at.type in ANSWER_EFFECTS and cause_run == run_id and sequence_text.isdecimal():
                at = log_reader.expect(run_id, int(sequence_text))
    return at


def _sets_answer(settings: tuple[str, ...]) -> bool:
    return any(word.startswith("answer=") for word in settings)


def _build_edit(api: Api, at: Event, settings: tuple[str, ...], by_hand: bool) -> ForkEdit:
    if _sets_answer(settings) and at.type not in ANSWERS:
        raise _misfit_error(api, at, "is no answer", ANSWERS)
    edit = parse_edits(settings, at)
    if edit.inputs and at.sequence != 0:
        name = next(iter(edit.inputs))
        hint = command_hint(f"fork {at.run_id}@0 --set input.{name}=…")
        raise click.UsageError(f"inputs belong to the beginning: {hint}")
    if not by_hand:
        return edit
    draft = draft_from_event(at)
    if draft is None:
        raise _misfit_error(api, at, "is nothing that somebody said", EDITABLE)
    if has_part(edit, draft.part):
        raise click.UsageError(f"--edit changes the {draft.part}, and so does --set; use one.")
    return edit_draft(edit, draft)


def _misfit_error(api: Api, at: Event, problem: str, kinds: tuple[str, ...]) -> CommandError:
    """Return an error that suggests events of these kinds, nearest last."""
    before = read_events(api, at.run_id, max(-1, at.sequence - SEARCHED_EVENTS))
    candidates = [event for event in before if event.type in kinds][-SUGGESTED_EVENTS:]
    suggestions = ", ".join(f"#{event.sequence} {event.type}" for event in candidates)
    hint = (
        f" These would do: {suggestions}."
        if suggestions
        else f" See: {command_hint('run tail ' + at.run_id)}"
    )
    return CommandError(f"event #{at.sequence} ({at.type}) {problem}.{hint}", ExitCode.USAGE)


def _print_fork(options: CommandOptions, fork: ForkedRun, edit: ForkEdit) -> None:
    if options.json:
        output.print_json(fork)
        return
    where = describe_place({"fromSeq": fork.from_seq, "edit": {"kinds": replaced_parts(edit)}})
    origin = f"branch of {output.short_id(fork.source_run_id)} {where}"
    click.echo(f"{output.short_id(fork.run_id)}{'  ' if output.on_terminal() else chr(9)}{origin}")
