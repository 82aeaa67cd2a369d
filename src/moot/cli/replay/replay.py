"""``moot replay RUN``: a run said again from its record, without asking or calling anybody."""

import json
from typing import Any

import click

from moot.cli.runs.event_lines import summary
from moot.cli.runs.find import resolve
from moot.cli.runs.follow import last_line
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_write
from moot.cli.shared.errors import Exit
from moot.cli.shared.logs import Event, whole
from moot.cli.shared.options import Options, talks

#: events of a replay that are looked through for a difference
MOST = 50_000


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--verify", is_flag=True, help="Only compare; make no run.")
@talks
def replay(options: Options, run_id: str, verify: bool) -> Exit:
    """Say a run again from its record, calling nothing.

    No model is called, nobody is asked, no time passes. It becomes a run of its own; with
    --verify it is worked out in memory only, and compared with the record event by event. Exits 1
    when it goes another way.
    """
    api = to_write(options)
    source = resolve(api, run_id)
    return _verified(options, api, source) if verify else _replayed(options, api, source)


def _verified(options: Options, api: Api, source: str) -> Exit:
    found = api.post(path_of("v1", "host", "moot", "runs", source) + ":verify")
    if options.json:
        output.show_json(found)
    else:
        calls, same = found["modelCalls"], found["identical"]
        counted = f"replayed {_count(found['events'], 'event')}, {_count(calls, 'model call')}"
        click.echo(f"{counted}, {'identical ✓' if same else 'not identical ✗'}")
        if not same:
            _difference(found["first"])
    return Exit.OK if found["identical"] else Exit.FAILED


def _count(many: int, word: str) -> str:
    return f"{many} {word}{'s' * (many != 1)}"


def _difference(first: dict[str, Any]) -> None:
    """Where they part, with both sides whole: that is what one looks for."""
    click.echo(f"first difference at #{first['sequence']}: {output.one_line(str(first['kind']))}")
    for word, side in (("expected", first.get("expected")), ("found", first.get("found"))):
        said = side if isinstance(side, str) else json.dumps(side, ensure_ascii=False)
        click.echo(f"  {word:<9} {output.one_line('nothing' if side is None else said)}")


def _replayed(options: Options, api: Api, source: str) -> Exit:
    made = api.post(path_of("v1", "runs", source) + ":fork", {"mode": "replay"})
    run = api.get(path_of("v1", "runs", made["runId"]))
    astray = _astray(api, made["runId"])
    if options.json:
        output.show_json({**made, "status": run["status"], "diverged": [one["payload"]
                          for one in astray]})  # fmt: skip
    else:
        gap = "  " if output.on_terminal() else "\t"
        said = f"replay of {output.short(source)}"
        click.echo(f"{output.short(made['runId'])}{gap}{said}{gap}{last_line(run)}")
        for event in astray:
            click.echo(f"it {summary(event)}")
    return Exit.FAILED if astray else Exit.OK


def _astray(api: Api, run_id: str) -> list[Event]:
    events, _ = whole(api, run_id, MOST)
    return [event for event in events if event["type"].startswith("replay.diverged")]
