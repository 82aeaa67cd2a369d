"""``moot run FLOW`` starts a run; ``moot run list|show|tail`` manage runs."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from moot.cli.interrupts.questions import waiting_line
from moot.cli.runs.find import resolve_run_id, status_and_title
from moot.cli.runs.follow import (
    WAITING_STATUSES,
    Follower,
    conversation_status,
    find_run_thread,
    print_end,
)
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import parse_inputs
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.http.operation import PreparedCall
from moot.client.operations import host, runs
from moot.core.text.nearest import nearest_word
from moot.wire.runs import CancelledRun, PausedRun, ResumedRun, RunRow, StartedRun

Change = CancelledRun | PausedRun | ResumedRun

COLUMNS = ("ID", "FLOW", "STATUS", "STARTED", "TOOK", "EVENTS", "ERROR", "CHILD OF", "BY", "ABOUT")
EPILOG = "A workflow that is called like one of these commands: moot run start FLOW."


RUN = click.argument("run_id", metavar="RUN")
RUNS = click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
REASON = click.option("--reason", help="The reason; the log records it.")
TIMEOUT = click.option("--timeout", type=click.FloatRange(min=0), help="At most so many seconds.")
STAY = click.option("--wait", "stay", is_flag=True, help="Stay while it waits for a person.")


class FlowOrCommand(click.Group):
    """The first word is a command of this group, or a workflow to start."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["FLOW [OPTIONS] | COMMAND [ARGS]..."]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of starting a run first, because most users want those."""
        records = [option.get_help_record(ctx) for option in self.commands["start"].params]
        with formatter.section("Options of FLOW"):
            formatter.write_dl([record for record in records if record])
        super().format_options(ctx, formatter)


@click.group(cls=FlowOrCommand, epilog=EPILOG)
def run() -> None:
    """Start a run of a workflow, or look after runs.

    Runs are named by their id, by any prefix of it that only one run has, or as @last: the
    newest that is not the child of another.
    """


@run.command()
@click.argument("flow")
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="K=V",
    help="An input; K=V (V as JSON if it is JSON, else as text), @file.json, or - for stdin.",
)  # fmt: skip
@click.option("-t", "--tag", "tags", multiple=True, help="A tag to find the run by.")
@click.option("-w/-q", "--watch/--no-watch", default=None, help="Show events [on a terminal].")
@click.option("-d", "--detach", is_flag=True, help="Start it and do not wait for its end.")
@TIMEOUT
@STAY
@server_options
def start(
    options: CommandOptions, flow: str, inputs: tuple[str, ...], tags: tuple[str, ...],
    watch: bool | None, detach: bool, **how: Any,
) -> ExitCode:  # fmt: skip
    """Start a run of FLOW (a workflow's id, or a file) and wait for its end.

    When only a person can help it on, it says with which command, and exits 4.
    """
    from moot.cli.project.files import register_flow

    api = api_for_writing(options)
    workflow, values = register_flow(api, flow), parse_inputs(inputs)
    _warn_unknown_inputs(api, workflow, values)
    created = _create_run(api, workflow, values, tags)
    if detach:
        output.print_answer(options, created, created.run_id)
        return ExitCode.OK
    watching = output.on_terminal() if watch is None else watch
    return follow_run(options, api, created.run_id, quiet=not watching, **how)


def _warn_unknown_inputs(api: Api, workflow_id: str, inputs: Mapping[str, object]) -> None:
    """Warn about inputs that the workflow does not declare. The run starts all the same."""
    if not inputs:
        return
    try:
        workflow = api.send(host.get_workflow(workflow_id))
    except CommandError:
        return  # starting the run reports what is wrong
    declared = [variable["name"] for variable in workflow.get("variables", [])]
    for name in inputs:
        if name not in declared:
            suggestion = nearest_word(name, declared)
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
            output.print_error(f"warning: {workflow_id} declares no input '{name}'.{hint}")


def _create_run(
    api: Api, workflow_id: str, inputs: Mapping[str, object], tags: tuple[str, ...]
) -> StartedRun:
    try:
        return api.send(runs.start_run(workflow_id, inputs, runs.Options(tags=tags)))
    except CommandError as error:
        verb = nearest_word(workflow_id, run.commands)
        if "must be a string" in str(error):
            hint = """For a text that looks like JSON write: --input 'name="5"'"""
            raise CommandError(f"{error} {hint}", error.exit_code) from error
        if error.exit_code is not ExitCode.NOT_FOUND:
            raise
        hint = f" Or did you mean the command: {command_hint(f'run {verb}')}?" if verb else ""
        message = f"{workflow_id}: {error}{hint} See: {command_hint('flow list')}"
        raise CommandError(message, ExitCode.NOT_FOUND) from error


def follow_run(
    options: CommandOptions, api: Api, run_id: str, quiet: bool = False, **follow_options: Any
) -> ExitCode:
    """Print the run's id, its events as they arrive, and its end. ``quiet`` prints only the end."""
    if not quiet and not options.json:
        click.echo(click.style(run_id, bold=True))
    return follow_events_and_end(options, api, run_id, quiet, **follow_options)


def follow_events_and_end(
    options: CommandOptions, api: Api, run_id: str, quiet: bool = False, **follow_options: Any
) -> ExitCode:
    """Do the same without the heading."""
    follower = Follower(api, run_id, options.json)
    try:
        end = follower.follow(quiet=quiet, **follow_options)
    except KeyboardInterrupt:
        hint = command_hint(f"run tail {run_id}")
        click.echo(f"\nThe run goes on. Follow it with: {hint}", err=True)
        raise
    run_state = api.send(runs.get_run(run_id))
    if options.json and quiet:
        output.print_json(run_state)
    elif not options.json:
        print_end(run_state, quiet)
    if end is ExitCode.WAITING:
        output.print_error(waiting_line(api, run_id))
    return end


