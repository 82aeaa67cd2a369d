"""``moot run FLOW`` starts a run; ``moot run list``, ``show``, ``tail`` … look after runs."""

from typing import Any

import click

from moot.cli.interrupts.questions import waiting_line
from moot.cli.runs.find import in_list, resolve
from moot.cli.runs.follow import FOR_A_PERSON, Follower, show_end, stands, thread_of
from moot.cli.shared import output
from moot.cli.shared.client import Api, Client, path_of, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import gather
from moot.cli.shared.options import Options, place, talks

EPILOG = "A workflow that is called like one of these commands: moot run start FLOW."


class FlowOrCommand(click.Group):
    """The first word is a command of this group, or else a workflow to start."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["FLOW [OPTIONS] | COMMAND [ARGS]..."]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of starting a run first: that is what most come for."""
        found = [option.get_help_record(ctx) for option in self.commands["start"].params]
        with formatter.section("Options of FLOW"):
            formatter.write_dl([record for record in found if record])
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
@click.option("--timeout", type=click.FloatRange(min=0), help="Wait at most so many seconds.")
@click.option("--wait", "stay", is_flag=True, help="Stay while it waits for a person.")
@talks
def start(
    options: Options,
    flow: str,
    inputs: tuple[str, ...],
    tags: tuple[str, ...],
    watch: bool | None,
    detach: bool,
    **how: Any,
) -> Exit:
    """Start a run of FLOW (a workflow's id, or a file) and wait for its end.

    When only a person can help it on, it says with which command, and exits 4.
    """
    from moot.cli.project.flow_files import registered

    api = to_write(options)
    body: dict[str, Any] = {"workflowId": registered(api, flow), "inputs": gather(inputs)}
    _warn_of_unknown(api, body)
    if tags:
        body["tags"] = list(tags)
    created = _created(api, body)
    if detach:
        _show_created(options, created)
        return Exit.OK
    watching = output.on_terminal() if watch is None else watch
    return follow(options, api, created["runId"], quiet=not watching, **how)


def _warn_of_unknown(api: Api, body: dict[str, Any]) -> None:
    """Of inputs that the workflow does not declare; the run starts all the same."""
    from moot.core.text.nearest import nearest

    if not body["inputs"]:
        return
    try:
        found = api.get(path_of("v1", "workflows", body["workflowId"]))
    except Trouble:
        return  # starting the run says what is wrong, if anything is
    declared = [variable["name"] for variable in found.get("variables", [])]
    for name in body["inputs"]:
        if name not in declared:
            meant = nearest(name, declared)
            hint = f" Did you mean '{meant}'?" if meant else ""
            said = f"warning: {body['workflowId']} declares no input '{name}'.{hint}"
            output.complain(said)


def _created(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    from moot.core.text.nearest import nearest

    try:
        created: dict[str, Any] = api.post("/v1/runs", body)
    except Trouble as trouble:
        verb = nearest(body["workflowId"], run.commands)
        if "must be a string" in str(trouble):
            hint = """For a text that looks like JSON write: --input 'name="5"'"""
            raise Trouble(f"{trouble} {hint}", trouble.exit_code) from trouble
        if trouble.exit_code is not Exit.NOT_FOUND:
            raise
        hint = f" Or did you mean the command: {way(f'run {verb}')}?" if verb else ""
        asked = f"{body['workflowId']}: {trouble}{hint} See: {way('flow list')}"
        raise Trouble(asked, Exit.NOT_FOUND) from trouble
    return created


def _show_created(options: Options, created: dict[str, Any]) -> None:
    if options.json:
        output.show_json(created)
    else:
        click.echo(created["runId"])


def follow(options: Options, api: Api, run_id: str, quiet: bool = False, **how: Any) -> Exit:
    """Events while they come, then how it ended; quiet shows the end only."""
    if not quiet and not options.json:
        click.echo(click.style(run_id, bold=True))
    return follow_on(options, api, run_id, quiet, **how)


def follow_on(options: Options, api: Api, run_id: str, quiet: bool = False, **how: Any) -> Exit:
    """The same, where it has been said which run it is."""
    follower = Follower(api, Client(place(options)), run_id, options.json)
    try:
        end = follower.follow(quiet=quiet, **how)
    except KeyboardInterrupt:
        click.echo(f"\nThe run goes on. Follow it with: {way(f'run tail {run_id}')}", err=True)
        raise
    found = api.get(path_of("v1", "runs", run_id))
    if options.json and quiet:
        output.show_json(found)
    elif not options.json:
        show_end(found, quiet)
    if end is Exit.WAITING:
        output.complain(waiting_line(api, run_id))
    return end


@run.command("list")
@click.option("--status", help="Only these, comma separated; 'waiting' is any wait.")
@click.option("--flow", help="Only runs of this workflow.")
@click.option("--parent", help="Only children of this run.")
@click.option("--dead", is_flag=True, help="Only those given up after all attempts of a node.")
@click.option("-n", "--limit", type=click.IntRange(1), default=30, show_default=True)
@talks
def list_(
    options: Options,
    status: str | None,
    flow: str | None,
    parent: str | None,
    dead: bool,
    limit: int,
) -> None:
    """List runs, newest first."""
    api = to_read(options)
    parent = resolve(api, parent) if parent else None
    rows: list[dict[str, Any]] = []
    cursor = None
    while len(rows) < limit:
        page = api.get(
            "/v1/host/moot/runs", status=status, workflow=flow, parent=parent, cursor=cursor,
            deadLettered="true" if dead else None, limit=min(500, limit - len(rows)),
        )  # fmt: skip
        rows += page["runs"]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("ID", "FLOW", "STATUS", "STARTED", "TOOK", "EVENTS", "ERROR", "CHILD OF", "BY", "ABOUT"),
        (_row(r, *in_list(api, r)) for r in rows),
        empty=f"No runs. Start one with: {way('run FLOW')}",
    )  # fmt: skip
    if cursor is not None and output.on_terminal():
        click.echo(f"There are more: {way(f'run list --limit {limit * 4}')}", err=True)


