"""Following a run: its events as they happen, as lines for people or as JSON lines."""

import json
import math
import time
from collections.abc import Iterator
from typing import Any

import click

from moot.cli.runs.event_lines import line_of
from moot.cli.shared import output
from moot.cli.shared.client import SECONDS, Answer, Api, Client, Unreachable, path_of, refusal
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble

TERMINAL = {"run.completed": Exit.OK, "run.failed": Exit.FAILED, "run.cancelled": Exit.FAILED}
#: statuses in which only a person can help; the run's stream stays quiet then
FOR_A_PERSON = ("waiting-approval", "waiting-input")
#: how long a server that went away may take to come back
PATIENCE = 15.0
RETRY = 0.2
#: events with which the last node at work may begin to wait, or end beside one that waits
STANDSTILLS = (
    "node.suspended", "node.dispatched", "node.completed", "node.failed", "node.skipped",
    "node.cancelled",
)  # fmt: skip
#: events after which a council may be at rest, or wait for a word on a tool
PAUSES = ("moot.participation.decided", "moot.participation.stopped", "moot.tool.asked")
#: the workflow of councils and threads, and how one is called that goes on by itself
THREAD, TALKING = "moot.thread", "talking"
#: and how a thread is that is open to whoever has something to say
LIVE = "live"
#: statuses of nodes that have not ended
AT_WORK = ("running", "retrying", "interrupted")


class TimedOut(Trouble):
    def __init__(self, run_id: str, seconds: float) -> None:
        super().__init__(
            f"the run has not ended after {seconds:g} s; it goes on."
            f" Follow it with: {way(f'run tail {run_id}')}",
            Exit.TIMED_OUT,
        )


def frames(client: Client, run_id: str, after: int, deadline: float) -> Iterator[Any]:
    """The run's events from a position to its end, also over a restart of the server.

    None stands for a moment in which nothing happened.
    """
    lost_at: float | None = None
    while True:
        try:
            for event in _stream(client, run_id, after, deadline):
                lost_at = None
                after = event["sequence"] if event is not None else after
                yield event
        except Unreachable:
            now = time.monotonic()
            lost_at = lost_at or now
            if now - lost_at > PATIENCE and now < deadline:
                raise
        yield None
        time.sleep(RETRY)


def _stream(client: Client, run_id: str, after: int, deadline: float) -> Iterator[Any]:
    path = path_of("v1", "runs", run_id, "events") + "?streamMode=debug"
    headers = {"Accept": "text/event-stream"}
    if after >= 0:
        headers["Last-Event-ID"] = str(after)
    patience = max(0.001, min(SECONDS, deadline - time.monotonic()))
    with client.opened("GET", path, None, headers, patience) as answer:
        if answer.status != 200:
            refused = Answer(answer.status, dict(answer.headers), answer.read())
            raise refusal(refused, client.place)
        for line in answer:
            if line.startswith(b"data:"):
                yield json.loads(line[5:])
            elif line.startswith(b":"):
                yield None


class Standstill:
    """Whether a run that is followed waits for a person, and all of its events have been seen.

    The server is asked only when an event may have brought it about, or when nothing comes.
    """

    def __init__(self, api: Api, run_id: str) -> None:
        self._api, self._run_id = api, run_id
        #: nodes that wait, as far as the events tell
        self._waiting: set[str] = set()
        self._suspected = False
        #: sequences of the newest event that came, and of the newest the server spoke of
        self.seen = self._known = -1

    def at(self, event: dict[str, Any] | None) -> bool:
        if event is not None:
            self._note(event)
            if not self._suspected or self.seen < self._known:
                return False
        try:
            run = self._api.get(path_of("v1", "runs", self._run_id))
        except Unreachable:
            return False
        self._known = run["metrics"]["eventCount"] - 1
        waits = run["status"] in FOR_A_PERSON
        self._suspected = waits and not talking(self._api, self._run_id)
        return self._suspected and self.seen >= self._known

    def _note(self, event: dict[str, Any]) -> None:
        self.seen, kind, node = event["sequence"], event["type"], str(event.get("nodeId"))
        child_waits = event["payload"].get("childStatus") in FOR_A_PERSON
        if kind == "node.suspended" or (kind == "node.dispatched" and child_waits):
            self._waiting.add(node)
        elif kind in STANDSTILLS or kind == "node.resumed":
            self._waiting.discard(node)
        may_wait = kind in STANDSTILLS or kind in PAUSES
        self._suspected = self._suspected or (may_wait and bool(self._waiting))


