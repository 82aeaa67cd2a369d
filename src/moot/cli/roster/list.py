"""Standing agents in a list: who is on duty, when each starts something next, what waits."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from moot.cli.interrupts.questions import INBOX, MOST
from moot.cli.schedules.schedule import all_schedules
from moot.cli.schedules.wording import until_words, when
from moot.cli.shared.client import Api
from moot.cli.shared.quantities import counted


def staff_rows(api: Api, staff: list[dict[str, Any]]) -> Iterator[list[str]]:
    if not staff:
        return
    soonest = _soonest(api)
    items = api.get(INBOX, limit=MOST)["items"]
    waits = Counter(item["member"]["rosterId"] for item in items if "member" in item)
    for member in staff:
        name = member["rosterId"]
        due = soonest.get(name)
        yield [
            name, member["persona"], member.get("label", ""), member.get("model", ""),
            _state(member),
            f"{due['workflowId']} {when(due['nextFireAt'], due['timezone'])}" if due else "",
            f"{waits[name]} for you" if waits[name] else "",
            counted(len(member.get("workflows", [])), "workflow"),
        ]  # fmt: skip


def _soonest(api: Api) -> dict[str, dict[str, Any]]:
    """Of each member the schedule that comes first."""
    found: dict[str, dict[str, Any]] = {}
    for row in all_schedules(api):
        name, due = row.get("rosterId"), row.get("nextFireAt")
        if name is None or due is None:
            continue
        if name not in found or due < found[name]["nextFireAt"]:
            found[name] = row
    return found


def _state(member: dict[str, Any]) -> str:
    """``on duty``, ``paused until Mon 08:00 CET``"""
    status = str(member["status"]).replace("-", " ")
    until = member.get("paused", {}).get("until")
    return f"{status} until {until_words(until)}" if until else status