def _row(row: dict[str, Any], status: str, about: str | None) -> list[Any]:
    parent = output.short(row.get("parentRunId", ""))
    return [output.short(row["runId"]), row["workflowId"], status, _started(row), _took(row),
            row["eventCount"], row.get("errorCode"), parent,
            row.get("rosterId", "").removeprefix("host:"), about]  # fmt: skip


def _started(row: dict[str, Any]) -> str:
    return f"{output.age(row['startedAt'])} ago" if output.on_terminal() else row["startedAt"]


def _took(row: dict[str, Any]) -> str | None:
    if "completedAt" not in row:
        return None
    return output.span(output.between(row["startedAt"], row["completedAt"]))


@run.command()
@click.argument("run_id", metavar="RUN")
@talks
def show(options: Options, run_id: str) -> None:
    """Show a run: how it stands, its nodes, what came out."""
    from moot.cli.runs.find import show_run, why_cancelled
    from moot.cli.runs.started_by import begun_line

    api = to_read(options)
    found = api.get(path_of("v1", "runs", resolve(api, run_id)))
    if options.json:
        output.show_json(found)
        return
    waits = found["status"] in FOR_A_PERSON
    word = stands(api, thread_of(api, found["runId"])) if waits else None
    show_run(found, why_cancelled(api, found), word, begun_line(api, found["runId"]))
    if waits and word is None:
        output.complain(waiting_line(api, found["runId"]))


@run.command()
@click.argument("run_id", metavar="RUN")
@click.option("--after", type=int, default=-1, help="Only events after this sequence.")
@click.option("--no-follow", is_flag=True, help="Stop at the last event there is.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Follow at most so many seconds.")
@click.option("--wait", "stay", is_flag=True, help="Stay while it waits for a person.")
@talks
def tail(options: Options, run_id: str, after: int, no_follow: bool, **how: Any) -> Exit:
    """Show a run's events, and go on as they happen until it ends or waits for a person."""
    from moot.cli.runs.find import show_events

    api = to_read(options)
    run_id = resolve(api, run_id)
    api.get(path_of("v1", "runs", run_id))  # an unknown run is an error, not silence
    if no_follow or api.offline:
        show_events(api, Client(place(options)), run_id, after, options.json)
        return Exit.OK
    return follow(options, api, run_id, after=after, **how)


@run.command()
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@click.option("--reason", help="Why; it stands in the log.")
@talks
def cancel(options: Options, run_ids: tuple[str, ...], reason: str | None) -> None:
    """Cancel runs and their children."""
    _act(options, run_ids, "/cancel", {"reason": reason})


@run.command()
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@click.option("--reason", help="Why; it stands in the log.")
@click.option("--now", is_flag=True, help="Interrupt nodes at work; they begin anew later.")
@talks
def pause(options: Options, run_ids: tuple[str, ...], reason: str | None, now: bool) -> None:
    """Pause runs; nodes at work finish first."""
    policy = "immediate" if now else None
    _act(options, run_ids, ":pause", {"reason": reason, "drainPolicy": policy})


@run.command()
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@click.option("--reason", help="Why; it stands in the log.")
@talks
def resume(options: Options, run_ids: tuple[str, ...], reason: str | None) -> None:
    """Resume paused runs."""
    _act(options, run_ids, ":resume", {"reason": reason})


def _act(options: Options, given: tuple[str, ...], verb: str, body: dict[str, Any]) -> None:
    api = to_write(options)
    said = {name: value for name, value in body.items() if value is not None}
    for name in given:
        run_id = resolve(api, name)
        answer = api.post(path_of("v1", "runs", run_id) + verb, said)
        if options.json:
            output.json_line(answer)
        else:
            click.echo(f"{run_id} {_now(answer)}")


def _now(answer: dict[str, Any]) -> str:
    if answer.get("draining"):
        return "⏸ pauses once its running nodes are done"
    late = " (it had ended already)" if answer.get("alreadyTerminal") else ""
    return output.status_mark(answer["status"]) + late
