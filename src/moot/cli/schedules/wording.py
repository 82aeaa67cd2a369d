"""Describe schedules in words for people; programs get plain timestamps."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo

from moot.cli.shared import output
from moot.cli.shared.command_hint import command_hint
from moot.clock import SystemClock
from moot.core.text.quantities import format_count, format_duration
from moot.wire.roster import MemberTrigger
from moot.wire.runs import RunTimes
from moot.wire.schedules import FireResultList, FireView, PauseCost, SchedulePreview, ScheduleView

#: action -> text of the action, and of a dry run
ACTION_TEXTS = {
    "buffer": ("waits for the run before it", "would wait for the run before it"),
    "skip": ("is skipped", "would be skipped"),
}
OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
CAUSES = {"manual": "by hand", "backfill": "by hand", "catch-up": "caught up"}
#: days from today that have a name
NEAR_DAYS = {-1: "yesterday", 0: "today", 1: "tomorrow"}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z")
#: fires that a sentence names
MAX_NAMED_FIRES = 3


def local_time(timestamp: str, zone: str) -> str:
    """Return ``tomorrow 08:30`` or ``Mon 4 Jan 08:30``, in the schedule's zone."""
    return _day_and_clock(timestamp, zone_or_utc(zone)) if output.on_terminal() else timestamp


def machine_time(timestamp: str) -> str:
    """Return ``today 08:30 CET``, in this machine's zone."""
    if not output.on_terminal():
        return timestamp
    return f"{_day_and_clock(timestamp, None)} {output.parse_timestamp(timestamp).astimezone():%Z}"


def localize_times(text: str) -> str:
    """Replace the timestamps of a sentence by local times."""
    return TIMESTAMP.sub(lambda match: machine_time(match[0]), text)


def _day_and_clock(timestamp: str, zone: tzinfo | None) -> str:
    moment = output.parse_timestamp(timestamp).astimezone(zone)
    now = datetime.fromtimestamp(SystemClock().millis() / 1000, UTC).astimezone(zone)
    days = (moment.date() - now.date()).days
    clock = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    if days in NEAR_DAYS:
        return f"{NEAR_DAYS[days]} {clock}"
    year = "" if moment.year == now.year else f" {moment.year}"
    return f"{moment:%a} {moment.day} {moment:%b}{year} {clock}"


def zone_or_utc(name: str) -> tzinfo:
    from moot.core.text.zones import find_zone

    return find_zone(name) or UTC


def local_time_with_zone(timestamp: str, zone: str) -> str:
    """Return the local time and its zone."""
    return f"{local_time(timestamp, zone)} {zone}" if output.on_terminal() else timestamp


def describe_times(schedule: SchedulePreview | MemberTrigger | RunTimes) -> str:
    """Return the times of a schedule in the words that its author used."""
    if schedule.kind == "interval":
        return f"every {format_duration(schedule.interval_seconds or 0)}"
    times = schedule.words or schedule.cron_expr or schedule.at or ""
    zone = schedule.timezone or "UTC"
    names_zone = zone in times or (schedule.kind == "once" and OFFSET.search(times))
    return times if names_zone else f"{times} {zone}"


def describe_next(schedule: SchedulePreview) -> str:
    if not schedule.next_fires:
        return "nothing is to come"
    *others, last = schedule.next_fires
    zone = schedule.timezone
    return "next: " + ", ".join(
        [*(local_time(at, zone) for at in others), local_time_with_zone(last, zone)]
    )


def describe_state(
    state: str, inert: str | None, until: str | None = None, note: str | None = None
) -> str:
    """Return the state. ``inert``, the reason why it starts nothing, replaces it."""
    if inert is not None:
        return f"inert: {inert}"
    end = f" until {describe_until(until)}" if until else ""
    return f"{state}{end}{f': {note}' if note else ''}"


def describe_until(timestamp: str) -> str:
    """Return ``Mon 08:00 CET`` in this machine's zone, with the date unless it is within a week."""
    moment = output.parse_timestamp(timestamp).astimezone()
    now = datetime.fromtimestamp(SystemClock().millis() / 1000, UTC).astimezone()
    days = (moment.date() - now.date()).days
    if 0 <= days < 7:
        return f"{moment:%a %H:%M %Z}"
    year = "" if moment.year == now.year else f" {moment.year}"
    return f"{moment:%a} {moment.day} {moment:%b}{year} {moment:%H:%M %Z}"


