"""Councils and threads: convened, spoken in, steered, closed; and one thread as a thing."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Unpack

from moot.client.errors import TimedOut
from moot.client.http.methods import AsyncOf, Of, async_its, awaits, its, waits
from moot.client.http.senders import AsyncSender, Sender
from moot.client.http.sse import Event, Spoken
from moot.client.operations import runs as calls_runs
from moot.client.operations import search as calls_reading
from moot.client.operations import threads as calls
from moot.client.operations.threads import Led
from moot.client.runs import LONGEST_POLL_S, USUAL_WAIT_S, proof_of
from moot.wire.runs import Taken
from moot.wire.threads import Line, ThreadView


class Quiet:
    """How long a thread is listened to until it falls silent."""

    def __init__(self, timeout: float) -> None:
        self._until, self._timeout = time.monotonic() + timeout, timeout

    def seconds(self, view: ThreadView) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimedOut(f"{view.thread_id} still goes on after {self._timeout:g} s.")
        return max(1, min(LONGEST_POLL_S, int(left)))


class ThreadState:
    """What was last learnt of a thread."""

    def __init__(self, view: ThreadView) -> None:
        self.view = view

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {'open' if self.open else 'closed'}>"

    @property
    def id(self) -> str:
        return self.view.thread_id

    @property
    def run_id(self) -> str:
        return self.view.run_id

    @property
    def open(self) -> bool:
        return self.view.open

    @property
    def turns(self) -> int:
        return self.view.turns


class Thread(ThreadState):
    """One conversation."""

    def __init__(self, sender: Sender, view: ThreadView) -> None:
        super().__init__(view)
        self.sender = sender

    control = its(calls.control)
    mute = its(calls.mute)
    unmute = its(calls.unmute)
    pause = its(calls.pause)
    resume = its(calls.resume)
    prod = its(calls.prod)
    invite = its(calls.invite)
    uninvite = its(calls.uninvite)
    close = its(calls.close)
    events = its(calls.events)
    rename = its(calls.rename)
    link = its(calls.link)
    side = its(calls.side)
    archive = its(calls.archive)
    unarchive = its(calls.unarchive)
    join = its(calls.join)
    take_seat = its(calls.take_seat)
    leave_seat = its(calls.leave_seat)
    next = its(calls.next_)
    export = its(calls.export)
    minutes = its(calls.minutes)
    begin_speech = its(calls.begin_speech)
    say_words = its(calls.say_words)
    stop_speech = its(calls.stop_speech)
    mark_read = its(calls_reading.mark_read)
    reading = its(calls_reading.reading)
    catch_up = its(calls_reading.catch_up)
    catch_ups = its(calls_reading.catch_ups)
    get_catch_up = its(calls_reading.get_catch_up)

    def refresh(self) -> "Thread":
        self.view = self.sender.send(calls.get(self.id))
        return self

    def say(self, content: Any, *, to: str | None = None, speaker: str | None = None,
            speech_id: str | None = None) -> Taken:  # fmt: skip
        """A turn of the person of the key, or of a participant it may speak as."""
        turn = calls.turn(content, to, speaker, speech_id)
        return self.sender.send(calls_runs.resolve(self.run_id, self.view.node_id, turn))

    def transcript(self) -> list[Line]:
        """The turns so far, without the notes between them."""
        return [line for line in self.minutes().transcript if line.note is None]

    def wait(self, timeout: float = USUAL_WAIT_S) -> "Thread":
        """Until nobody says anything more by itself, or it is closed."""
        patience = Quiet(timeout)
        while True:
            run = self.sender.send(calls_runs.get(self.run_id))
            if self.refresh().view.quiet or run.ended:
                return self
            last = run.metrics.event_count - 1
            wait = patience.seconds(self.view)
            self.sender.send(calls_runs.poll(self.run_id, after=last, wait=wait))

    def stream(self, after: int = -1, *, timeout: float | None = None) -> Iterator[Event | Spoken]:
        """Events, each once, and between them the words that are just being spoken."""
        return self.sender.follow(calls.stream(self.id), proof_of(self.run_id), after, timeout)


class AsyncThread(ThreadState):
    """One conversation, for asyncio."""

    def __init__(self, sender: AsyncSender, view: ThreadView) -> None:
        super().__init__(view)
        self.sender = sender

    control = async_its(calls.control)
    mute = async_its(calls.mute)
    unmute = async_its(calls.unmute)
    pause = async_its(calls.pause)
    resume = async_its(calls.resume)
    prod = async_its(calls.prod)
    invite = async_its(calls.invite)
    uninvite = async_its(calls.uninvite)
    close = async_its(calls.close)
    events = async_its(calls.events)
    rename = async_its(calls.rename)
    link = async_its(calls.link)
    side = async_its(calls.side)
    archive = async_its(calls.archive)
    unarchive = async_its(calls.unarchive)
    join = async_its(calls.join)
    take_seat = async_its(calls.take_seat)
    leave_seat = async_its(calls.leave_seat)
    next = async_its(calls.next_)
    export = async_its(calls.export)
    minutes = async_its(calls.minutes)
    begin_speech = async_its(calls.begin_speech)
    say_words = async_its(calls.say_words)
    stop_speech = async_its(calls.stop_speech)
    mark_read = async_its(calls_reading.mark_read)
    reading = async_its(calls_reading.reading)
    catch_up = async_its(calls_reading.catch_up)
    catch_ups = async_its(calls_reading.catch_ups)
    get_catch_up = async_its(calls_reading.get_catch_up)

    async def refresh(self) -> "AsyncThread":
        self.view = await self.sender.send(calls.get(self.id))
        return self

    async def say(self, content: Any, *, to: str | None = None, speaker: str | None = None,
                  speech_id: str | None = None) -> Taken:  # fmt: skip
        """A turn of the person of the key, or of a participant it may speak as."""
        turn = calls.turn(content, to, speaker, speech_id)
        return await self.sender.send(calls_runs.resolve(self.run_id, self.view.node_id, turn))

    async def transcript(self) -> list[Line]:
        """The turns so far, without the notes between them."""
        return [line for line in (await self.minutes()).transcript if line.note is None]

    async def wait(self, timeout: float = USUAL_WAIT_S) -> "AsyncThread":
        """Until nobody says anything more by itself, or it is closed."""
        patience = Quiet(timeout)
        while True:
            run = await self.sender.send(calls_runs.get(self.run_id))
            if (await self.refresh()).view.quiet or run.ended:
                return self
            last = run.metrics.event_count - 1
            wait = patience.seconds(self.view)
            await self.sender.send(calls_runs.poll(self.run_id, after=last, wait=wait))

    def stream(
        self, after: int = -1, *, timeout: float | None = None
    ) -> AsyncIterator[Event | Spoken]:
        """Events, each once, and between them the words that are just being spoken."""
        return self.sender.follow(calls.stream(self.id), proof_of(self.run_id), after, timeout)


class Threads(Of):
    """All threads; a council is one that was convened with a question."""

    list = waits(calls.list_)
    minutes = waits(calls.minutes)
    export = waits(calls.export)

    def get(self, thread_id: str) -> Thread:
        return Thread(self.sender, self.sender.send(calls.get(thread_id)))

    def convene(
        self,
        question: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        **how: Unpack[Led],
    ) -> Thread:
        """``title``, ``moderator``, ``policy``, ``budget`` and ``open`` say how it is led."""
        made = self.sender.send(calls.convene(question, participants, **how))
        return self.get(made.thread_id)

    def begin(
        self,
        title: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        *,
        opening: str | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> Thread:
        """A thread, for as long as it takes."""
        call = calls.begin(title, participants, opening=opening, policy=policy)
        return Thread(self.sender, self.sender.send(call))

    def reopen(self, thread_id: str, *, note: str | None = None) -> Thread:
        """A new thread that goes on from right before the end of a closed one."""
        return Thread(self.sender, self.sender.send(calls.reopen(thread_id, note=note)))

    def import_(self, bundle: bytes) -> Thread:
        """What ``export("bundle")`` gave, on this or another host."""
        return self.get(self.sender.send(calls.import_(bundle)).thread_id)


class AsyncThreads(AsyncOf):
    """All threads, for asyncio."""

    list = awaits(calls.list_)
    minutes = awaits(calls.minutes)
    export = awaits(calls.export)

    async def get(self, thread_id: str) -> AsyncThread:
        return AsyncThread(self.sender, await self.sender.send(calls.get(thread_id)))

    async def convene(
        self,
        question: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        **how: Unpack[Led],
    ) -> AsyncThread:
        """``title``, ``moderator``, ``policy``, ``budget`` and ``open`` say how it is led."""
        made = await self.sender.send(calls.convene(question, participants, **how))
        return await self.get(made.thread_id)

    async def begin(
        self,
        title: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        *,
        opening: str | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> AsyncThread:
        """A thread, for as long as it takes."""
        call = calls.begin(title, participants, opening=opening, policy=policy)
        return AsyncThread(self.sender, await self.sender.send(call))

    async def reopen(self, thread_id: str, *, note: str | None = None) -> AsyncThread:
        """A new thread that goes on from right before the end of a closed one."""
        view = await self.sender.send(calls.reopen(thread_id, note=note))
        return AsyncThread(self.sender, view)

    async def import_(self, bundle: bytes) -> AsyncThread:
        """What ``export("bundle")`` gave, on this or another host."""
        return await self.get((await self.sender.send(calls.import_(bundle))).thread_id)
