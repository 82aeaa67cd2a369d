"""Follow a run: print its events as they happen, as lines or as JSON lines."""

import math
import time
from collections.abc import Iterator

import click

from moot.cli.runs.event_lines import EventLines
from moot.cli.shared import output
from moot.cli.shared.client import Api, ServerUnreachable
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.events import event_fields, read_event
from moot.cli.shared.streams import follow_stream
from moot.client.operations import host, runs, threads
from moot.core.events import Event
from moot.core.payloads.councils import CouncilStopped, MembersInvited, ToolAsked
from moot.core.payloads.nodes import (
    NodeCancelled,
    NodeCompleted,
    NodeDispatched,
    NodeFailed,
    NodeResumed,
    NodeSkipped,
    NodeSuspended,
)
from moot.core.payloads.runs import RunCancelled, RunCompleted, RunFailed, RunStarted
from moot.wire.runs import Snapshot
from moot.wire.threads import ThreadView

TERMINAL = {
    RunCompleted.event_type: ExitCode.OK,
    RunFailed.event_type: ExitCode.FAILED,
    RunCancelled.event_type: ExitCode.FAILED,
}
#: statuses in which only a person can continue a run; its stream stays quiet then
WAITING_STATUSES = ("waiting-approval", "waiting-input")
#: seconds that a lost server may take to come back
PATIENCE_SECONDS = 15.0
#: events after which no node may be at work any more
NODE_STOPS = (
    NodeSuspended, NodeDispatched, NodeCompleted, NodeFailed, NodeSkipped, NodeCancelled
)  # fmt: skip
#: events after which a council may be at rest, or wait for approval of a tool
COUNCIL_STOPS = (MembersInvited, CouncilStopped, ToolAsked)
#: the workflow of councils and threads, and the status of one that continues by itself
THREAD, TALKING = "moot.thread", "talking"
#: the status of a thread in which everyone may speak
LIVE = "live"
#: statuses of nodes that have not ended
ACTIVE_NODE_STATUSES = ("running", "retrying", "interrupted")


def follow_events(api: Api, run_id: str, after: int, deadline: float) -> Iterator[Event | None]:
    """Yield the run's events after a sequence to its end, across restarts of the server.

    None means that nothing happened for a while.
    """
    call = runs.stream_run(run_id)
    for frame in follow_stream(api, call, after, PATIENCE_SECONDS, deadline):
        if frame.kind == "event":
            yield read_event(frame.data)
        elif frame.kind in ("quiet", "ended"):
            yield None


class Standstill:
    """Detects that a followed run waits for a person and all of its events have arrived.

    It asks the server only when an event may have stopped the run, or when nothing arrives.
    """

    def __init__(self, api: Api, run_id: str) -> None:
        self._api, self._run_id = api, run_id
        #: nodes that wait, according to the events
        self._waiting: set[str] = set()
        self._may_wait = False
        #: sequences of the newest event that arrived, and of the newest that the server has
        self.seen = self._newest_sequence = -1

    def at(self, event: Event | None) -> bool:
        if event is not None:
            self._take_event(event)
            if not self._may_wait or self.seen < self._newest_sequence:
                return False
        try:
            run = self._api.send(runs.get_run(self._run_id))
        except ServerUnreachable:
            return False
        self._newest_sequence = run.metrics.event_count - 1
        waits = run.status in WAITING_STATUSES
        self._may_wait = waits and not is_talking(self._api, self._run_id)
        return self._may_wait and self.seen >= self._newest_sequence

    def _take_event(self, event: Event) -> None:
        self.seen, payload, node = event.sequence, event.payload, str(event.node_id)
        if isinstance(payload, NodeSuspended) or (
            isinstance(payload, NodeDispatched) and payload.child_status in WAITING_STATUSES
        ):
            self._waiting.add(node)
        elif isinstance(payload, (*NODE_STOPS, NodeResumed)):
            self._waiting.discard(node)
        may_wait = isinstance(payload, NODE_STOPS + COUNCIL_STOPS)
        self._may_wait = self._may_wait or (may_wait and bool(self._waiting))