@run.command("list")
@click.option("--status", help="Only these, comma separated; 'waiting' is any wait.")
@click.option("--flow", "workflow", help="Only runs of this workflow.")
@click.option("--parent", help="Only children of this run.")
@click.option("--dead", "dead_lettered", is_flag=True, default=None,
              help="Only those given up after all attempts of a node.")  # fmt: skip
@click.option("-n", "--limit", type=click.IntRange(1), default=30, show_default=True)
@server_options
def list_(options: CommandOptions, parent: str | None, limit: int, **filters: Any) -> None:
    """List runs, newest first."""
    api = api_for_reading(options)
    parent = resolve_run_id(api, parent) if parent else None
    rows: list[RunRow] = []
    cursor = None
    while len(rows) < limit:
        size = min(500, limit - len(rows))
        page = api.send(runs.list_runs(parent=parent, cursor=cursor, limit=size, **filters))
        rows += page.runs
        cursor = page.next_cursor
        if cursor is None:
            break
    empty = f"No runs. Start one with: {command_hint('run FLOW')}"
    output.print_list(options, rows, COLUMNS, lambda row: _run_row(api, row), empty)
    if cursor is not None and output.on_terminal() and not options.json:
        click.echo(f"There are more: {command_hint(f'run list --limit {limit * 4}')}", err=True)


def _run_row(api: Api, row: RunRow) -> list[object]:
    status, about = status_and_title(api, row)
    started, took = row.started_at, None
    if row.completed_at is not None:
        took = output.format_span(output.seconds_between(started, row.completed_at))
    when = f"{output.format_age(started)} ago" if output.on_terminal() else started
    return [output.short_id(row.run_id), row.workflow_id, status, when, took, row.event_count,
            row.error_code, output.short_id(row.parent_run_id or ""),
            (row.roster_id or "").removeprefix("host:"), about]  # fmt: skip


@run.command()
@RUN
@server_options
def show(options: CommandOptions, run_id: str) -> None:
    """Show a run: how it stands, its nodes, what came out."""
    from moot.cli.runs.find import cancel_reason, print_run
    from moot.cli.runs.started_by import started_by_line

    api = api_for_reading(options)
    run_state = api.send(runs.get_run(resolve_run_id(api, run_id)))
    if options.json:
        output.print_json(run_state)
        return
    run_id = run_state.run_id
    waits = run_state.status in WAITING_STATUSES
    status = conversation_status(api, find_run_thread(api, run_id)) if waits else None
    print_run(run_state, cancel_reason(api, run_state), status, started_by_line(api, run_id))
    if waits and status is None:
        output.print_error(waiting_line(api, run_id))


@run.command()
@RUN
@click.option("--after", type=int, default=-1, help="Only events after this sequence.")
@click.option("--no-follow", is_flag=True, help="Stop at the last event there is.")
@TIMEOUT
@STAY
@server_options
def tail(options: CommandOptions, run_id: str, after: int, no_follow: bool, **how: Any) -> ExitCode:
    """Show a run's events, and go on as they happen until it ends or waits for a person."""
    from moot.cli.runs.find import print_events

    api = api_for_reading(options)
    run_id = resolve_run_id(api, run_id)
    api.send(runs.get_run(run_id))  # an unknown run is an error, not silence
    if no_follow or api.offline:
        print_events(api, run_id, after, options.json)
        return ExitCode.OK
    return follow_run(options, api_for_writing(options), run_id, after=after, **how)


@run.command()
@RUNS
@REASON
@server_options
def cancel(options: CommandOptions, run_ids: tuple[str, ...], reason: str | None) -> None:
    """Cancel runs and their children."""
    _change_runs(options, run_ids, lambda run_id: runs.cancel_run(run_id, reason=reason))


@run.command()
@RUNS
@REASON
@click.option("--now", is_flag=True, help="Interrupt nodes at work; they begin anew later.")
@server_options
def pause(options: CommandOptions, run_ids: tuple[str, ...], reason: str | None, now: bool) -> None:
    """Pause runs; nodes at work finish first."""
    _change_runs(options, run_ids, lambda run_id: runs.pause_run(run_id, reason=reason, now=now))


@run.command()
@RUNS
@REASON
@server_options
def resume(options: CommandOptions, run_ids: tuple[str, ...], reason: str | None) -> None:
    """Resume paused runs."""
    _change_runs(options, run_ids, lambda run_id: runs.resume_run(run_id, reason=reason))


def _change_runs(
    options: CommandOptions, names: tuple[str, ...], change: Callable[[str], PreparedCall[Change]]
) -> None:
    api = api_for_writing(options)
    for name in names:
        run_id = resolve_run_id(api, name)
        answer = api.send(change(run_id))
        if options.json:
            output.print_json_line(answer)
        else:
            click.echo(f"{run_id} {_status_text(answer)}")


def _status_text(answer: Change) -> str:
    if isinstance(answer, PausedRun) and answer.draining:
        return "⏸ pauses once its running nodes are done"
    is_late = isinstance(answer, CancelledRun) and answer.already_terminal
    return output.status_mark(answer.status) + (" (it had ended already)" if is_late else "")
