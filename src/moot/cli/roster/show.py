"""Print standing agents: a list with states, or one with its work and budget."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import click

from moot.cli.interrupts.questions import is_decision, read_items
from moot.cli.roster.member import roster_handle
from moot.cli.schedules.schedule import read_schedules
from moot.cli.schedules.wording import describe_times, describe_until, local_time
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError
from moot.client.http.operation import PreparedCall
from moot.client.operations import roster
from moot.core.text.quantities import format_count, format_duration
from moot.wire.roster import (
    BudgetUse,
    MemberDetail,
    MemberTrigger,
    MemberView,
    MemberWork,
    MemberWorkflow,
    RecentRun,
)

T = TypeVar("T")
#: bars for days with no run, and with more and more runs
BARS = "▁▂▃▄▅▆▇█"


def find_member(api: Api, name: str) -> MemberDetail | None:
    """Return the member of this name, or None."""
    return _send_or_none(api, roster.get_member(roster_handle(name)))


def find_work(api: Api, name: str) -> MemberWork | None:
    """Return a member and its work, also of a dismissed one, or None."""
    return _send_or_none(api, roster.get_member_work(roster_handle(name)))


def read_members(api: Api) -> list[MemberView]:
    """Return all members; none on a host without a roster."""
    members = _send_or_none(api, roster.list_members())
    return members.roster if members else []


def _send_or_none(api: Api, call: PreparedCall[T]) -> T | None:
    try:
        return api.find(call)
    except CommandError as error:
        if "no roster" in str(error):
            return None
        raise


def member_rows(api: Api, members: list[MemberView]) -> Iterator[list[str]]:
    if not members:
        return
    next_runs = _next_runs(api)
    waits = Counter(item.member.roster_id for item in read_items(api) if item.member)
    for member in members:
        name = member.roster_id
        yield [
            name, member.persona, member.label or "", member.model or "",
            _member_state(member),
            next_runs[name].text if name in next_runs else "",
            f"{waits[name]} for you" if waits[name] else "",
            format_count(len(member.workflows), "workflow"),
        ]  # fmt: skip


class NextRun(NamedTuple):
    """The next time of a schedule, and a description of it."""

    at: str
    text: str


def _next_runs(api: Api) -> dict[str, NextRun]:
    """Return the first scheduled run of each member."""
    next_runs: dict[str, NextRun] = {}
    for row in read_schedules(api):
        name, due = row.roster_id, row.next_fire_at
        if name is None or not due:
            continue
        if name not in next_runs or due < next_runs[name].at:
            next_runs[name] = NextRun(due, f"{row.workflow_id} {local_time(due, row.timezone)}")
    return next_runs


def _member_state(member: MemberView) -> str:
    """Return ``on duty`` or ``paused until Mon 08:00 CET``."""
    status = member.status.replace("-", " ")
    until = member.paused.until if member.paused else None
    return f"{status} until {describe_until(until)}" if until else status


def print_member(member: MemberWork, budget: Sequence[BudgetUse]) -> None:
    name = click.style(output.safe_line(member.persona), bold=True)
    role = [output.safe_line(member.label)] if member.label else []
    owner = [f"owner {_person_name(member, member.hired_by)}"] if member.hired_by else []
    model = [f"model {member.model}"] if member.model else []
    about = "".join(f"        {output.safe_line(fact)}" for fact in (*owner, *model))
    click.echo(" · ".join([name, *role, output.safe_line(_status_text(member))]) + about)
    ref = member.agent_ref
    version = ref.version or ref.channel or "as it is"
    instance = f"{member.roster_id}, an instance of {ref.agent_id} ({version})"
    click.echo(f"  {output.safe_line(instance)}")
    rows = [row for each in member.portfolio for row in _workflow_rows(each)]
    if rows:
        output.print_table(("PORTFOLIO", "TRIGGER", "NEXT", "LAST", "14 D"), rows)
    shown_triggers = sum(len(each.triggers) for each in member.portfolio)
    if member.triggers > shown_triggers:
        click.echo(f"  and {format_count(member.triggers - shown_triggers, 'trigger')} more")
    for limit in budget:
        budget_text = f"{limit.limit}: {limit.used:g} of {limit.most:g}"
        budget_text += f" ({limit.unpriced} has no price)" if limit.unpriced else ""
        click.echo(f"  {budget_text}" + ("" if limit.state == "ok" else f", {limit.state}"))
    for line in _question_lines(member):
        click.echo(line)


def _status_text(member: MemberWork) -> str:
    """Return ``● on duty (since 3 days)`` or ``⏸ paused by you, until Mon 08:00``."""
    if member.status == "on-duty":
        return f"● on duty (since {_format_age(member.since)})"
    if member.status == "paused" and (pause := member.paused) is not None:
        words = [f"paused by {_person_name(member, pause.by)}", pause.reason or ""]
        if pause.until is not None:
            words.append(f"until {describe_until(pause.until)}")
        return f"⏸ {', '.join(word for word in words if word)}"
    by = f" by {_person_name(member, member.dismissed.by)}" if member.dismissed else ""
    return f"○ {member.status}{by} ({_format_age(member.since)} ago)"


def _format_age(since: str) -> str:
    """Return ``3 days``, ``2 hours`` or ``12 seconds``: one unit, rounded down."""
    passed = max(0, round(output.seconds_since(since)))
    size = next((size for size in (86_400, 3600, 60) if passed >= size), 1)
    return format_duration(passed // size * size)


def _person_name(member: MemberWork, name: str) -> str:
    return "you" if name == member.you else name


def _workflow_rows(flow: MemberWorkflow) -> Iterator[list[str]]:
    """Yield one row for each trigger of a workflow."""
    activity = _activity_bars(flow)
    for number, trigger in enumerate(flow.triggers or [None]):
        trigger_cells = [_trigger_text(trigger), _next_text(trigger)] if trigger else ["", ""]
        if number:
            yield ["", *trigger_cells, "", ""]
        else:
            yield [flow.workflow_id, *trigger_cells, _last_run_text(flow.last), activity]


def _trigger_text(trigger: MemberTrigger) -> str:
    if trigger.source == "schedule":
        return describe_times(trigger) if trigger.kind else str(trigger.schedule_id)
    if trigger.source == "queue":
        return f"queue:{trigger.queue}"
    return f"{trigger.source}:{output.short_id(trigger.subscription_id)}"


def _next_text(trigger: MemberTrigger) -> str:
    """Return when the trigger starts a run next, or why it does not."""
    if trigger.next_fire_at is not None:
        return local_time(trigger.next_fire_at, trigger.timezone or "UTC")
    if trigger.inert is not None:
        return "inert"
    if trigger.state != "active":
        return trigger.state
    return "on arrival" if trigger.source != "schedule" else ""


def _last_run_text(run: RecentRun | None) -> str:
    """Return ``✓ 41 s`` or ``⏸ waiting``."""
    if run is None:
        return "never"
    mark = output.MARKS.get(run.status, ("·", ""))[0]
    if run.ended_at is not None:
        seconds = output.seconds_between(run.started_at, run.ended_at)
        return f"{mark} {output.format_span(seconds)}"
    return f"{mark} {'waiting' if run.status.startswith('waiting') else run.status}"


def _activity_bars(flow: MemberWorkflow) -> str:
    """Return a bar for each day, or the counts if a run has failed."""
    if flow.failed or not flow.runs:
        failed = f", {flow.failed} failed" if flow.failed else ""
        return f"{format_count(flow.runs, 'run')}{failed}"
    most = max(flow.days)
    steps = len(BARS) - 1
    return "".join(BARS[day if most <= steps else -(-day * steps // most)] for day in flow.days)


def _question_lines(member: MemberWork) -> Iterator[str]:
    """Yield each open question with the command that answers it."""
    for item in member.waiting:
        about = f'{output.one_line(item.asked_by)} "{output.shorten(item.question, 80)}"'
        number = item.number
        verb = f"approve {number}" if is_decision(item.kind) else f"answer {number} TEXT"
        yield f"WAITING ON YOU  {output.short_id(item.run_id)} {about}  {command_hint(verb)}"