class Follower:
    """Prints one run. ``follow`` returns an exit code for its end."""

    def __init__(self, api: Api, run_id: str, as_json: bool) -> None:
        self._api, self.run_id, self._as_json = api, run_id, as_json
        self._lines = EventLines()
        self._ended: set[str] = set()
        self._nodes = 0
        self._standstill = Standstill(api, run_id)

    def follow(
        self, after: int = -1, timeout: float | None = None, quiet: bool = False, stay: bool = False
    ) -> ExitCode:
        """Follow until the run ends or, without ``stay``, until only a person can continue it."""
        seconds = math.inf if timeout is None else timeout
        deadline = time.monotonic() + seconds
        self._standstill.seen = after
        if not stay and after >= 0 and self._standstill.at(None):
            return ExitCode.WAITING
        for event in follow_events(self._api, self.run_id, after, deadline):
            if event is not None and not quiet:
                self.show(event)
            if event is not None and event.type in TERMINAL:
                return TERMINAL[event.type]
            if time.monotonic() >= deadline:
                hint = command_hint(f"run tail {self.run_id}")
                message = f"the run has not ended after {seconds:g} s; it goes on."
                raise CommandError(f"{message} Follow it with: {hint}", ExitCode.TIMED_OUT)
            if not stay and self._standstill.at(event):
                return ExitCode.WAITING
        raise AssertionError  # follow_events never ends by itself

    def show(self, event: Event) -> None:
        if self._as_json:
            output.print_json_line(event_fields(event))
            return
        if isinstance(event.payload, RunStarted):
            self._nodes = self._count_nodes(event.payload.workflow_id)
        line = self._lines.line(event)
        if line is None:
            return
        node = output.safe_line(event.node_id or "")
        number = f"#{event.sequence}"
        when = click.style(f"{output.clock_time(event.timestamp)}  {number:<4}", dim=True)
        click.echo(f"  {when}  {node:<16}  {line}{self._progress(event)}")

    def _progress(self, event: Event) -> str:
        if not isinstance(event.payload, NodeCompleted | NodeFailed | NodeSkipped):
            return ""
        self._ended.add(str(event.node_id))
        if not self._nodes:
            return ""
        return click.style(f"  [{len(self._ended)} of {self._nodes}]", dim=True)

    def _count_nodes(self, workflow_id: str) -> int:
        try:
            return len(self._api.send(host.get_workflow(workflow_id))["nodes"])
        except CommandError:
            return 0


def is_talking(api: Api, run_id: str) -> bool:
    """Whether a council continues by itself, though the protocol's status says that it waits.

    One of its members has the floor or gets it next, and asks no person.
    """
    thread = find_run_thread(api, run_id)
    return thread is not None and is_continuing(api, thread)


def is_continuing(api: Api, thread: ThreadView) -> bool:
    if api.offline or thread.floor is None or not thread.open:
        return False
    return not thread.floor.at_rest and not thread.floor.asks


def conversation_status(api: Api, thread: ThreadView | None) -> str | None:
    """Return the status word of an open conversation, or None where the run's status says it."""
    if thread is None or not thread.open:
        return None
    if is_continuing(api, thread):
        return TALKING
    return LIVE if is_plain_thread(thread) and thread.thread_id == thread.run_id else None


def is_plain_thread(thread: ThreadView) -> bool:
    """Whether no policy leads the conversation, so that only addressed participants answer."""
    return thread.plain


def find_run_thread(api: Api, run_id: str) -> ThreadView | None:
    """Return the one conversation of a run, or None."""
    try:
        return api.send(threads.get_thread(run_id))
    except CommandError:
        return None


def run_status(run: Snapshot) -> str:
    """Return the status, and whether a pause waits for nodes at work."""
    return f"{run.status}, pausing" if run.draining else run.status


def status_line(run: Snapshot, status: str | None = None) -> str:
    """Return how the run ended, or its state now."""
    text = output.status_mark(status or run_status(run))
    if run.completed_at:
        seconds = output.seconds_between(run.started_at, run.completed_at)
        text += f" in {output.format_span(seconds)}"
    states = run.node_states.values()
    busy = sum(state.status in ACTIVE_NODE_STATUSES for state in states)
    nodes = f"{len(states)} node{'s' * (len(states) != 1)}" + (f", {busy} at work" if busy else "")
    return f"{text} · {nodes} · {run.metrics.event_count} events"


def print_end(run: Snapshot, quiet: bool = False) -> None:
    """Print how the run ended. With ``quiet`` only its outputs go to stdout."""
    click.echo(f"{run.run_id} {status_line(run)}" if quiet else status_line(run), err=quiet)
    if run.error:
        error_text = f"{run.error.code}: {run.error.message}"
        click.echo(output.safe_line(error_text, err=quiet), err=quiet)
    if run.outputs:
        output.print_json(run.outputs)
