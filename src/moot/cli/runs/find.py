"""Find a run by the id, prefix or @last that people type, and print it."""

import click
from msgspec import to_builtins

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
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.events import read_event
from moot.cli.shared.logs import read_page
from moot.client.operations import runs
from moot.core.payloads.runs import RunCancelled
from moot.core.text.quantities import format_count
from moot.wire.runs import NodeView, RunMetrics, RunRow, Snapshot

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
    run_ids = [row.run_id for name in names for row in _runs_with_prefix(api, name)]
    if len(run_ids) == 1:
        return run_ids[0]
    if run_ids:
        several = f"several {kind}s start with '{text}': {', '.join(run_ids)}…"
        raise CommandError(several, ExitCode.USAGE)
    kind = "thread" if text.startswith("th_") else kind
    newest = _runs_with_prefix(api, "th_" if kind == "thread" else "", 1)
    hint = f" (the newest is {newest[0].run_id})" if newest else ""
    message = f"no {kind} starts with '{text}'{hint}. See: {command_hint(f'{kind} list')}"
    raise CommandError(message, ExitCode.NOT_FOUND)


def _runs_with_prefix(api: Api, name: str, limit: int = 3) -> list[RunRow]:
    return api.send(runs.list_runs(prefix=name or None, limit=limit)).runs


def _newest_run(api: Api) -> str:
    """Return the newest run that is not the child of another."""
    cursor = None
    while True:
        page = api.send(runs.list_runs(cursor=cursor))
        for row in page.runs:
            if row.parent_run_id is None:
                return row.run_id
        cursor = page.next_cursor
        if cursor is None:
            message = f"there is no run yet. Start one with: {command_hint('run FLOW')}"
            raise CommandError(message, ExitCode.NOT_FOUND)


def status_and_title(api: Api, row: RunRow) -> tuple[str, str | None]:
    """Return a run's status in a list, and its title.

    The row does not know about a pause that waits for nodes at work, or about a conversation that
    continues by itself; the run and the thread do.
    """
    if row.workflow_id == THREAD:
        thread = find_run_thread(api, row.run_id)
        status = conversation_status(api, thread) if row.status in WAITING_STATUSES else None
        return status or row.status, thread.title if thread else None
    if row.status != "running":
        return row.status, None
    return run_status(api.send(runs.get_run(row.run_id))), None


def cancel_reason(api: Api, run: Snapshot) -> str | None:
    """Return the reason for a cancellation, which only the end of the log has."""
    if run.status != "cancelled":
        return None
    events = read_page(api, run.run_id, max(-1, run.metrics.event_count - 10)).events
    ends = [event.payload for event in map(read_event, events)]
    return next((end.reason for end in ends if isinstance(end, RunCancelled)), None)


def print_run(
    run: Snapshot, reason: str | None = None, status: str | None = None, begun: str = ""
) -> None:
    run_id, flow = output.safe_line(run.run_id), output.safe_line(run.workflow_id)
    click.echo(f"{click.style(run_id, bold=True)} {flow}")
    if begun:
        click.echo(output.safe_line(begun))
    click.echo(status_line(run, status))
    if reason:
        click.echo(f"{'reason':<10}{output.shorten(reason, 2000)}")
    for name, value in (
        ("parentRunId", run.parent_run_id),
        ("tags", run.tags),
        ("inputs", run.inputs),
        ("outputs", run.outputs),
        ("error", to_builtins(run.error)),
    ):
        if value:
            click.echo(f"{name:<10}{output.shorten(value, 2000)}")
    if cost := format_cost(run.metrics):
        click.echo(f"{'models':<10}{cost}")
    if run.variables:
        click.echo(f"{'variables':<10}{output.shorten(run.variables)}")
    rows = (
        [name, state.status, state.attempt, _node_about(state)]
        for name, state in run.node_states.items()
    )
    output.print_table(("NODE", "STATUS", "ATTEMPT", "ABOUT"), rows, empty="No node has started.")


def format_cost(metrics: RunMetrics) -> str:
    """Return ``3 calls · 1 200 tokens in, 300 out · 0.0123 USD``."""
    if not metrics.model_calls or metrics.openwop_cost is None:
        return ""
    tokens = metrics.openwop_cost.tokens
    group, calls = quantities.group_digits, format_count(metrics.model_calls, "call")
    text = f"{calls} · {group(tokens.input)} tokens in, {group(tokens.output)} out"
    if metrics.cost is None:
        return text
    return f"{text} · {metrics.cost:g} {output.safe_line(metrics.currency)}"


def _node_about(state: NodeView) -> str:
    if state.error:
        return f"{state.error.get('code')}: {state.error.get('message')}"
    if state.status in ACTIVE_NODE_STATUSES:
        if state.child_run_id:
            return f"waits for {state.child_run_id}"
        if state.due_at:
            return f"due {state.due_at}"
    return output.shorten(state.outputs, 100) if state.outputs else state.reason or ""


def print_events(api: Api, run_id: str, after: int, as_json: bool) -> None:
    """Print the events that are in the log now."""
    follower = Follower(api, run_id, as_json)
    while True:
        page = read_page(api, run_id, after)
        for event in map(read_event, page.events):
            follower.show(event)
            after = event.sequence
        if not page.events or page.is_complete:
            return
