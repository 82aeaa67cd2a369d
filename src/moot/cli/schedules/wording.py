"""Schedules in words for people; programs get the times as they are."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

from moot.cli.shared import output
from moot.cli.shared.command_hint import way
from moot.cli.shared.quantities import counted, in_words

#: what was done by hand, and what would be
ACTS = {
    "buffer": ("waits for the run before it", "would wait for the run before it"),
    "skip": ("is skipped", "would be skipped"),
}
OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
CAUSES = {"manual": "by hand", "backfill": "by hand", "catch-up": "caught up"}
#: days that have a name of their own
NEAR = {-1: "yesterday", 0: "today", 1: "tomorrow"}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z")
#: times that a sentence names
NAMED = 3


def when(timestamp: str, zone: str) -> str:
    """``tomorrow 08:30``, ``Mon 4 Jan 08:30``, on the wall of the schedule's zone."""
    return _day_and_clock(timestamp, zone_named(zone)) if output.on_terminal() else timestamp


def here(timestamp: str) -> str:
    """``today 08:30 CET``, on the wall of this machine, whose zone is said."""
    if not output.on_terminal():
        return timestamp
    return f"{_day_and_clock(timestamp, None)} {output.moment(timestamp).astimezone():%Z}"


def with_times(text: str) -> str:
    """Somebody's sentence, its times in words for people."""
    return TIMESTAMP.sub(lambda found: here(found[0]), text)


def _day_and_clock(timestamp: str, there: tzinfo | None) -> str:
    from moot.clock import SystemClock

    then = output.moment(timestamp).astimezone(there)
    now = datetime.fromtimestamp(SystemClock().millis() / 1000, UTC).astimezone(there)
    days = (then.date() - now.date()).days
    clock = f"{then:%H:%M:%S}" if then.second else f"{then:%H:%M}"
    if days in NEAR:
        return f"{NEAR[days]} {clock}"
    year = "" if then.year == now.year else f" {then.year}"
    return f"{then:%a} {then.day} {then:%b}{year} {clock}"


def zone_named(name: str) -> tzinfo:
    from moot.core.schedules.calendar import zone_of

    return zone_of(name) or UTC


def zoned(timestamp: str, zone: str) -> str:
    """The same with the zone whose wall it is on, for where others stand beside it."""
    return f"{when(timestamp, zone)} {zone}" if output.on_terminal() else timestamp


def times_of(found: dict[str, Any]) -> str:
    """Its times as they were said."""
    if found["kind"] == "interval":
        return f"every {in_words(found['intervalSeconds'])}"
    said = found.get("words") or found.get("cronExpr") or found.get("at") or ""
    zone = found.get("timezone", "UTC")
    settled = zone in said or (found["kind"] == "once" and OFFSET.search(said))
    return str(said) if settled else f"{said} {zone}"


def next_words(found: dict[str, Any]) -> str:
    if not found.get("nextFires"):
        return "nothing is to come"
    *others, last = found["nextFires"]
    zone = found["timezone"]
    return "next: " + ", ".join([*(when(at, zone) for at in others), zoned(last, zone)])


def state_of(row: dict[str, Any]) -> str:
    """What is inert says so, whatever its own state; and what asks for somebody."""
    end = f" until {until_words(row['until'])}" if row.get("until") else ""
    note = f": {row['note']}" if row.get("note") else ""
    state = f"{row['state']}{end}{note}"
    said = f"inert: {row['inert']}" if "inert" in row else state
    return f"{said} · {row['missed']} missed" if row.get("missed") else said


def until_words(timestamp: str) -> str:
    """``Mon 08:00 CET``; with its date, where that is not the next of that name; and with the zone
    of this machine, as triggers may have others."""
    from moot.clock import SystemClock

    then = output.moment(timestamp).astimezone()
    now = datetime.fromtimestamp(SystemClock().millis() / 1000, UTC).astimezone()
    days = (then.date() - now.date()).days
    if 0 <= days < 7:
        return f"{then:%a %H:%M %Z}"
    year = "" if then.year == now.year else f" {then.year}"
    return f"{then:%a} {then.day} {then:%b}{year} {then:%H:%M %Z}"


