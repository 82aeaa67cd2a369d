"""Councils and threads: convened, spoken in, steered, closed; and one thread as a thing."""

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Unpack

from moot.client.errors import TimedOut
from moot.client.http.methods import AsyncOf, Of, async_its, awaits, its, waits
from moot.client.http.senders import AsyncSender, Sender
from moot.client.http.sse import Event, Spoken
from moot.client.operations import runs, search, threads
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

    control = its(threads.control)
    mute = its(threads.mute)
    unmute = its(threads.unmute)
    pause = its(threads.pause)
    resume = its(threads.resume)
    prod = its(threads.prod)
    invite = its(threads.invite)
    uninvite = its(threads.uninvite)
    close = its(threads.close)
    events = its(threads.events)
    rename = its(threads.rename)
    link = its(threads.link)
    side = its(threads.side)
    archive = its(threads.archive)
    unarchive = its(threads.unarchive)
    join = its(threads.join)
    take_seat = its(threads.take_seat)
    leave_seat = its(threads.leave_seat)
    next = its(threads.next_)
    export = its(threads.export)
    minutes = its(threads.minutes)
    begin_speech = its(threads.begin_speech)
    say_words = its(threads.say_words)
    stop_speech = its(threads.stop_speech)
    mark_read = its(search.mark_read)
    reading = its(search.reading)
    catch_up = its(search.catch_up)
    catch_ups = its(search.catch_ups)
    get_catch_up = its(search.get_catch_up)

    def refresh(self) -> "Thread":
        self.view = self.sender.send(threads.get(self.id))
        return self

    def say(self, content: Any, *, to: str | None = None, speaker: str | None = None,
            speech_id: str | None = None) -> Taken:  # fmt: skip
        """A turn of the person of the key, or of a participant it may speak as."""
        turn = threads.turn(content, to, speaker, speech_id)
        return self.sender.send(runs.resolve(self.run_id, self.view.node_id, turn))

    def transcript(self) -> list[Line]:
        """The turns so far, without the notes between them."""
        return [line for line in self.minutes().transcript if line.note is None]

    def wait(self, timeout: float = USUAL_WAIT_S) -> "Thread":
        """Until nobody says anything more by itself, or it is closed."""
        patience = Quiet(timeout)
        while True:
            run = self.sender.send(runs.get(self.run_id))
            if self.refresh().view.quiet or run.ended:
                return self
            last = run.metrics.event_count - 1
            wait = patience.seconds(self.view)
            self.sender.send(runs.poll(self.run_id, after=last, wait=wait))

    def stream(self, after: int = -1, *, timeout: float | None = None) -> Iterator[Event | Spoken]:
        """Events, each once, and between them the words that are just being spoken."""
        return self.sender.follow(threads.stream(self.id), proof_of(self.run_id), after, timeout)


