"""Finding runs by what people type, and showing one."""

from typing import Any

import click

from moot.cli.runs.follow import (
    AT_WORK,
    FOR_A_PERSON,
    THREAD,
    Follower,
    last_line,
    stands,
    status_of,
    thread_of,
)
from moot.cli.shared import output, quantities
from moot.cli.shared.client import Api, Client, path_of
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble

PREFIXES = ("run_", "th_")
#: letters of a whole id after what it begins with
WHOLE = 20
PAGE = 1000


def resolve(api: Api, given: str, kind: str = "run") -> str:
    """The id of the run that is meant: whole, a prefix of one run only, or @last. What it begins
    with may be left out."""
    if given == "@last":
        return _newest(api)
    names = [given] if "_" in given else [f"{start}{given}" for start in PREFIXES]
    if len(names) == 1 and len(given.partition("_")[2]) >= WHOLE:
        return given
    found = [row["runId"] for name in names for row in _beginning(api, name)]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise Trouble(f"several {kind}s start with '{given}': {', '.join(found)}…", Exit.USAGE)
    kind = "thread" if given.startswith("th_") else kind
    newest = _beginning(api, "th_" if kind == "thread" else "", 1)
    hint = f" (the newest is {newest[0]['runId']})" if newest else ""
    said = f"no {kind} starts with '{given}'{hint}. See: {way(f'{kind} list')}"
    raise Trouble(said, Exit.NOT_FOUND)


def _beginning(api: Api, name: str, limit: int = 3) -> list[dict[str, Any]]:
    return list(api.get("/v1/host/moot/runs", prefix=name or None, limit=limit)["runs"])


def _newest(api: Api) -> str:
    """Of the runs somebody started; the children of runs are not meant."""
    cursor = None
    while True:
        page = api.get("/v1/host/moot/runs", limit=50, cursor=cursor)
        for row in page["runs"]:
            if "parentRunId" not in row:
                return str(row["runId"])
        cursor = page.get("nextCursor")
        if cursor is None:
            raise Trouble(f"there is no run yet. Start one with: {way('run FLOW')}", Exit.NOT_FOUND)


def in_list(api: Api, row: dict[str, Any]) -> tuple[str, str | None]:
    """A run's status in a list, and what it is about. Only the run itself, not its row, knows of
    a pause that waits for nodes at work; only its conversation, whether that goes on by itself."""
    if row["workflowId"] == THREAD:
        thread = thread_of(api, row["runId"]) or {"open": False, "title": None}
        word = stands(api, thread) if row["status"] in FOR_A_PERSON else None
        return word or str(row["status"]), thread["title"]
    if row["status"] != "running":
        return str(row["status"]), None
    return status_of(api.get(path_of("v1", "runs", row["runId"]))), None


def why_cancelled(api: Api, run: dict[str, Any]) -> str | None:
    """The reason that was given; it stands in the log only, at its end."""
    if run["status"] != "cancelled":
        return None
    after = max(-1, run["metrics"]["eventCount"] - 10)
    path = path_of("v1", "runs", run["runId"], "events", "poll")
    events = api.get(path, lastSequence=after, timeout=0)["events"]
    ends = [event["payload"] for event in events if event["type"] == "run.cancelled"]
    return ends[0].get("reason") if ends else None


def show_run(
    run: dict[str, Any], reason: str | None = None, status: str | None = None, begun: str = ""
) -> None:
    run_id, flow = output.line(run["runId"]), output.line(run["workflowId"])
    click.echo(f"{click.style(run_id, bold=True)} {flow}")
    if begun:
        click.echo(output.line(begun))
    click.echo(last_line(run, status))
    if reason:
        click.echo(f"{'reason':<10}{output.brief(reason, 2000)}")
    for name in ("parentRunId", "tags", "inputs", "outputs", "error"):
        if run.get(name):
            click.echo(f"{name:<10}{output.brief(run[name], 2000)}")
    if cost := cost_of(run["metrics"]):
        click.echo(f"{'models':<10}{cost}")
    if run.get("variables"):
        click.echo(f"{'variables':<10}{output.brief(run['variables'])}")
    rows = (
        [name, state["status"], state["attempt"], _about(state)]
        for name, state in run.get("nodeStates", {}).items()
    )
    output.table(("NODE", "STATUS", "ATTEMPT", "ABOUT"), rows, empty="No node has started.")


def cost_of(metrics: dict[str, Any]) -> str:
    """``3 calls · 1 200 tokens in, 300 out · 0.0123 USD``"""
    if not metrics.get("modelCalls"):
        return ""
    tokens = metrics["openwopCost"]["tokens"]
    grouped, calls = quantities.grouped, quantities.counted(metrics["modelCalls"], "call")
    said = f"{calls} · {grouped(tokens['input'])} tokens in, {grouped(tokens['output'])} out"
    if "cost" not in metrics:
        return said
    return f"{said} · {metrics['cost']:g} {output.line(metrics['currency'])}"


def _about(state: dict[str, Any]) -> str:
    if state.get("error"):
        return f"{state['error'].get('code')}: {state['error'].get('message')}"
    if state["status"] in AT_WORK:
        if state.get("childRunId"):
            return f"waits for {state['childRunId']}"
        if state.get("dueAt"):
            return f"due {state['dueAt']}"
    return output.brief(state["outputs"], 100) if state.get("outputs") else state.get("reason", "")


def show_events(api: Api, client: Client, run_id: str, after: int, as_json: bool) -> None:
    """What is in the log now."""
    follower = Follower(api, client, run_id, as_json)
    path = path_of("v1", "runs", run_id, "events", "poll")
    while True:
        page = api.get(path, lastSequence=after, timeout=0)
        for event in page["events"]:
            follower.show(event)
            after = event["sequence"]
        if not page["events"] or page["isComplete"]:
            return
