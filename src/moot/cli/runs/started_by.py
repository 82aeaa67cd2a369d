"""Describe the origin of a run: ``Started by Sally · queue leads``."""

from typing import Any

from moot.cli.schedules.wording import describe_times
from moot.cli.shared import output
from moot.cli.shared.client import Api

#: sources of a run that a request or another run started
BY_HAND = {"run-api": "by hand", "dispatch": "another run"}


def started_by_line(api: Api, run_id: str) -> str:
    """Return an empty string for a run without a standing agent or trigger."""
    rows = api.get("/v1/host/moot/runs", prefix=run_id, limit=1, begun="true")["runs"]
    origin = rows[0].get("begun") if rows else None
    if not origin:
        return ""
    words = [origin.get("persona"), describe_trigger(origin)]
    return f"Started by {' · '.join(word for word in words if word)}"


def describe_trigger(origin: dict[str, Any]) -> str:
    """Return ``queue leads · wi_33xk2a9b``, ``schedule weekday 08:30 …`` or ``by hand``."""
    source = str(origin.get("source") or "")
    words = [BY_HAND.get(source, source)]
    if "queue" in origin and source == "queue":
        words = [f"queue {origin['queue']}"]
    elif "times" in origin:
        words = [f"schedule {describe_times(origin['times'])}"]
    elif "scheduleId" in origin:
        words = [f"schedule {output.short_id(origin['scheduleId'])}"]
    if "itemId" in origin:
        words.append(output.short_id(origin["itemId"]))
    return " · ".join(words)
