"""Whose a run is and what began it, in words: ``Started by Sally · queue leads``."""

from typing import Any

from moot.cli.schedules.wording import times_of
from moot.cli.shared import output
from moot.cli.shared.client import Api

#: of a run that somebody asked for, or that another run began
BY_HAND = {"run-api": "by hand", "dispatch": "another run"}


def begun_line(api: Api, run_id: str) -> str:
    """Empty for a run that somebody began without a standing agent."""
    rows = api.get("/v1/host/moot/runs", prefix=run_id, limit=1, begun="true")["runs"]
    begun = rows[0].get("begun") if rows else None
    if not begun:
        return ""
    words = [begun.get("persona"), trigger_words(begun)]
    return f"Started by {' · '.join(word for word in words if word)}"


def trigger_words(begun: dict[str, Any]) -> str:
    """``queue leads · wi_33xk2a9b``, ``schedule weekday 08:30 Europe/Berlin``, ``by hand``"""
    source = str(begun.get("source") or "")
    words = [BY_HAND.get(source, source)]
    if "queue" in begun and source == "queue":
        words = [f"queue {begun['queue']}"]
    elif "times" in begun:
        words = [f"schedule {times_of(begun['times'])}"]
    elif "scheduleId" in begun:
        words = [f"schedule {output.short(begun['scheduleId'])}"]
    if "itemId" in begun:
        words.append(output.short(begun["itemId"]))
    return " · ".join(words)
