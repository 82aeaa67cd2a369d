"""Rows of standing agents: state, next scheduled run, open questions."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from moot.cli.interrupts.questions import read_items
from moot.cli.schedules.schedule import read_schedules
from moot.cli.schedules.wording import describe_until, local_time
from moot.cli.shared.client import Api
from moot.cli.shared.quantities import format_count


def member_rows(api: Api, members: list[dict[str, Any]]) -> Iterator[list[str]]:
    if not members:
        return
    next_schedules = _next_schedules(api)
    waits = Counter(item.member.roster_id for item in read_items(api) if item.member)
    for member in members:
        name = member["rosterId"]
        due = next_schedules.get(name)
        yield [
            name, member["persona"], member.get("label", ""), member.get("model", ""),
            _member_state(member),
            f"{due['workflowId']} {local_time(due['nextFireAt'], due['timezone'])}" if due else "",
            f"{waits[name]} for you" if waits[name] else "",
            format_count(len(member.get("workflows", [])), "workflow"),
        ]  # fmt: skip


def _next_schedules(api: Api) -> dict[str, dict[str, Any]]:
    """Return the schedule of each member that fires first."""
    schedules: dict[str, dict[str, Any]] = {}
    for row in read_schedules(api):
        name, due = row.get("rosterId"), row.get("nextFireAt")
        if name is None or due is None:
            continue
        if name not in schedules or due < schedules[name]["nextFireAt"]:
            schedules[name] = row
    return schedules


def _member_state(member: dict[str, Any]) -> str:
    """Return ``on duty`` or ``paused until Mon 08:00 CET``."""
    status = str(member["status"]).replace("-", " ")
    until = member.get("paused", {}).get("until")
    return f"{status} until {describe_until(until)}" if until else status
