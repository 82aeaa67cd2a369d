"""Runs: handles of single runs, and the resource of all runs."""

import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, TypeVar, Unpack

from moot.client.errors import TimedOut
from moot.client.http.async_sender import AsyncSender
from moot.client.http.frames import Event
from moot.client.http.methods import Handle, Resource, S, client_method, handle_method
from moot.client.http.operation import PreparedCall
from moot.client.http.sender import EndCheck, Sender
from moot.client.operations import runs
from moot.client.operations.runs import Edit, Options, RunListFilter, StreamMode
from moot.wire.interrupts import Question
from moot.wire.replay import ForkedRun
from moot.wire.runs import RunEventPage, RunMetrics, RunOwner, RunRow, Snapshot

#: seconds that ``wait`` waits by default
DEFAULT_WAIT_S = 600.0
LONGEST_POLL_S = 30


class WaitDeadline:
    """The deadline of a wait for a run or a thread."""

    def __init__(self, timeout: float) -> None:
        self._until, self._timeout = time.monotonic() + timeout, timeout

    def poll(self, run: Snapshot, state: str, more: str = "") -> PreparedCall[RunEventPage]:
        """Return the call that waits for more events. Raise TimedOut after the deadline."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimedOut(f"{state} after {self._timeout:g} s{more}.")
        seconds = min(LONGEST_POLL_S, math.ceil(left))
        return runs.poll_events(run.run_id, after=run.metrics.event_count - 1, wait=seconds)

    def poll_run(self, run: Snapshot, to_the_end: bool) -> PreparedCall[RunEventPage] | None:
        """Return None for a run that has ended or, unless ``to_the_end``, needs an answer."""
        if run.ended or (run.waiting and not to_the_end):
            return None
        return self.poll(run, f"{run.run_id} is {run.status}", "; it goes on")


class RunHandle(Handle[S]):
    """The last known snapshot of a run; ``refresh`` and ``wait`` update it."""

    def __init__(self, sender: S, snapshot: Snapshot) -> None:
        super().__init__(sender)
        self.snapshot = snapshot

    cancel = handle_method(runs.cancel_run)
    pause = handle_method(runs.pause_run)
    resume = handle_method(runs.resume_run)
    diff = handle_method(runs.diff_runs)
    verify = handle_method(runs.verify_run)
    artifact = handle_method(runs.get_artifact)
    debug_bundle = handle_method(runs.get_debug_bundle)
    turn = handle_method(runs.get_supervisor_turn)
    ancestry = handle_method(runs.get_ancestry)
    resolve = handle_method(runs.resolve_question)
    approve = handle_method(runs.approve_question)
    reject = handle_method(runs.reject_question)
    answer = handle_method(runs.answer_question)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.status}>"

    @property
    def id(self) -> str:
        return self.snapshot.run_id

    @property
    def status(self) -> str:
        return self.snapshot.status

    @property
    def ended(self) -> bool:
        return self.snapshot.ended

    @property
    def waiting(self) -> bool:
        return self.snapshot.waiting

    @property
    def outputs(self) -> Any:
        return self.snapshot.outputs

    @property
    def error(self) -> Any:
        return self.snapshot.error


class Run(RunHandle[Sender]):
    """One run. ``status`` and ``outputs`` are those of the last refresh."""

    def refresh(self) -> "Run":
        self.snapshot = self.sender.send(runs.get_run(self.id))
        return self

    def wait(self, timeout: float = DEFAULT_WAIT_S, *, to_the_end: bool = False) -> "Run":
        """Wait until the run has ended or, unless ``to_the_end``, needs an answer."""
        deadline = WaitDeadline(timeout)
        while poll := deadline.poll_run(self.refresh().snapshot, to_the_end):
            self.sender.send(poll)
        return self

    def events(
        self, after: int = -1, *, mode: StreamMode = "debug", timeout: float | None = None
    ) -> Iterator[Event]:
        """Yield every event after ``after`` once, as it happens, until the run has ended."""
        for frame in self.sender.follow(
            runs.stream_run(self.id, mode), end_check_for(self.id), after, timeout
        ):
            if isinstance(frame, Event):
                yield frame

    def questions(self) -> list[Question]:
        """Return the open questions of the run."""
        return self.sender.send(runs.list_questions(self.id)).open

    def children(self) -> list["Run"]:
        rows = self.refresh().snapshot.child_runs or []
        return [Run(self.sender, self.sender.send(runs.get_run(row.run_id))) for row in rows]

    def fork(self, at: int, edit: Edit | None = None, *, note: str | None = None) -> "Run":
        """Fork the run before event ``at``, which ``edit`` may change."""
        forked = self.sender.send(runs.fork_run(self.id, at, edit, note=note))
        return _handle_of_fork(Run, self, forked)

    def replay(self, from_seq: int = 0) -> "Run":
        """Replay the run from its log. The host calls no model, tool or peer."""
        forked = self.sender.send(runs.replay_run(self.id, from_seq=from_seq))
        return _handle_of_fork(Run, self, forked)


class AsyncRun(RunHandle[AsyncSender]):
    """One run, for asyncio."""

    async def refresh(self) -> "AsyncRun":
        self.snapshot = await self.sender.send(runs.get_run(self.id))
        return self

    async def wait(
        self, timeout: float = DEFAULT_WAIT_S, *, to_the_end: bool = False
    ) -> "AsyncRun":
        """Wait until the run has ended or, unless ``to_the_end``, needs an answer."""
        deadline = WaitDeadline(timeout)
        while poll := deadline.poll_run((await self.refresh()).snapshot, to_the_end):
            await self.sender.send(poll)
        return self

    async def events(
        self, after: int = -1, *, mode: StreamMode = "debug", timeout: float | None = None
    ) -> AsyncIterator[Event]:
        """Yield every event after ``after`` once, as it happens, until the run has ended."""
        async for frame in self.sender.follow(
            runs.stream_run(self.id, mode), end_check_for(self.id), after, timeout
        ):
            if isinstance(frame, Event):
                yield frame

    async def questions(self) -> list[Question]:
        """Return the open questions of the run."""
        return (await self.sender.send(runs.list_questions(self.id))).open

    async def children(self) -> list["AsyncRun"]:
        rows = (await self.refresh()).snapshot.child_runs or []
        snapshots = [await self.sender.send(runs.get_run(row.run_id)) for row in rows]
        return [AsyncRun(self.sender, snapshot) for snapshot in snapshots]

    async def fork(
        self, at: int, edit: Edit | None = None, *, note: str | None = None
    ) -> "AsyncRun":
        """Fork the run before event ``at``, which ``edit`` may change."""
        forked = await self.sender.send(runs.fork_run(self.id, at, edit, note=note))
        return _handle_of_fork(AsyncRun, self, forked)

    async def replay(self, from_seq: int = 0) -> "AsyncRun":
        """Replay the run from its log. The host calls no model, tool or peer."""
        forked = await self.sender.send(runs.replay_run(self.id, from_seq=from_seq))
        return _handle_of_fork(AsyncRun, self, forked)


def end_check_for(run_id: str) -> EndCheck:
    return lambda last: runs.poll_events(run_id, after=last)


R = TypeVar("R", Run, AsyncRun)


def _handle_of_fork(kind: type[R], source: Any, forked: ForkedRun) -> R:
    snapshot = _unread_snapshot(forked.run_id, forked.status, source.snapshot.workflow_id)
    return kind(source.sender, snapshot)


def _unread_snapshot(run_id: str, status: str = "", workflow: str = "") -> Snapshot:
    """Return the snapshot of a run that the client has not read yet."""
    return Snapshot(
        run_id=run_id,
        workflow_id=workflow,
        status=status,
        owner=RunOwner(tenant="", principal=""),
        started_at="",
        inputs={},
        variables={},
        node_states={},
        engine_version="",
        event_log_schema_version=0,
        metrics=RunMetrics(event_count=0, node_executions=0),
    )


class RunOperations(Resource[S]):
    """The operations on all runs."""

    page = client_method(runs.list_runs)
    cancel = client_method(runs.cancel_run)
    cancel_all = client_method(runs.cancel_runs)
    pause = client_method(runs.pause_run)
    resume = client_method(runs.resume_run)
    diff = client_method(runs.diff_runs)
    verify = client_method(runs.verify_run)
    artifact = client_method(runs.get_artifact)
    debug_bundle = client_method(runs.get_debug_bundle)
    turn = client_method(runs.get_supervisor_turn)
    ancestry = client_method(runs.get_ancestry)
    poll = client_method(runs.poll_events)
    branch = client_method(runs.branch_run)
    fork = client_method(runs.fork_run)
    replay = client_method(runs.replay_run)


class RunsResource(RunOperations[Sender]):
    """All runs."""

    def start(
        self,
        workflow: str,
        inputs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        /,
        **named: Any,
    ) -> Run:
        """Start a run. Pass inputs as one mapping, by name, or both."""
        started = self.sender.send(runs.start_run(workflow, inputs, options, **named))
        return Run(self.sender, _unread_snapshot(started.run_id, started.status, workflow))

    def ask(
        self,
        agent: str,
        prompt: str | None = None,
        options: Options | None = None,
        /,
        *,
        task: Mapping[str, Any] | None = None,
    ) -> Run:
        """Start a run that asks an agent; its answer is the variable ``text``."""
        started = self.sender.send(runs.ask_agent(agent, prompt, options, task=task))
        return Run(self.sender, _unread_snapshot(started.run_id, started.status))

    def get(self, run_id: str) -> Run:
        return Run(self.sender, self.sender.send(runs.get_run(run_id)))

    def list(self, *, limit: int = 1000, **where: Unpack[RunListFilter]) -> Iterator[RunRow]:
        """Yield at most ``limit`` runs, newest first; ``where`` has the filters of ``page``."""
        cursor: str | None = None
        while limit > 0:
            page = self.sender.send(runs.list_runs(limit=min(limit, 500), cursor=cursor, **where))
            yield from page.runs
            limit, cursor = limit - len(page.runs), page.next_cursor
            if cursor is None:
                return

    def events(
        self,
        run_id: str,
        after: int = -1,
        *,
        mode: StreamMode = "debug",
        timeout: float | None = None,
    ) -> Iterator[Event]:
        """Yield the events of a run, like ``Run.events``."""
        run = Run(self.sender, _unread_snapshot(run_id))
        return run.events(after, mode=mode, timeout=timeout)


class AsyncRunsResource(RunOperations[AsyncSender]):
    """All runs, for asyncio."""

    async def start(
        self,
        workflow: str,
        inputs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        /,
        **named: Any,
    ) -> AsyncRun:
        """Start a run. Pass inputs as one mapping, by name, or both."""
        started = await self.sender.send(runs.start_run(workflow, inputs, options, **named))
        return AsyncRun(self.sender, _unread_snapshot(started.run_id, started.status, workflow))

    async def ask(
        self,
        agent: str,
        prompt: str | None = None,
        options: Options | None = None,
        /,
        *,
        task: Mapping[str, Any] | None = None,
    ) -> AsyncRun:
        """Start a run that asks an agent; its answer is the variable ``text``."""
        started = await self.sender.send(runs.ask_agent(agent, prompt, options, task=task))
        return AsyncRun(self.sender, _unread_snapshot(started.run_id, started.status))

    async def get(self, run_id: str) -> AsyncRun:
        return AsyncRun(self.sender, await self.sender.send(runs.get_run(run_id)))

    async def list(
        self, *, limit: int = 1000, **where: Unpack[RunListFilter]
    ) -> AsyncIterator[RunRow]:
        """Yield at most ``limit`` runs, newest first; ``where`` has the filters of ``page``."""
        cursor: str | None = None
        while limit > 0:
            call = runs.list_runs(limit=min(limit, 500), cursor=cursor, **where)
            page = await self.sender.send(call)
            for row in page.runs:
                yield row
            limit, cursor = limit - len(page.runs), page.next_cursor
            if cursor is None:
                return

    def events(
        self,
        run_id: str,
        after: int = -1,
        *,
        mode: StreamMode = "debug",
        timeout: float | None = None,
    ) -> AsyncIterator[Event]:
        """Yield the events of a run, like ``AsyncRun.events``."""
        run = AsyncRun(self.sender, _unread_snapshot(run_id))
        return run.events(after, mode=mode, timeout=timeout)
