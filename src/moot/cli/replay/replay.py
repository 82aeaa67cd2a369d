"""``moot replay RUN``: run a log again without calling anyone."""

import json

import click
from msgspec import to_builtins

from moot.cli.runs.event_lines import summarize
from moot.cli.runs.find import resolve_run_id
from moot.cli.runs.follow import status_line
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.logs import read_log
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import runs
from moot.core.events import payload_fields
from moot.core.payloads.runs import ReplayDiverged
from moot.wire.replay import VerificationDifference

#: events of a replay that are looked through for a difference
MAX_EVENTS = 50_000


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--verify", is_flag=True, help="Only compare; make no run.")
@server_options
def replay(options: CommandOptions, run_id: str, verify: bool) -> ExitCode:
    """Say a run again from its record, calling nothing.

    No model is called, nobody is asked, no time passes. It becomes a run of its own; with
    --verify it is worked out in memory only, and compared with the record event by event. Exits 1
    when it goes another way.
    """
    api = api_for_writing(options)
    source = resolve_run_id(api, run_id)
    return _verify(options, api, source) if verify else _replay(options, api, source)


def _verify(options: CommandOptions, api: Api, source: str) -> ExitCode:
    result = api.send(runs.verify_run(source))
    if options.json:
        output.print_json(result)
    else:
        events = _count_noun(result.events, "event")
        calls = _count_noun(result.model_calls, "model call")
        verdict = "identical ✓" if result.identical else "not identical ✗"
        click.echo(f"replayed {events}, {calls}, {verdict}")
        if result.first is not None:
            _print_difference(result.first)
    return ExitCode.OK if result.identical else ExitCode.FAILED


def _count_noun(many: int, word: str) -> str:
    return f"{many} {word}{'s' * (many != 1)}"


def _print_difference(first: VerificationDifference) -> None:
    """Print the first difference with both sides whole."""
    click.echo(f"first difference at #{first.sequence}: {output.one_line(first.kind)}")
    for word, side in (("expected", first.expected), ("found", first.found)):
        text = side if isinstance(side, str) else json.dumps(side, ensure_ascii=False)
        click.echo(f"  {word:<9} {output.one_line('nothing' if side is None else text)}")


def _replay(options: CommandOptions, api: Api, source: str) -> ExitCode:
    replayed = api.send(runs.replay_run(source))
    run = api.send(runs.get_run(replayed.run_id))
    events, _ = read_log(api, replayed.run_id, MAX_EVENTS)
    divergences = [each for each in events if each.type.startswith(ReplayDiverged.event_type)]
    if options.json:
        diverged = [payload_fields(one) for one in divergences]
        fields = {**to_builtins(replayed), "status": run.status, "diverged": diverged}
        output.print_json(fields)
    else:
        gap = "  " if output.on_terminal() else "\t"
        origin = f"replay of {output.short_id(source)}"
        click.echo(f"{output.short_id(replayed.run_id)}{gap}{origin}{gap}{status_line(run)}")
        for event in divergences:
            click.echo(f"it {summarize(event)}")
    return ExitCode.FAILED if divergences else ExitCode.OK
