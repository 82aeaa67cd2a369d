"""``moot schedule``: run workflows at set times, and review past ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from moot.cli.schedules.wording import (
    describe_next,
    describe_pause_cost,
    fire_action_lines,
    fire_rows,
    local_time,
    local_time_with_zone,
    missed_fire_line,
    schedule_facts,
    schedule_row,
    zone_or_utc,
)
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import parse_inputs
from moot.cli.shared.names import member_id
from moot.cli.shared.options import CommandOptions, parse_span_option, server_options
from moot.cli.shared.times import END_OF_DAY, MIDNIGHT, parse_time_option
from moot.client.operations import schedules
from moot.wire.schedules import ScheduleView

if TYPE_CHECKING:
    from moot.core.schedules.model import OverlapPolicy

#: letters of a full id
FULL_ID_LENGTH = len("sch_") + 20
OVERLAPS = ("skip", "buffer-one", "buffer-all", "cancel-other", "allow")
CATCH_UPS = ("one", "none", "all-within-window")

schedule_argument = click.argument("name", metavar="SCHEDULE")
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Say what would happen, and change nothing."
)
overlap_option = click.option(
    "--overlap", type=click.Choice(OVERLAPS), help="While an earlier run is going."
)
missed_option = click.option(
    "--missed", is_flag=True, help="What was missed, or could not begin, last; see the inbox."
)


@click.group()
def schedule() -> None:
    """Schedules: have a workflow run at times to come.

    One is named by its id, a unique beginning of it, its workflow if that has only one, or as
    @last: the one that was made last.
    """


@schedule.command()
@click.argument("flow", metavar="FLOW")
@click.argument("words", metavar="[WHEN]...", nargs=-1)
@click.option("--cron", metavar="EXPR", help="Five fields of cron in place of words.")
@click.option(
    "--every", callback=parse_span_option, metavar="TIME", help="An interval: 90s, 15m, 2h."
)
@click.option("--at", metavar="TIME", help="Once: 2027-03-01T08:30, 'friday 17:00', 2h.")
@click.option("--zone", metavar="ZONE", help="A time zone, like Europe/Berlin [UTC].")
@click.option("--member", metavar="NAME", help="Whose work it is.")
@overlap_option
@click.option("--catch-up", type=click.Choice(CATCH_UPS), help="What of times that were missed.")
@click.option(
    "--window", callback=parse_span_option, metavar="TIME", help="How long ago they may lie [24h]."
)
@click.option(
    "--jitter", callback=parse_span_option, metavar="TIME", help="Start up to so much later."
)
@click.option(
    "--if-queue", metavar="QUEUE", help="Only if items wait there; the run is given them."
)
@click.option("--if", "expression", metavar="CEL", help="Only if this is true.")
@click.option("-i", "--input", "inputs", multiple=True, metavar="K=V", help="An input of its runs.")
@click.option("--off", is_flag=True, help="Make it, but switched off.")
@dry_run_option
@server_options
def add(
    options: CommandOptions, flow: str, words: tuple[str, ...], dry_run: bool, **how: Any
) -> None:
    """Have FLOW run at WHEN: moot schedule add brief weekday 08:30 Europe/Berlin."""
    body = _schedule_body(flow, " ".join(words), how)
    if dry_run:
        preview = api_for_writing(options).send(schedules.check_schedule(body))
        output.print_answer(options, preview, describe_next(preview))
        return
    created = api_for_writing(options).send(schedules.create_schedule(body))
    output.print_answer(
        options, created, f"{created.schedule_id} {flow} · {describe_next(created)}"
    )


def _schedule_body(flow: str, words: str, settings: Mapping[str, Any]) -> dict[str, object]:
    at = settings["at"]
    times = {
        "words": words or None, "cronExpr": settings["cron"], "intervalSeconds": settings["every"],
        "at": None if at is None else _parse_at(at, settings["zone"] or "UTC"),
    }  # fmt: skip
    chosen = [name for name, value in times.items() if value is not None]
    if len(chosen) != 1:
        raise click.UsageError("say when, once: in words, or with --cron, --every or --at.")
    kinds = {"words": "words", "cronExpr": "cron", "intervalSeconds": "interval", "at": "once"}
    conditions = {"queue": settings["if_queue"], "expression": settings["expression"]}
    condition = {name: value for name, value in conditions.items() if value is not None}
    body = {
        **times,
        "workflowId": flow,
        "kind": kinds[chosen[0]],
        "timezone": settings["zone"],
        "rosterId": member_id(settings["member"]),
        "overlap": settings["overlap"],
        "catchUp": settings["catch_up"],
        "catchUpWindowSeconds": settings["window"],
        "jitterSeconds": settings["jitter"],
        "condition": condition or None,
        "inputs": parse_inputs(settings["inputs"]) or None,
        "enabled": False if settings["off"] else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _parse_at(text: str, zone: str) -> str:
    """Return the time. The server itself reads ISO times, and refuses unknown zones."""
    from moot.core.text.zones import find_zone

    zone_info = find_zone(zone)
    return text if zone_info is None or "T" in text else parse_time_option("--at", text, zone_info)


@schedule.command("list")
@click.option("--member", metavar="NAME", help="Only those of this member.")
@server_options
def list_(options: CommandOptions, member: str | None) -> None:
    """List schedules, each with when it starts something next."""
    output.print_list(
        options,
        read_schedules(api_for_reading(options), member_id(member)),
        ("ID", "FLOW", "WHEN", "STATE", "NEXT", "MEMBER", "LAST RUN"),
        schedule_row,
        empty="There are no schedules. Make one: moot schedule add FLOW weekday 08:30",
    )


@schedule.command("next")
@click.argument("name", metavar="[SCHEDULE]", required=False)
@server_options
def next_(options: CommandOptions, name: str | None) -> None:
    """Show the next times of a schedule, or of all of them, soonest first."""
    api = api_for_reading(options)
    listed = read_schedules(api) if name is None else [_find_schedule(api, name)]
    rows = sorted(
        (at, row.workflow_id, row.schedule_id, row.timezone)
        for row in listed
        for at in row.next_fires
    )
    if options.json:
        names = ("at", "workflowId", "scheduleId", "timezone")
        output.print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    output.print_table(
        ("AT", "ZONE", "FLOW", "ID"),
        (
            [local_time(at, zone), zone, flow, output.short_id(id_)]
            for at, flow, id_, zone in rows[:20]
        ),
        empty="Nothing is to come.",
    )


@schedule.command()
@schedule_argument
@server_options
def show(options: CommandOptions, name: str) -> None:
    """Show a schedule: its next times, and what became of the last ones."""
    api = api_for_reading(options)
    schedule_id = _find_schedule(api, name).schedule_id
    schedule_record = api.send(schedules.get_schedule(schedule_id))
    fires = api.send(schedules.list_fires(schedule_id, limit=20)).fires
    if options.json:
        output.print_json({**to_builtins(schedule_record), "lastFires": fires})
        return
    missed = [fire for fire in fires if fire.state in ("missed", "dead")]
    output.print_lines(
        *schedule_facts(schedule_record),
        *(missed_fire_line(schedule_record, fire) for fire in missed),
    )
    output.print_table(
        ("SLOT", "STATE", "WHY", "RUN"),
        fire_rows(schedule_record.timezone, fires),
        empty="No time has come yet.",
    )


@schedule.command()
@schedule_argument
@click.option("--reason", default="", help="Why, for whoever wonders.")
@click.option(
    "--until", metavar="TIME",
    help="When it goes on, in its zone: monday, friday 17:00, 17:00, 2h, 2027-01-04.",
)  # fmt: skip
@server_options
def pause(options: CommandOptions, name: str, reason: str, until: str | None) -> None:
    """Start nothing for now; what falls due meanwhile is not caught up."""
    api = api_for_writing(options)
    schedule_record = _find_schedule(api, name)
    schedule_id, zone = schedule_record.schedule_id, zone_or_utc(schedule_record.timezone)
    end = None if until is None else parse_time_option("--until", until, zone)
    call = schedules.pause_schedule(schedule_id, reason=reason, until=end)
    paused = api.send(call)
    running_text = f" {paused.going[0]} goes on." if paused.going else ""
    costs = describe_pause_cost(paused.costs)
    until = paused.pause.until if paused.pause else None
    until_text = f" until {local_time_with_zone(until, paused.timezone)}" if until else ""
    text = f"{schedule_id} is paused{until_text}.{costs}{running_text}"
    output.print_answer(options, paused, text)


@schedule.command()
@schedule_argument
@click.option("--member", metavar="NAME", help="Whose work it is from now on.")
@server_options
def resume(options: CommandOptions, name: str, member: str | None) -> None:
    """End a pause."""
    api = api_for_writing(options)
    schedule_id = _find_schedule(api, name).schedule_id
    if member is not None:
        api.send(schedules.change_schedule(schedule_id, {"rosterId": member_id(member)}))
    schedule_record = api.send(schedules.resume_schedule(schedule_id))
    next_times = describe_next(schedule_record)
    output.print_answer(options, schedule_record, f"{schedule_id} goes on · {next_times}")


@schedule.command()
@schedule_argument
@overlap_option
@missed_option
@dry_run_option
@server_options
def run(
    options: CommandOptions, name: str, overlap: "OverlapPolicy | None", missed: bool, dry_run: bool
) -> None:
    """Run it now, whatever its times and its condition say."""
    api = api_for_writing(options)
    schedule_record = _find_schedule(api, name)
    schedule_id = schedule_record.schedule_id
    fire = _missed_fire_id(api, schedule_id) if missed else None
    call = schedules.run_schedule(schedule_id, overlap=overlap, fire=fire, dry_run=dry_run)
    result = api.send(call)
    output.print_answer(options, result, *fire_action_lines(schedule_record.timezone, result))


@schedule.command()
@schedule_argument
@missed_option
@click.option("--undo", is_flag=True, help="Take in again what was left out last.")
@dry_run_option
@server_options
def skip(options: CommandOptions, name: str, missed: bool, undo: bool, dry_run: bool) -> None:
    """Leave its next time out."""
    api = api_for_writing(options)
    schedule_record = _find_schedule(api, name)
    schedule_id = schedule_record.schedule_id
    fire = _missed_fire_id(api, schedule_id) if missed else None
    call = schedules.skip_slot(schedule_id, fire=fire, undo=undo, dry_run=dry_run)
    result = api.send(call)
    verb = "would be" if dry_run else "is"
    zone = schedule_record.timezone
    if undo:
        slot = local_time(result.restored or "", zone)
        output.print_answer(options, result, f"{slot} {verb} taken in again")
        return
    subject = "what was missed" if result.skipped is None else local_time(result.skipped, zone)
    output.print_answer(options, result, f"{subject} {verb} left out")


@schedule.command()
@schedule_argument
@click.argument("since", metavar="FROM")
@click.argument("to", metavar="TO")
@overlap_option
@dry_run_option
@server_options
def backfill(
    options: CommandOptions,
    name: str,
    since: str,
    to: str,
    overlap: "OverlapPolicy | None",
    dry_run: bool,
) -> None:
    """Run its times between FROM and TO that have had no run, one after the other.

    Both are in its zone: monday, 'friday 17:00', 2026-11-10, an ISO time; a day is all of it.
    """
    api = api_for_writing(options)
    schedule_record = _find_schedule(api, name)
    zone = zone_or_utc(schedule_record.timezone)
    call = schedules.backfill_schedule(
        schedule_record.schedule_id,
        parse_time_option("FROM", since, zone, past=True, daily=MIDNIGHT),
        parse_time_option("TO", to, zone, past=True, daily=END_OF_DAY),
        overlap=overlap,
        dry_run=dry_run,
    )
    result = api.send(call)
    lines = list(fire_action_lines(schedule_record.timezone, result))
    output.print_answer(options, result, *(lines or ["Every time between has had its run."]))


@schedule.command()
@schedule_argument
@server_options
def remove(options: CommandOptions, name: str) -> None:
    """End it; runs that it has started go on."""
    api = api_for_writing(options)
    schedule_id = _find_schedule(api, name).schedule_id
    api.send(schedules.remove_schedule(schedule_id))
    removed = {"scheduleId": schedule_id, "removed": True}
    output.print_answer(options, removed, f"{schedule_id} starts nothing more")


def _missed_fire_id(api: Api, schedule_id: str) -> str:
    fires = api.send(schedules.list_fires(schedule_id, state="missed,dead", limit=1)).fires
    if not fires:
        raise CommandError("nothing was missed that waits for you.", ExitCode.NOT_FOUND)
    return fires[0].fire_id


def read_schedules(api: Api, roster_id: str | None = None) -> list[ScheduleView]:
    rows: list[ScheduleView] = []
    cursor = None
    while True:
        call = schedules.list_schedules(roster_id=roster_id, limit=200, cursor=cursor)
        page = api.send(call)
        rows += page.schedules
        cursor = page.next_cursor
        if cursor is None:
            return rows


def _find_schedule(api: Api, text: str) -> ScheduleView:
    if len(text) == FULL_ID_LENGTH and text.startswith("sch_"):
        return api.send(schedules.get_schedule(text))
    rows = read_schedules(api)
    if text == "@last" and rows:
        return max(rows, key=lambda row: (row.created_at, row.schedule_id))
    matches = [row for row in rows if row.schedule_id == text]
    matches = matches or [row for row in rows if row.schedule_id.startswith((text, f"sch_{text}"))]
    matches = matches or [row for row in rows if row.workflow_id == text]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(row.schedule_id for row in matches)
        raise CommandError(f"several schedules are meant by '{text}': {ids}.", ExitCode.USAGE)
    raise CommandError(
        f"no schedule is called '{text}'. See: moot schedule list", ExitCode.NOT_FOUND
    )