def cost_words(costs: dict[str, Any] | None) -> str:
    """What a pause costs: `` It costs 2 fires: tomorrow 08:30 Europe/Berlin, …``"""
    if costs is None:
        return ""
    if not costs["count"]:
        return " It costs no fire."
    named = [f"{each['workflowId']} {zoned(each['at'], each['timezone'])}"
             for each in costs["fires"][:NAMED]]  # fmt: skip
    more = costs["count"] - len(named)
    rest = f" and {more} more" if more else ""
    return f" It costs {counted(costs['count'], 'fire')}: {', '.join(named)}{rest}."


def when_rows(rows: list[dict[str, Any]]) -> Iterator[list[Any]]:
    for row in rows:
        upcoming = row.get("nextFireAt")
        due = None if upcoming is None else when(upcoming, row["timezone"])
        last = row.get("lastRunId")
        yield [
            output.short(row["scheduleId"]), row["workflowId"], times_of(row), state_of(row), due,
            row.get("rosterId"), None if last is None else output.short(last),
        ]  # fmt: skip


def facts(found: dict[str, Any]) -> Iterator[str]:
    member = f" · {found['rosterId']}" if "rosterId" in found else ""
    name, flow = found["scheduleId"], found["workflowId"]
    yield f"{name} {flow}{member} · {times_of(found)} · {found['state']}"
    if "inert" in found:
        yield f"inert: {found['inert']}"
    if "problem" in found:
        yield found["problem"]
        return
    yield next_words(found)
    if left_out := [when(slot, found["timezone"]) for slot in found.get("leftOut", [])]:
        yield f"left out: {', '.join(left_out)} · {way(f'schedule skip {name} --undo')}"
    yield f"overlap {found['overlap']} · catch-up {found['catchUp']}"
    if (pause := found.get("pause")) is not None:
        until = f" until {when(pause['until'], found['timezone'])}" if "until" in pause else ""
        reason = f", {pause['reason']}" if pause["reason"] else ""
        yield f"paused by {pause['by']}{reason}{until}"
        if found["state"] in ("failed", "dead-lettered"):
            yield f"It stands still until somebody lets it go on: {way(f'schedule resume {name}')}"
    for run_id in found["going"]:
        yield f"going: {run_id}"
    if found["waiting"]:
        yield f"{counted(found['waiting'], 'time')} waiting for it to end"


def missed_line(found: dict[str, Any], fire: dict[str, Any]) -> str:
    """``1 missed fire at 08:30 · run now / skip``"""
    name, last = found["scheduleId"], fire.get("until", fire["slot"])
    at = when(last, found["timezone"])
    if fire["state"] == "dead":
        return f"The run for {at} could not begin: {fire.get('reason')} · {missed_ways(name)}"
    fires = "1 missed fire" if fire["count"] == 1 else f"{fire['count']} missed fires, the last"
    return f"{fires} at {at} · {missed_ways(name)}"


def missed_ways(schedule_id: str) -> str:
    """What can be done about what was missed."""
    return f"moot schedule run {schedule_id} --missed / skip {schedule_id} --missed"


def fire_rows(found: dict[str, Any], fires: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """A time that was skipped and then run by hand is told once."""
    ran = {fire["slot"] for fire in fires if fire["state"] == "delivered"}
    for fire in fires:
        if fire["state"] == "skipped" and fire["count"] == 1 and fire["slot"] in ran:
            continue
        slot = when(fire["slot"], found["timezone"])
        if fire["count"] > 1:
            slot = f"{slot} … {when(fire['until'], found['timezone'])} ({fire['count']})"
        cause = CAUSES.get(fire["cause"])
        run_id = fire.get("runId")
        yield [
            slot, fire["state"], fire.get("reason") or cause,
            None if run_id is None else output.short(run_id),
        ]  # fmt: skip


def done_lines(found: dict[str, Any], done: dict[str, Any]) -> Iterator[str]:
    """What was done by hand, or would be; in the order of the times."""
    dry = done["dryRun"]
    for fire in sorted(done["fires"], key=lambda fire: str(fire["slot"])):
        manual = fire["cause"] == "manual"
        slot = "now" if manual else when(fire["slot"], found["timezone"])
        of = "" if manual else f" for {slot}"
        if "runId" in fire:
            yield f"{fire['runId']} is started{of}"
        elif fire["act"] == "start" and dry:
            yield f"A run would be started{of}"
        elif fire["act"] == "start":
            yield f"{slot} could not begin; see: moot schedule show {found['scheduleId']}"
        else:
            why = f" ({fire['reason']})" if "reason" in fire else ""
            yield f"{slot} {ACTS[fire['act']][dry]}{why}"
