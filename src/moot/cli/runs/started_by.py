"""Describe the origin of a run: ``Started by Sally · queue leads``."""

from moot.cli.schedules.wording import describe_times
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.client.operations import runs
from moot.wire.runs import RunStart

#: sources of a run that a request or another run started
BY_HAND = {"run-api": "by hand", "dispatch": "another run"}


def started_by_line(api: Api, run_id: str) -> str:
    """Return an empty string for a run without a standing agent or trigger."""
    rows = api.send(runs.list_runs(prefix=run_id, limit=1, begun=True)).runs
    origin = rows[0].begun if rows else None
    if not origin:
        return ""
    words = [origin.persona, describe_trigger(origin)]
    return f"Started by {' · '.join(word for word in words if word)}"


def describe_trigger(origin: RunStart | None) -> str:
    """Return ``queue leads · wi_33xk2a9b``, ``schedule weekday 08:30 …`` or ``by hand``."""
    if origin is None:
        return ""
    source = origin.source or ""
    words = [BY_HAND.get(source, source)]
    if origin.queue is not None and source == "queue":
        words = [f"queue {origin.queue}"]
    elif origin.times is not None:
        words = [f"schedule {describe_times(origin.times)}"]
    elif origin.schedule_id is not None:
        words = [f"schedule {output.short_id(origin.schedule_id)}"]
    if origin.item_id is not None:
        words.append(output.short_id(origin.item_id))
    return " · ".join(words)
