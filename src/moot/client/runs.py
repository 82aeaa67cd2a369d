"""Runs: started, listed, followed, answered; and one run as a thing of its own."""

import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, TypeVar, Unpack

from moot.client.errors import TimedOut
from moot.client.http.methods import AsyncOf, Of, async_its, awaits, its, waits
from moot.client.http.senders import AsyncSender, Proof, Sender
from moot.client.http.sse import Event
from moot.client.operations import runs
from moot.client.operations.runs import Edit, Mode, Options, Where
from moot.wire.runs import Forked, Question, RunRow, Snapshot

#: seconds that are waited for a run unless somebody says otherwise
USUAL_WAIT_S = 600.0
LONGEST_POLL_S = 30

S = TypeVar("S", Sender, AsyncSender)


class Patience:
    """How long a run is waited for, and what for."""

    def __init__(self, timeout: float, to_the_end: bool) -> None:
        self._until, self._to_the_end = time.monotonic() + timeout, to_the_end
        self._timeout = timeout

    def reached(self, run: Snapshot) -> bool:
        return run.ended or (run.waiting and not self._to_the_end)

    def seconds(self, run: Snapshot) -> int:
        """For the next look. Raises TimedOut."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimedOut(f"{run.run_id} is {run.status} after {self._timeout:g} s; it goes on.")
        return min(LONGEST_POLL_S, math.ceil(left))


class RunState:
    """What was last learnt of a run; ``refresh`` and ``wait`` learn more."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

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


