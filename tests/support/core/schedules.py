"""Schedules for tests, and instants as people write them."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from moot.core.schedules.model import Fire, Schedule
from moot.core.schedules.parse import parse_schedule

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def at(written: str) -> int:
    """Milliseconds since the epoch; UTC where no offset is written."""
    moment = datetime.fromisoformat(written)
    return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)


def shown(instant: int, zone: str = "UTC") -> str:
    """With the offset, so that nothing is ambiguous."""
    moment = datetime.fromtimestamp(instant / 1000, ZoneInfo(zone))
    return moment.isoformat(timespec="minutes")


#: a Monday
MONDAY = at("2026-01-05T00:00")


def schedule(created: int = MONDAY, **said: Any) -> Schedule:
    """By default every hour."""
    if not {"cronExpr", "intervalSeconds", "at", "words"} & said.keys():
        said["cronExpr"] = "0 * * * *"
    kinds = {"cronExpr": "cron", "intervalSeconds": "interval", "at": "once", "words": "words"}
    kind = next(kind for field, kind in kinds.items() if field in said)
    return parse_schedule({"workflowId": "w", "kind": kind, **said}, "sch_1", created)


def told(fires: tuple[Fire, ...]) -> list[str]:
    """One line for each: what, when, why and of how many."""
    lines = []
    for fire in fires:
        why = fire.reason or ("" if fire.cause == "slot" else fire.cause)
        many = f" x{fire.count} until {shown(fire.until)[5:16]}" if fire.until else ""
        lines.append(f"{fire.act} {shown(fire.slot)[5:16]}{many} {why}".strip())
    return lines
