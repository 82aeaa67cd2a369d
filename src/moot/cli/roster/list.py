"""Rows of standing agents: state, next scheduled run, open questions."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from moot.cli.interrupts.questions import read_items
from moot.cli.schedules.schedule import read_schedules
from moot.cli.schedules.wording import describe_until, local_time
from moot.cli.shared.client import Api
from moot.core.text.quantities import format_count
from moot.wire.roster import MemberView


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