class AsyncThread(ThreadState):
    """One conversation, for asyncio."""

    def __init__(self, sender: AsyncSender, view: ThreadView) -> None:
        super().__init__(view)
        self.sender = sender

    control = async_its(threads.control)
    mute = async_its(threads.mute)
    unmute = async_its(threads.unmute)
    pause = async_its(threads.pause)
    resume = async_its(threads.resume)
    prod = async_its(threads.prod)
    invite = async_its(threads.invite)
    uninvite = async_its(threads.uninvite)
    close = async_its(threads.close)
    events = async_its(threads.events)
    rename = async_its(threads.rename)
    link = async_its(threads.link)
    side = async_its(threads.side)
    archive = async_its(threads.archive)
    unarchive = async_its(threads.unarchive)
    join = async_its(threads.join)
    take_seat = async_its(threads.take_seat)
    leave_seat = async_its(threads.leave_seat)
    next = async_its(threads.next_)
    export = async_its(threads.export)
    minutes = async_its(threads.minutes)
    begin_speech = async_its(threads.begin_speech)
    say_words = async_its(threads.say_words)
    stop_speech = async_its(threads.stop_speech)
    mark_read = async_its(search.mark_read)
    reading = async_its(search.reading)
    catch_up = async_its(search.catch_up)
    catch_ups = async_its(search.catch_ups)
    get_catch_up = async_its(search.get_catch_up)

    async def refresh(self) -> "AsyncThread":
        self.view = await self.sender.send(threads.get(self.id))
        return self

    async def say(self, content: Any, *, to: str | None = None, speaker: str | None = None,
                  speech_id: str | None = None) -> Taken:  # fmt: skip
        """A turn of the person of the key, or of a participant it may speak as."""
        turn = threads.turn(content, to, speaker, speech_id)
        return await self.sender.send(runs.resolve(self.run_id, self.view.node_id, turn))

    async def transcript(self) -> list[Line]:
        """The turns so far, without the notes between them."""
        return [line for line in (await self.minutes()).transcript if line.note is None]

    async def wait(self, timeout: float = USUAL_WAIT_S) -> "AsyncThread":
        """Until nobody says anything more by itself, or it is closed."""
        patience = Quiet(timeout)
        while True:
            run = await self.sender.send(runs.get(self.run_id))
            if (await self.refresh()).view.quiet or run.ended:
                return self
            last = run.metrics.event_count - 1
            wait = patience.seconds(self.view)
            await self.sender.send(runs.poll(self.run_id, after=last, wait=wait))

    def stream(
        self, after: int = -1, *, timeout: float | None = None
    ) -> AsyncIterator[Event | Spoken]:
        """Events, each once, and between them the words that are just being spoken."""
        return self.sender.follow(threads.stream(self.id), proof_of(self.run_id), after, timeout)


class Threads(Of):
    """All threads; a council is one that was convened with a question."""

    list = waits(threads.list_)
    minutes = waits(threads.minutes)
    export = waits(threads.export)

    def get(self, thread_id: str) -> Thread:
        return Thread(self.sender, self.sender.send(threads.get(thread_id)))

    def convene(
        self,
        question: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        **how: Unpack[Led],
    ) -> Thread:
        """``title``, ``moderator``, ``policy``, ``budget`` and ``open`` say how it is led."""
        made = self.sender.send(threads.convene(question, participants, **how))
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
        call = threads.begin(title, participants, opening=opening, policy=policy)
        return Thread(self.sender, self.sender.send(call))

    def reopen(self, thread_id: str, *, note: str | None = None) -> Thread:
        """A new thread that goes on from right before the end of a closed one."""
        return Thread(self.sender, self.sender.send(threads.reopen(thread_id, note=note)))

    def import_(self, bundle: bytes) -> Thread:
        """What ``export("bundle")`` gave, on this or another host."""
        return self.get(self.sender.send(threads.import_(bundle)).thread_id)


class AsyncThreads(AsyncOf):
    """All threads, for asyncio."""

    list = awaits(threads.list_)
    minutes = awaits(threads.minutes)
    export = awaits(threads.export)

    async def get(self, thread_id: str) -> AsyncThread:
        return AsyncThread(self.sender, await self.sender.send(threads.get(thread_id)))

    async def convene(
        self,
        question: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        **how: Unpack[Led],
    ) -> AsyncThread:
        """``title``, ``moderator``, ``policy``, ``budget`` and ``open`` say how it is led."""
        made = await self.sender.send(threads.convene(question, participants, **how))
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
        call = threads.begin(title, participants, opening=opening, policy=policy)
        return AsyncThread(self.sender, await self.sender.send(call))

    async def reopen(self, thread_id: str, *, note: str | None = None) -> AsyncThread:
        """A new thread that goes on from right before the end of a closed one."""
        view = await self.sender.send(threads.reopen(thread_id, note=note))
        return AsyncThread(self.sender, view)

    async def import_(self, bundle: bytes) -> AsyncThread:
        """What ``export("bundle")`` gave, on this or another host."""
        return await self.get((await self.sender.send(threads.import_(bundle))).thread_id)