class Run(RunState):
    """One run. ``status`` and ``outputs`` are those of the last look."""

    def __init__(self, sender: Sender, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.sender = sender

    cancel = its(runs.cancel)
    pause = its(runs.pause)
    resume = its(runs.resume)
    diff = its(runs.diff)
    verify = its(runs.verify)
    artifact = its(runs.artifact)
    debug_bundle = its(runs.debug_bundle)
    turn = its(runs.turn)
    ancestry = its(runs.ancestry)
    resolve = its(runs.resolve_only)
    approve = its(runs.approve)
    reject = its(runs.reject)
    answer = its(runs.answer)

    def refresh(self) -> "Run":
        self.snapshot = self.sender.send(runs.get(self.id))
        return self

    def wait(self, timeout: float = USUAL_WAIT_S, *, to_the_end: bool = False) -> "Run":
        """Until the run has ended or, unless ``to_the_end``, waits for somebody."""
        patience = Patience(timeout, to_the_end)
        while not patience.reached(self.refresh().snapshot):
            last, seconds = self.snapshot.metrics.event_count - 1, patience.seconds(self.snapshot)
            self.sender.send(runs.poll(self.id, after=last, wait=seconds))
        return self

    def events(
        self, after: int = -1, *, mode: Mode = "debug", timeout: float | None = None
    ) -> Iterator[Event]:
        """Every event after ``after`` once, as it happens, until the run has ended."""
        for read in self.sender.follow(
            runs.stream(self.id, mode), proof_of(self.id), after, timeout
        ):
            if isinstance(read, Event):
                yield read

    def questions(self) -> list[Question]:
        """What it waits for."""
        return self.sender.send(runs.questions(self.id)).open

    def children(self) -> list["Run"]:
        rows = self.refresh().snapshot.child_runs
        return [Run(self.sender, self.sender.send(runs.get(row.run_id))) for row in rows]

    def fork(self, at: int, edit: Edit | None = None, *, note: str | None = None) -> "Run":
        """A branch from before event ``at``, which may be said otherwise in it."""
        return _forked(Run, self, self.sender.send(runs.fork(self.id, at, edit, note=note)))

    def replay(self, from_seq: int = 0) -> "Run":
        """The same run said again from its record; nothing is called."""
        return _forked(Run, self, self.sender.send(runs.replay(self.id, from_seq=from_seq)))


class AsyncRun(RunState):
    """One run, for asyncio."""

    def __init__(self, sender: AsyncSender, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.sender = sender

    cancel = async_its(runs.cancel)
    pause = async_its(runs.pause)
    resume = async_its(runs.resume)
    diff = async_its(runs.diff)
    verify = async_its(runs.verify)
    artifact = async_its(runs.artifact)
    debug_bundle = async_its(runs.debug_bundle)
    turn = async_its(runs.turn)
    ancestry = async_its(runs.ancestry)
    resolve = async_its(runs.resolve_only)
    approve = async_its(runs.approve)
    reject = async_its(runs.reject)
    answer = async_its(runs.answer)

    async def refresh(self) -> "AsyncRun":
        self.snapshot = await self.sender.send(runs.get(self.id))
        return self

    async def wait(self, timeout: float = USUAL_WAIT_S, *, to_the_end: bool = False) -> "AsyncRun":
        """Until the run has ended or, unless ``to_the_end``, waits for somebody."""
        patience = Patience(timeout, to_the_end)
        while not patience.reached((await self.refresh()).snapshot):
            last, seconds = self.snapshot.metrics.event_count - 1, patience.seconds(self.snapshot)
            await self.sender.send(runs.poll(self.id, after=last, wait=seconds))
        return self

    async def events(
        self, after: int = -1, *, mode: Mode = "debug", timeout: float | None = None
    ) -> AsyncIterator[Event]:
        """Every event after ``after`` once, as it happens, until the run has ended."""
        async for read in self.sender.follow(
            runs.stream(self.id, mode), proof_of(self.id), after, timeout
        ):
            if isinstance(read, Event):
                yield read

    async def questions(self) -> list[Question]:
        """What it waits for."""
        return (await self.sender.send(runs.questions(self.id))).open

    async def children(self) -> list["AsyncRun"]:
        rows = (await self.refresh()).snapshot.child_runs
        found = [await self.sender.send(runs.get(row.run_id)) for row in rows]
        return [AsyncRun(self.sender, snapshot) for snapshot in found]

    async def fork(
        self, at: int, edit: Edit | None = None, *, note: str | None = None
    ) -> "AsyncRun":
        """A branch from before event ``at``, which may be said otherwise in it."""
        made = await self.sender.send(runs.fork(self.id, at, edit, note=note))
        return _forked(AsyncRun, self, made)

    async def replay(self, from_seq: int = 0) -> "AsyncRun":
        """The same run said again from its record; nothing is called."""
        made = await self.sender.send(runs.replay(self.id, from_seq=from_seq))
        return _forked(AsyncRun, self, made)


def proof_of(run_id: str) -> Proof:
    return lambda last: runs.poll(run_id, after=last)


R = TypeVar("R", Run, AsyncRun)


def _forked(kind: type[R], source: Any, made: Forked) -> R:
    known = Snapshot(
        run_id=made.run_id, status=made.status, workflow_id=source.snapshot.workflow_id
    )
    return kind(source.sender, known)


def _started(made: runs.Created, workflow: str) -> Snapshot:
    return Snapshot(run_id=made.run_id, status=made.status, workflow_id=workflow)


class Runs(Of):
    """All runs."""

    page = waits(runs.page)
    cancel = waits(runs.cancel)
    cancel_all = waits(runs.cancel_all)
    pause = waits(runs.pause)
    resume = waits(runs.resume)
    diff = waits(runs.diff)
    verify = waits(runs.verify)
    artifact = waits(runs.artifact)
    debug_bundle = waits(runs.debug_bundle)
    turn = waits(runs.turn)
    ancestry = waits(runs.ancestry)
    poll = waits(runs.poll)
    branch = waits(runs.branch)
    fork = waits(runs.fork)
    replay = waits(runs.replay)

    def start(
        self,
        workflow: str,
        inputs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        /,
        **named: Any,
    ) -> Run:
        """Start a run. Inputs are given as one mapping, by name, or both."""
        made = self.sender.send(runs.start(workflow, inputs, options, **named))
        return Run(self.sender, _started(made, workflow))

    def ask(
        self,
        agent: str,
        prompt: str | None = None,
        options: Options | None = None,
        /,
        *,
        task: Mapping[str, Any] | None = None,
    ) -> Run:
        """Start a run that is a question to an agent; its answer is the variable ``text``."""
        made = self.sender.send(runs.ask(agent, prompt, options, task=task))
        return Run(self.sender, _started(made, ""))

    def get(self, run_id: str) -> Run:
        return Run(self.sender, self.sender.send(runs.get(run_id)))

    def list(self, *, limit: int = 1000, **where: Unpack[Where]) -> Iterator[RunRow]:
        """At most so many, newest first, over all pages; ``where`` is what ``page`` takes."""
        cursor: str | None = None
        while limit > 0:
            found = self.sender.send(runs.page(limit=min(limit, 500), cursor=cursor, **where))
            yield from found.runs
            limit, cursor = limit - len(found.runs), found.next_cursor
            if cursor is None:
                return

    def events(
        self, run_id: str, after: int = -1, *, mode: Mode = "debug", timeout: float | None = None
    ) -> Iterator[Event]:
        """As ``Run.events``."""
        run = Run(self.sender, Snapshot(run_id=run_id, status=""))
        return run.events(after, mode=mode, timeout=timeout)


class AsyncRuns(AsyncOf):
    """All runs, for asyncio."""

    page = awaits(runs.page)
    cancel = awaits(runs.cancel)
    cancel_all = awaits(runs.cancel_all)
    pause = awaits(runs.pause)
    resume = awaits(runs.resume)
    diff = awaits(runs.diff)
    verify = awaits(runs.verify)
    artifact = awaits(runs.artifact)
    debug_bundle = awaits(runs.debug_bundle)
    turn = awaits(runs.turn)
    ancestry = awaits(runs.ancestry)
    poll = awaits(runs.poll)
    branch = awaits(runs.branch)
    fork = awaits(runs.fork)
    replay = awaits(runs.replay)

    async def start(
        self,
        workflow: str,
        inputs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        /,
        **named: Any,
    ) -> AsyncRun:
        """Start a run. Inputs are given as one mapping, by name, or both."""
        made = await self.sender.send(runs.start(workflow, inputs, options, **named))
        return AsyncRun(self.sender, _started(made, workflow))

    async def ask(
        self,
        agent: str,
        prompt: str | None = None,
        options: Options | None = None,
        /,
        *,
        task: Mapping[str, Any] | None = None,
    ) -> AsyncRun:
        """Start a run that is a question to an agent; its answer is the variable ``text``."""
        made = await self.sender.send(runs.ask(agent, prompt, options, task=task))
        return AsyncRun(self.sender, _started(made, ""))

    async def get(self, run_id: str) -> AsyncRun:
        return AsyncRun(self.sender, await self.sender.send(runs.get(run_id)))

    async def list(self, *, limit: int = 1000, **where: Unpack[Where]) -> AsyncIterator[RunRow]:
        """At most so many, newest first, over all pages; ``where`` is what ``page`` takes."""
        cursor: str | None = None
        while limit > 0:
            asked = runs.page(limit=min(limit, 500), cursor=cursor, **where)
            found = await self.sender.send(asked)
            for row in found.runs:
                yield row
            limit, cursor = limit - len(found.runs), found.next_cursor
            if cursor is None:
                return

    def events(
        self, run_id: str, after: int = -1, *, mode: Mode = "debug", timeout: float | None = None
    ) -> AsyncIterator[Event]:
        """As ``AsyncRun.events``."""
        run = AsyncRun(self.sender, Snapshot(run_id=run_id, status=""))
        return run.events(after, mode=mode, timeout=timeout)