class Follower:
    """One run on the screen. ``follow`` returns the exit code its end stands for."""

    def __init__(self, api: Api, client: Client, run_id: str, as_json: bool) -> None:
        self._api, self._client, self.run_id, self._as_json = api, client, run_id, as_json
        self._started: dict[str, str] = {}
        self._ended: set[str] = set()
        self._nodes = 0
        self._standstill = Standstill(api, run_id)

    def follow(
        self, after: int = -1, timeout: float | None = None, quiet: bool = False, stay: bool = False
    ) -> Exit:
        """Until the run ends or, unless told to stay, until only a person can help it on."""
        seconds = math.inf if timeout is None else timeout
        deadline = time.monotonic() + seconds
        self._standstill.seen = after
        if not stay and after >= 0 and self._standstill.at(None):
            return Exit.WAITING
        for event in frames(self._client, self.run_id, after, deadline):
            if event is not None and not quiet:
                self.show(event)
            if event is not None and event["type"] in TERMINAL:
                return TERMINAL[event["type"]]
            if time.monotonic() >= deadline:
                raise TimedOut(self.run_id, seconds)
            if not stay and self._standstill.at(event):
                return Exit.WAITING
        raise AssertionError  # frames go on until somebody stops asking

    def show(self, event: dict[str, Any]) -> None:
        if self._as_json:
            output.json_line(event)
            return
        if event["type"] == "run.started":
            self._nodes = self._count(event)
        said = line_of(event, self._started)
        if said is None:
            return
        node = output.line(event.get("nodeId") or "")
        number = f"#{event['sequence']}"
        when = click.style(f"{output.clock(event['timestamp'])}  {number:<4}", dim=True)
        click.echo(f"  {when}  {node:<16}  {said}{self._progress(event)}")

    def _progress(self, event: dict[str, Any]) -> str:
        if event["type"] not in ("node.completed", "node.failed", "node.skipped"):
            return ""
        self._ended.add(str(event.get("nodeId")))
        if not self._nodes:
            return ""
        return click.style(f"  [{len(self._ended)} of {self._nodes}]", dim=True)

    def _count(self, started: dict[str, Any]) -> int:
        workflow = str(started["payload"].get("workflowId", ""))
        try:
            return len(self._api.get(path_of("v1", "workflows", workflow))["nodes"])
        except Trouble:
            return 0


def talking(api: Api, run_id: str) -> bool:
    """Whether a council goes on by itself, though the protocol's word for its status is that of a
    run that waits: one of its members has the floor, or is given it next, and asks nobody."""
    thread = thread_of(api, run_id)
    return thread is not None and goes_on(api, thread)


def goes_on(api: Api, thread: dict[str, Any]) -> bool:
    floor = thread.get("floor")
    if api.offline or not floor or not thread["open"]:
        return False
    return not floor["atRest"] and not floor["asks"]


def stands(api: Api, thread: dict[str, Any] | None) -> str | None:
    """How people call it that a conversation is open; None where the run's status says it."""
    if thread is None or not thread["open"]:
        return None
    if goes_on(api, thread):
        return TALKING
    return LIVE if is_plain(thread) and thread["threadId"] == thread["runId"] else None


def is_plain(thread: dict[str, Any]) -> bool:
    """Whether nobody leads it: who is meant answers."""
    from moot.core.state.council_policy import THREADED

    return thread.get("floor", {}).get("mode") in (None, *THREADED)


def thread_of(api: Api, run_id: str) -> dict[str, Any] | None:
    """The one conversation of a run, if there is one."""
    try:
        return dict(api.get(path_of("v1", "host", "moot", "threads", run_id)))
    except Trouble:
        return None


def status_of(run: dict[str, Any]) -> str:
    """Its status, and that a pause waits for nodes at work."""
    return f"{run['status']}, pausing" if run.get("draining") else str(run["status"])


def last_line(run: dict[str, Any], status: str | None = None) -> str:
    """How the run ended, or how it stands."""
    text = output.status_mark(status or status_of(run))
    if run.get("completedAt"):
        text += f" in {output.span(output.between(run['startedAt'], run['completedAt']))}"
    states = run.get("nodeStates", {}).values()
    busy = sum(state["status"] in AT_WORK for state in states)
    nodes = f"{len(states)} node{'s' * (len(states) != 1)}" + (f", {busy} at work" if busy else "")
    return f"{text} · {nodes} · {run['metrics']['eventCount']} events"


def show_end(run: dict[str, Any], quiet: bool = False) -> None:
    """After its events all of it; quiet leaves stdout to the outputs alone."""
    click.echo(f"{run['runId']} {last_line(run)}" if quiet else last_line(run), err=quiet)
    if run.get("error"):
        said = f"{run['error']['code']}: {run['error']['message']}"
        click.echo(output.line(said, err=quiet), err=quiet)
    if run.get("outputs"):
        output.show_json(run["outputs"])
