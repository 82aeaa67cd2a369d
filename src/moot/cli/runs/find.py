"""Find a run by the id, prefix or @last that people type, and print it."""

from typing import Any

import click

from moot.cli.runs.follow import (
    ACTIVE_NODE_STATUSES,
    THREAD,
    WAITING_STATUSES,
    Follower,
    conversation_status,
    find_run_thread,
    run_status,
    status_line,
)
from moot.cli.shared import output, quantities
from moot.cli.shared.client import Api, HttpClient, api_path
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.core.payloads.runs import RunCancelled

PREFIXES = ("run_", "th_")
#: letters of a full id after its prefix
FULL_ID_LENGTH = 20
PAGE = 1000


def resolve_run_id(api: Api, text: str, kind: str = "run") -> str:
    """Return the id of a run: a full id, a prefix of only one run, or @last.

    The ``run_`` or ``th_`` in front may be left out. Raise CommandError for none or several.
    """
    if text == "@last":
        return _newest_run(api)
    names = [text] if "_" in text else [f"{start}{text}" for start in PREFIXES]
    if len(names) == 1 and len(text.partition("_")[2]) >= FULL_ID_LENGTH:
        return text
    run_ids = [row["runId"] for name in names for row in _runs_with_prefix(api, name)]
    if len(run_ids) == 1:
        return str(run_ids[0])
    if run_ids:
        raise CommandError(
            f"several {kind}s start with '{text}': {', '.join(run_ids)}…", ExitCode.USAGE
        )
    kind = "thread" if text.startswith("th_") else kind
    newest = _runs_with_prefix(api, "th_" if kind == "thread" else "", 1)
    hint = f" (the newest is {newest[0]['runId']})" if newest else ""
    message = f"no {kind} starts with '{text}'{hint}. See: {command_hint(f'{kind} list')}"
    raise CommandError(message, ExitCode.NOT_FOUND)


def _runs_with_prefix(api: Api, name: str, limit: int = 3) -> list[dict[str, Any]]:
    return list(api.get("/v1/host/moot/runs", prefix=name or None, limit=limit)["runs"])


def _newest_run(api: Api) -> str:
    """Return the newest run that is not the child of another."""
    cursor = None
    while True:
        page = api.get("/v1/host/moot/runs", limit=50, cursor=cursor)
        for row in page["runs"]:
            if "parentRunId" not in row:
                return str(row["runId"])
        cursor = page.get("nextCursor")
        if cursor is None:
            raise CommandError(
                f"there is no run yet. Start one with: {command_hint('run FLOW')}",
                ExitCode.NOT_FOUND,
            )


def status_and_title(api: Api, row: dict[str, Any]) -> tuple[str, str | None]:
    """Return a run's status in a list, and its title.

    The row does not know about a pause that waits for nodes at work, or about a conversation that
    continues by itself; the run and the thread do.
    """
    if row["workflowId"] == THREAD:
        thread = find_run_thread(api, row["runId"]) or {"open": False, "title": None}
        status = conversation_status(api, thread) if row["status"] in WAITING_STATUSES else None
        return status or str(row["status"]), thread["title"]
    if row["status"] != "running":
        return str(row["status"]), None
    return run_status(api.get(api_path("v1", "runs", row["runId"]))), None


def cancel_reason(api: Api, run: dict[str, Any]) -> str | None:
    """Return the reason for a cancellation, which only the end of the log has."""
    if run["status"] != "cancelled":
        return None
    after = max(-1, run["metrics"]["eventCount"] - 10)
    path = api_path("v1", "runs", run["runId"], "events", "poll")
    events = api.get(path, lastSequence=after, timeout=0)["events"]
    ends = [event["payload"] for event in events if event["type"] == RunCancelled.event_type]
    return ends[0].get("reason") if ends else None


def print_run(
    run: dict[str, Any], reason: str | None = None, status: str | None = None, begun: str = ""
) -> None:
    run_id, flow = output.safe_line(run["runId"]), output.safe_line(run["workflowId"])
    click.echo(f"{click.style(run_id, bold=True)} {flow}")
    if begun:
        click.echo(output.safe_line(begun))
    click.echo(status_line(run, status))
    if reason:
        click.echo(f"{'reason':<10}{output.shorten(reason, 2000)}")
    for name in ("parentRunId", "tags", "inputs", "outputs", "error"):
        if run.get(name):
            click.echo(f"{name:<10}{output.shorten(run[name], 2000)}")
    if cost := format_cost(run["metrics"]):
        click.echo(f"{'models':<10}{cost}")
    if run.get("variables"):
        click.echo(f"{'variables':<10}{output.shorten(run['variables'])}")
    rows = (
        [name, state["status"], state["attempt"], _node_about(state)]
        for name, state in run.get("nodeStates", {}).items()
    )
    output.print_table(("NODE", "STATUS", "ATTEMPT", "ABOUT"), rows, empty="No node has started.")


def format_cost(metrics: dict[str, Any]) -> str:
    """Return ``3 calls · 1 200 tokens in, 300 out · 0.0123 USD``."""
    if not metrics.get("modelCalls"):
        return ""
    tokens = metrics["openwopCost"]["tokens"]
    group, calls = quantities.group_digits, quantities.format_count(metrics["modelCalls"], "call")
    text = f"{calls} · {group(tokens['input'])} tokens in, {group(tokens['output'])} out"
    if "cost" not in metrics:
        return text
    return f"{text} · {metrics['cost']:g} {output.safe_line(metrics['currency'])}"


def _node_about(state: dict[str, Any]) -> str:
    if state.get("error"):
        return f"{state['error'].get('code')}: {state['error'].get('message')}"
    if state["status"] in ACTIVE_NODE_STATUSES:
        if state.get("childRunId"):
            return f"waits for {state['childRunId']}"
        if state.get("dueAt"):
            return f"due {state['dueAt']}"
    return (
        output.shorten(state["outputs"], 100) if state.get("outputs") else state.get("reason", "")
    )


def print_events(api: Api, client: HttpClient, run_id: str, after: int, as_json: bool) -> None:
    """Print the events that are in the log now."""
    follower = Follower(api, client, run_id, as_json)
    path = api_path("v1", "runs", run_id, "events", "poll")
    while True:
        page = api.get(path, lastSequence=after, timeout=0)
        for event in page["events"]:
            follower.show(event)
            after = event["sequence"]
        if not page["events"] or page["isComplete"]:
            return
