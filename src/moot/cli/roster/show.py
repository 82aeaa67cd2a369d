"""Print a standing agent: state, triggers, recent runs, budget and questions."""

from collections.abc import Iterator
from typing import Any

import click

from moot.cli.interrupts.questions import is_decision
from moot.cli.roster.member import roster_handle
from moot.cli.schedules.wording import describe_times, describe_until, local_time
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.quantities import format_count, format_duration
from moot.client.operations import roster

#: bars for days with no run, and with more and more runs
BARS = "▁▂▃▄▅▆▇█"


def find_member(api: Api, name: str) -> dict[str, Any] | None:
    """Return the member of this name, or None."""
    try:
        member: dict[str, Any] = api.send_json(roster.get_member(roster_handle(name)))
    except CommandError as error:
        if error.exit_code is ExitCode.NOT_FOUND or "no roster" in str(error):
            return None
        raise
    return member


def find_work(api: Api, name: str) -> dict[str, Any] | None:
    """Return a member and its work, also of a dismissed one, or None."""
    try:
        work: dict[str, Any] = api.send_json(roster.get_member_work(roster_handle(name)))
    except CommandError as error:
        if error.exit_code is ExitCode.NOT_FOUND or "no roster" in str(error):
            return None
        raise
    return work


def read_members(api: Api) -> list[dict[str, Any]]:
    """Return all members; none on a host without a roster."""
    try:
        members: list[dict[str, Any]] = api.send_json(roster.list_members())["roster"]
    except CommandError as error:
        if "no roster" in str(error):
            return []
        raise
    return members


def print_member(member: dict[str, Any]) -> None:
    name = click.style(output.safe_line(member["persona"]), bold=True)
    role = [output.safe_line(member["label"])] if member.get("label") else []
    owner = [f"owner {_person_name(member, member['hiredBy'])}"] if "hiredBy" in member else []
    model = [f"model {member['model']}"] if "model" in member else []
    about = "".join(f"        {output.safe_line(fact)}" for fact in (*owner, *model))
    click.echo(" · ".join([name, *role, output.safe_line(_status_text(member))]) + about)
    ref = member["agentRef"]
    version = ref.get("version") or ref.get("channel") or "as it is"
    instance = output.safe_line(
        f"{member['rosterId']}, an instance of {ref['agentId']} ({version})"
    )
    click.echo(f"  {instance}")
    rows = [row for each in member["portfolio"] for row in _workflow_rows(each)]
    if rows:
        output.print_table(("PORTFOLIO", "TRIGGER", "NEXT", "LAST", "14 D"), rows)
    shown_triggers = sum(len(each["triggers"]) for each in member["portfolio"])
    if member["triggers"] > shown_triggers:
        click.echo(f"  and {format_count(member['triggers'] - shown_triggers, 'trigger')} more")
    for limit in member.get("budget", []):
        budget_text = f"{limit['limit']}: {limit['used']:g} of {limit['most']:g}"
        budget_text += f" ({limit['unpriced']} has no price)" if "unpriced" in limit else ""
        click.echo(f"  {budget_text}" + ("" if limit["state"] == "ok" else f", {limit['state']}"))
    for line in _question_lines(member):
        click.echo(line)


def _status_text(member: dict[str, Any]) -> str:
    """Return ``● on duty (since 3 days)`` or ``⏸ paused by you, until Mon 08:00``."""
    status = member["status"]
    if status == "on-duty":
        return f"● on duty (since {_format_age(member['since'])})"
    if status == "paused":
        pause = member["paused"]
        words = [f"paused by {_person_name(member, pause['by'])}", pause.get("reason", "")]
        if "until" in pause:
            words.append(f"until {describe_until(pause['until'])}")
        return f"⏸ {', '.join(word for word in words if word)}"
    by = f" by {_person_name(member, member['dismissed']['by'])}" if status == "dismissed" else ""
    return f"○ {status}{by} ({_format_age(member['since'])} ago)"


def _format_age(since: str) -> str:
    """Return ``3 days``, ``2 hours`` or ``12 seconds``: one unit, rounded down."""
    passed = max(0, round(output.seconds_since(since)))
    size = next((size for size in (86_400, 3600, 60) if passed >= size), 1)
    return format_duration(passed // size * size)


def _person_name(member: dict[str, Any], name: str) -> str:
    return "you" if name == member["you"] else name


def _workflow_rows(flow: dict[str, Any]) -> Iterator[list[str]]:
    """Yield one row for each trigger of a workflow."""
    activity = _activity_bars(flow)
    for number, trigger in enumerate(flow["triggers"] or [None]):
        trigger_cells = [_trigger_text(trigger), _next_text(trigger)] if trigger else ["", ""]
        if number:
            yield ["", *trigger_cells, "", ""]
        else:
            yield [flow["workflowId"], *trigger_cells, _last_run_text(flow.get("last")), activity]


def _trigger_text(trigger: dict[str, Any]) -> str:
    if trigger["source"] == "schedule":
        return describe_times(trigger) if "kind" in trigger else str(trigger["scheduleId"])
    if trigger["source"] == "queue":
        return f"queue:{trigger['queue']}"
    return f"{trigger['source']}:{output.short_id(trigger['subscriptionId'])}"


def _next_text(trigger: dict[str, Any]) -> str:
    """Return when the trigger starts a run next, or why it does not."""
    if trigger.get("nextFireAt") is not None:
        return local_time(trigger["nextFireAt"], trigger["timezone"])
    if "inert" in trigger:
        return "inert"
    if trigger["state"] != "active":
        return str(trigger["state"])
    return "on arrival" if trigger["source"] != "schedule" else ""


def _last_run_text(run: dict[str, Any] | None) -> str:
    """Return ``✓ 41 s`` or ``⏸ waiting``."""
    if run is None:
        return "never"
    status = run["status"]
    mark = output.MARKS.get(status, ("·", ""))[0]
    if "endedAt" in run:
        return (
            f"{mark} {output.format_span(output.seconds_between(run['startedAt'], run['endedAt']))}"
        )
    return f"{mark} {'waiting' if status.startswith('waiting') else status}"


def _activity_bars(flow: dict[str, Any]) -> str:
    """Return a bar for each day, or the counts if a run has failed."""
    if flow["failed"] or not flow["runs"]:
        failed = f", {flow['failed']} failed" if flow["failed"] else ""
        return f"{format_count(flow['runs'], 'run')}{failed}"
    most = max(flow["days"])
    steps = len(BARS) - 1
    return "".join(BARS[day if most <= steps else -(-day * steps // most)] for day in flow["days"])


def _question_lines(member: dict[str, Any]) -> Iterator[str]:
    """Yield each open question with the command that answers it."""
    for item in member["waiting"]:
        about = f'{output.one_line(item["askedBy"])} "{output.shorten(item["question"], 80)}"'
        verb = (
            f"approve {item['number']}"
            if is_decision(item["kind"])
            else f"answer {item['number']} TEXT"
        )
        yield f"WAITING ON YOU  {output.short_id(item['runId'])} {about}  {command_hint(verb)}"
