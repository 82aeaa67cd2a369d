"""What somebody who was let go has left behind, each with the command that takes it over."""

from collections.abc import Iterator
from typing import Any

from moot.cli.shared.command_hint import way


def left_lines(left: list[dict[str, Any]], again: bool) -> Iterator[str]:
    """``again``: somebody has the name again, and can take over what rests without being named."""
    for each in left:
        if each["state"] != "active":
            yield f"Paused: {_what(each)} · {_way(each, again)}"


def _what(each: dict[str, Any]) -> str:
    flow = each.get("workflowId", "")
    if each["source"] == "queue":
        return f"queue:{each['queue']} → {flow}"
    return f"{flow} by {each['source']}"


def _way(each: dict[str, Any], again: bool) -> str:
    if each["source"] == "schedule":
        member = "" if again else " --member NAME"
        return way(f"schedule resume {each['scheduleId']}{member}")
    if each["source"] == "queue":
        bind = f"queue bind {each['queue']} --flow {each.get('workflowId', 'FLOW')} --member NAME"
        return way(f"queue resume {each['queue']}" if again else bind)
    body = '{"state": "active"}' if again else '{"rosterId": "host:NAME"}'
    return f"PATCH /v1/trigger-subscriptions/{each['subscriptionId']} {body}"
