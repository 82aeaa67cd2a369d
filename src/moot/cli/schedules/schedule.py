"""``moot schedule``: workflows at times to come, what became of those that passed."""

import json
from typing import Any

import click

from moot.cli.schedules.wording import (
    cost_words,
    done_lines,
    facts,
    fire_rows,
    missed_line,
    next_words,
    when,
    when_rows,
    zone_named,
    zoned,
)
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_read, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import gather
from moot.cli.shared.options import Options, span, talks
from moot.cli.shared.times import LAST, MIDNIGHT, typed

SCHEDULES = "/v1/host/moot/schedules"
#: letters of a whole id
WHOLE = len("sch_") + 20
OVERLAPS = ("skip", "buffer-one", "buffer-all", "cancel-other", "allow")
CATCH_UPS = ("one", "none", "all-within-window")

name_of_one = click.argument("name", metavar="SCHEDULE")
dry = click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
by_overlap = click.option(
    "--overlap", type=click.Choice(OVERLAPS), help="While an earlier run is going."
)
of_missed = click.option(
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
@click.option("--every", callback=span, metavar="TIME", help="An interval: 90s, 15m, 2h.")
@click.option("--at", metavar="TIME", help="Once: 2027-03-01T08:30, 'friday 17:00', 2h.")
@click.option("--zone", metavar="ZONE", help="A time zone, like Europe/Berlin [UTC].")
@click.option("--member", metavar="NAME", help="Whose work it is.")
@by_overlap
@click.option("--catch-up", type=click.Choice(CATCH_UPS), help="What of times that were missed.")
@click.option("--window", callback=span, metavar="TIME", help="How long ago they may lie [24h].")
@click.option("--jitter", callback=span, metavar="TIME", help="Start up to so much later.")
@click.option(
    "--if-queue", metavar="QUEUE", help="Only if items wait there; the run is given them."
)
@click.option("--if", "expression", metavar="CEL", help="Only if this is true.")
@click.option("-i", "--input", "inputs", multiple=True, metavar="K=V", help="An input of its runs.")
@click.option("--off", is_flag=True, help="Make it, but switched off.")
@dry
@talks
def add(options: Options, flow: str, words: tuple[str, ...], dry_run: bool, **how: Any) -> None:
    """Have FLOW run at WHEN: moot schedule add brief weekday 08:30 Europe/Berlin."""
    body = _body(flow, " ".join(words), how)
    if dry_run:
        found = to_write(options).post(f"{SCHEDULES}:check", body)
        _say(options, found, next_words(found))
        return
    made = to_write(options).post(SCHEDULES, body)
    _say(options, made, f"{made['scheduleId']} {flow} · {next_words(made)}")


def _body(flow: str, words: str, how: dict[str, Any]) -> dict[str, Any]:
    times = {
        "words": words or None, "cronExpr": how["cron"], "intervalSeconds": how["every"],
        "at": None if how["at"] is None else _at(how["at"], how["zone"] or "UTC"),
    }  # fmt: skip
    given = [name for name, value in times.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError("say when, once: in words, or with --cron, --every or --at.")
    kinds = {"words": "words", "cronExpr": "cron", "intervalSeconds": "interval", "at": "once"}
    conditions = {"queue": how["if_queue"], "expression": how["expression"]}
    condition = {name: value for name, value in conditions.items() if value is not None}
    body = {
        **times,
        "workflowId": flow,
        "kind": kinds[given[0]],
        "timezone": how["zone"],
        "rosterId": _member(how["member"]),
        "overlap": how["overlap"],
        "catchUp": how["catch_up"],
        "catchUpWindowSeconds": how["window"],
        "jitterSeconds": how["jitter"],
        "condition": condition or None,
        "inputs": gather(how["inputs"]) or None,
        "enabled": False if how["off"] else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _at(given: str, zone: str) -> str:
    """What the server reads itself is left to it, as is a zone that is none."""
    from moot.core.schedules.calendar import zone_of

    there = zone_of(zone)
    return given if there is None or "T" in given else typed("--at", given, there)


def _member(name: str | None) -> str | None:
    return name if name is None or ":" in name else f"host:{name}"


@schedule.command("list")
@click.option("--member", metavar="NAME", help="Only those of this member.")
@talks
def list_(options: Options, member: str | None) -> None:
    """List schedules, each with when it starts something next."""
    where = {} if member is None else {"rosterId": _member(member)}
    rows = all_schedules(to_read(options), **where)
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("ID", "FLOW", "WHEN", "STATE", "NEXT", "MEMBER", "LAST RUN"),
        when_rows(rows),
        empty="There are no schedules. Make one: moot schedule add FLOW weekday 08:30",
    )


@schedule.command("next")
@click.argument("name", metavar="[SCHEDULE]", required=False)
@talks
def next_(options: Options, name: str | None) -> None:
    """Show the next times of a schedule, or of all of them, soonest first."""
    api = to_read(options)
    found = all_schedules(api) if name is None else [_one(api, name)]
    rows = sorted(
        (at, row["workflowId"], row["scheduleId"], row["timezone"])
        for row in found
        for at in row.get("nextFires", [])
    )
    if options.json:
        names = ("at", "workflowId", "scheduleId", "timezone")
        output.show_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    output.table(
        ("AT", "ZONE", "FLOW", "ID"),
        ([when(at, zone), zone, flow, output.short(id_)] for at, flow, id_, zone in rows[:20]),
        empty="Nothing is to come.",
    )


@schedule.command()
@name_of_one
@talks
def show(options: Options, name: str) -> None:
    """Show a schedule: its next times, and what became of the last ones."""
    api = to_read(options)
    found = api.get(_path(_one(api, name)))
    fires = api.get(f"{_path(found)}/fires", limit=20)["fires"]
    if options.json:
        output.show_json({**found, "lastFires": fires})
        return
    for text in facts(found):
        click.echo(output.line(text))
    for fire in fires:
        if fire["state"] in ("missed", "dead"):
            click.echo(output.line(missed_line(found, fire)))
    output.table(
        ("SLOT", "STATE", "WHY", "RUN"), fire_rows(found, fires), empty="No time has come yet."
    )


@schedule.command()
@name_of_one
@click.option("--reason", default="", help="Why, for whoever wonders.")
@click.option(
    "--until", metavar="TIME",
    help="When it goes on, in its zone: monday, friday 17:00, 17:00, 2h, 2027-01-04.",
)  # fmt: skip
@talks
def pause(options: Options, name: str, reason: str, until: str | None) -> None:
    """Start nothing for now; what falls due meanwhile is not caught up."""
    api = to_write(options)
    found = _one(api, name)
    body = {"reason": reason}
    if until is not None:
        body["until"] = typed("--until", until, zone_named(found["timezone"]))
    found = api.post(f"{_path(found)}/pause", body)
    running = found["going"]
    rest = f" {running[0]} goes on." if running else ""
    costs = cost_words(found.get("costs"))
    _say(options, found, f"{found['scheduleId']} is paused{_until(found)}.{costs}{rest}")


def _until(found: dict[str, Any]) -> str:
    end = found["pause"].get("until")
    return "" if end is None else f" until {zoned(end, found['timezone'])}"


@schedule.command()
@name_of_one
@click.option("--member", metavar="NAME", help="Whose work it is from now on.")
@talks
def resume(options: Options, name: str, member: str | None) -> None:
    """End a pause."""
    api = to_write(options)
    path = _path(_one(api, name))
    if member is not None:
        api.ask("PATCH", path, json.dumps({"rosterId": _member(member)}).encode())
    found = api.post(f"{path}/resume", {})
    _say(options, found, f"{found['scheduleId']} goes on · {next_words(found)}")


@schedule.command()
@name_of_one
@by_overlap
@of_missed
@dry
@talks
def run(options: Options, name: str, overlap: str | None, missed: bool, dry_run: bool) -> None:
    """Run it now, whatever its times and its condition say."""
    api = to_write(options)
    found = _one(api, name)
    body: dict[str, Any] = {"dryRun": dry_run}
    if overlap is not None:
        body["overlap"] = overlap
    if missed:
        body["fire"] = _missed(api, found)
    done = api.post(f"{_path(found)}/run", body)
    _say(options, done, "\n".join(done_lines(found, done)))


@schedule.command()
@name_of_one
@of_missed
@click.option("--undo", is_flag=True, help="Take in again what was left out last.")
@dry
@talks
def skip(options: Options, name: str, missed: bool, undo: bool, dry_run: bool) -> None:
    """Leave its next time out."""
    api = to_write(options)
    found = _one(api, name)
    body: dict[str, Any] = {"dryRun": dry_run, "undo": undo}
    if missed:
        body["fire"] = _missed(api, found)
    done = api.post(f"{_path(found)}/skip", body)
    would = "would be" if dry_run else "is"
    if undo:
        _say(options, done, f"{when(done['restored'], found['timezone'])} {would} taken in again")
        return
    what = when(done["skipped"], found["timezone"]) if "skipped" in done else "what was missed"
    _say(options, done, f"{what} {would} left out")


@schedule.command()
@name_of_one
@click.argument("since", metavar="FROM")
@click.argument("to", metavar="TO")
@by_overlap
@dry
@talks
def backfill(
    options: Options, name: str, since: str, to: str, overlap: str | None, dry_run: bool
) -> None:
    """Run its times between FROM and TO that have had no run, one after the other.

    Both are in its zone: monday, 'friday 17:00', 2026-11-10, an ISO time; a day is all of it.
    """
    api = to_write(options)
    found = _one(api, name)
    zone = zone_named(found["timezone"])
    body: dict[str, Any] = {
        "from": typed("FROM", since, zone, past=True, daily=MIDNIGHT),
        "to": typed("TO", to, zone, past=True, daily=LAST),
        "dryRun": dry_run,
    }
    done = api.post(f"{_path(found)}/backfill", body | ({"overlap": overlap} if overlap else {}))
    _say(options, done, "\n".join(done_lines(found, done)) or "Every time between has had its run.")


@schedule.command()
@name_of_one
@talks
def remove(options: Options, name: str) -> None:
    """End it; runs that it has started go on."""
    api = to_write(options)
    found = _one(api, name)
    api.delete(_path(found))
    _say(options, {"scheduleId": found["scheduleId"], "removed": True},
         f"{found['scheduleId']} starts nothing more")  # fmt: skip


def _say(options: Options, answer: Any, text: str) -> None:
    if options.json:
        output.show_json(answer)
    else:
        click.echo(output.lines(text))


def _path(found: dict[str, Any]) -> str:
    return f"{SCHEDULES}{path_of(found['scheduleId'])}"


def _missed(api: Api, found: dict[str, Any]) -> str:
    rows = api.get(f"{_path(found)}/fires", state="missed,dead", limit=1)["fires"]
    if not rows:
        raise Trouble("nothing was missed that waits for you.", Exit.NOT_FOUND)
    return str(rows[0]["fireId"])


def all_schedules(api: Api, **where: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = api.get(SCHEDULES, limit=200, **where, **cursor)
        found += page["schedules"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def _one(api: Api, given: str) -> dict[str, Any]:
    if len(given) == WHOLE and given.startswith("sch_"):
        found: dict[str, Any] = api.get(f"{SCHEDULES}{path_of(given)}")
        return found
    rows = all_schedules(api)
    if given == "@last" and rows:
        return max(rows, key=lambda row: (row["createdAt"], row["scheduleId"]))
    meant = [row for row in rows if row["scheduleId"] == given]
    meant = meant or [row for row in rows if row["scheduleId"].startswith((given, f"sch_{given}"))]
    meant = meant or [row for row in rows if row["workflowId"] == given]
    if len(meant) == 1:
        return meant[0]
    if meant:
        ids = ", ".join(row["scheduleId"] for row in meant)
        raise Trouble(f"several schedules are meant by '{given}': {ids}.", Exit.USAGE)
    raise Trouble(f"no schedule is called '{given}'. See: moot schedule list", Exit.NOT_FOUND)