def describe_pause_cost(costs: PauseCost | None) -> str:
    """Return `` It costs 2 fires: tomorrow 08:30 Europe/Berlin, …``."""
    if costs is None:
        return ""
    if not costs.count:
        return " It costs no fire."
    fires = [f"{each.workflow_id} {local_time_with_zone(each.at, each.timezone)}"
             for each in costs.fires[:MAX_NAMED_FIRES]]  # fmt: skip
    more = costs.count - len(fires)
    rest = f" and {more} more" if more else ""
    return f" It costs {format_count(costs.count, 'fire')}: {', '.join(fires)}{rest}."


def schedule_row(row: ScheduleView) -> list[object]:
    due = local_time(row.next_fire_at, row.timezone) if row.next_fire_at else None
    missed = f" · {row.missed} missed" if row.missed else ""
    return [
        output.short_id(row.schedule_id), row.workflow_id, describe_times(row),
        f"{describe_state(row.state, row.inert)}{missed}", due, row.roster_id,
        output.short_id(row.last_run_id or ""),
    ]  # fmt: skip


def schedule_facts(schedule: ScheduleView) -> Iterator[str]:
    member = "" if schedule.roster_id is None else f" · {schedule.roster_id}"
    name, zone = schedule.schedule_id, schedule.timezone
    times = describe_times(schedule)
    yield f"{name} {schedule.workflow_id}{member} · {times} · {schedule.state}"
    if schedule.inert is not None:
        yield f"inert: {schedule.inert}"
    if schedule.problem is not None:
        yield schedule.problem
        return
    yield describe_next(schedule)
    if left_out := [local_time(slot, zone) for slot in schedule.left_out]:
        yield f"left out: {', '.join(left_out)} · {command_hint(f'schedule skip {name} --undo')}"
    yield f"overlap {schedule.overlap} · catch-up {schedule.catch_up}"
    if (pause := schedule.pause) is not None:
        until = "" if pause.until is None else f" until {local_time(pause.until, zone)}"
        reason = f", {pause.reason}" if pause.reason else ""
        yield f"paused by {pause.by}{reason}{until}"
        if schedule.state in ("failed", "dead-lettered"):
            hint = command_hint(f"schedule resume {name}")
            yield f"It stands still until somebody lets it go on: {hint}"
    for run_id in schedule.going:
        yield f"going: {run_id}"
    if schedule.waiting:
        yield f"{format_count(schedule.waiting, 'time')} waiting for it to end"


def missed_fire_line(schedule: ScheduleView, fire: FireView) -> str:
    """Return ``1 missed fire at 08:30 · run now / skip``."""
    name = schedule.schedule_id
    at = local_time(fire.until or fire.slot, schedule.timezone)
    if fire.state == "dead":
        return f"The run for {at} could not begin: {fire.reason} · {missed_fire_hint(name)}"
    fires = "1 missed fire" if fire.count == 1 else f"{fire.count} missed fires, the last"
    return f"{fires} at {at} · {missed_fire_hint(name)}"


def missed_fire_hint(schedule_id: str) -> str:
    """Return the commands that deal with a missed fire."""
    return f"moot schedule run {schedule_id} --missed / skip {schedule_id} --missed"


def fire_rows(zone: str, fires: list[FireView]) -> Iterator[list[object]]:
    """Yield a row for each fire; a slot that was skipped and then run by hand appears once."""
    ran = {fire.slot for fire in fires if fire.state == "delivered"}
    for fire in fires:
        if fire.state == "skipped" and fire.count == 1 and fire.slot in ran:
            continue
        slot = local_time(fire.slot, zone)
        if fire.count > 1 and fire.until is not None:
            slot = f"{slot} … {local_time(fire.until, zone)} ({fire.count})"
        yield [
            slot, fire.state, fire.reason or CAUSES.get(fire.cause),
            output.short_id(fire.run_id or ""),
        ]  # fmt: skip


def fire_action_lines(zone: str, result: FireResultList) -> Iterator[str]:
    """Yield each manual action, or with a dry run each planned one, in the order of the slots."""
    dry = result.dry_run
    for fire in sorted(result.fires, key=lambda fire: fire.slot):
        manual = fire.cause == "manual"
        slot = "now" if manual else local_time(fire.slot, zone)
        suffix = "" if manual else f" for {slot}"
        if fire.run_id is not None:
            yield f"{fire.run_id} is started{suffix}"
        elif fire.act == "start" and dry:
            yield f"A run would be started{suffix}"
        elif fire.act == "start":
            yield f"{slot} could not begin; see: moot schedule show {result.schedule_id}"
        else:
            why = "" if fire.reason is None else f" ({fire.reason})"
            yield f"{slot} {ACTION_TEXTS[fire.act][dry]}{why}"
