"""Threads and councils: the handle of one thread, and the list of all."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Unpack

from moot.client.http.async_sender import AsyncSender
from moot.client.http.frames import Event, Spoken
from moot.client.http.methods import Handle, Resource, S, client_method, handle_method
from moot.client.http.sender import Sender
from moot.client.operations import runs, search, threads
from moot.client.operations.threads import CouncilOptions
from moot.client.runs import DEFAULT_WAIT_S, WaitDeadline, end_check_for
from moot.wire.interrupts import AnswerResult
from moot.wire.minutes import Line
from moot.wire.threads import ThreadView


class ThreadHandle(Handle[S]):
    """The last known view of a thread; ``refresh`` updates it."""

    def __init__(self, sender: S, view: ThreadView) -> None:
        super().__init__(sender)
        self.view = view

    control = handle_method(threads.control_thread)
    mute = handle_method(threads.mute_participants)
    unmute = handle_method(threads.unmute_participants)
    pause = handle_method(threads.pause_thread)
    resume = handle_method(threads.resume_thread)
    prod = handle_method(threads.prod_participants)
    invite = handle_method(threads.invite_participant)
    uninvite = handle_method(threads.uninvite_participant)
    close = handle_method(threads.close_thread)
    events = handle_method(threads.list_thread_events)
    rename = handle_method(threads.rename_thread)
    link = handle_method(threads.link_thread)
    side = handle_method(threads.begin_side_thread)
    archive = handle_method(threads.archive_thread)
    unarchive = handle_method(threads.unarchive_thread)
    join = handle_method(threads.create_join_key)
    take_seat = handle_method(threads.take_seat)
    leave_seat = handle_method(threads.leave_seat)
    next = handle_method(threads.next_request)
    export = handle_method(threads.export_thread)
    minutes = handle_method(threads.get_minutes)
    begin_speech = handle_method(threads.begin_speech)
    say_words = handle_method(threads.say_words)
    stop_speech = handle_method(threads.stop_speech)
    mark_read = handle_method(search.mark_thread_read)
    reading = handle_method(search.get_read_status)
    catch_up = handle_method(search.create_catch_up)
    catch_ups = handle_method(search.list_catch_ups)
    get_catch_up = handle_method(search.get_catch_up)

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


class Thread(ThreadHandle[Sender]):
    """One conversation."""

    def refresh(self) -> "Thread":
        self.view = self.sender.send(threads.get_thread(self.id))
        return self

    def say(self, content: Any, *, to: str | None = None, speaker: str | None = None,
            speech_id: str | None = None) -> AnswerResult:  # fmt: skip
        """Take a turn as the person of the key, or as a participant the key may speak as."""
        turn = threads.exchange_value(content, to, speaker, speech_id)
        return self.sender.send(runs.resolve_interrupt(self.run_id, self.view.node_id, turn))

    def transcript(self) -> list[Line]:
        """Return the turns so far, without the notes between them."""
        return [line for line in self.minutes().transcript if line.note is None]

    def wait(self, timeout: float = DEFAULT_WAIT_S) -> "Thread":
        """Wait until no agent will speak without a person, or the thread is closed."""
        deadline = WaitDeadline(timeout)
        while True:
            run = self.sender.send(runs.get_run(self.run_id))
            if self.refresh().view.quiet or run.ended:
                return self
            self.sender.send(deadline.poll(run, f"{self.id} still goes on"))

    def stream(self, after: int = -1, *, timeout: float | None = None) -> Iterator[Event | Spoken]:
        """Yield every event once, and between events the words of speech in progress."""
        return self.sender.follow(
            threads.stream_thread(self.id), end_check_for(self.run_id), after, timeout
        )


class AsyncThread(ThreadHandle[AsyncSender]):
    """One conversation, for asyncio."""

    async def refresh(self) -> "AsyncThread":
        self.view = await self.sender.send(threads.get_thread(self.id))
        return self

    async def say(self, content: Any, *, to: str | None = None, speaker: str | None = None,
                  speech_id: str | None = None) -> AnswerResult:  # fmt: skip
        """Take a turn as the person of the key, or as a participant the key may speak as."""
        turn = threads.exchange_value(content, to, speaker, speech_id)
        return await self.sender.send(runs.resolve_interrupt(self.run_id, self.view.node_id, turn))

    async def transcript(self) -> list[Line]:
        """Return the turns so far, without the notes between them."""
        return [line for line in (await self.minutes()).transcript if line.note is None]

    async def wait(self, timeout: float = DEFAULT_WAIT_S) -> "AsyncThread":
        """Wait until no agent will speak without a person, or the thread is closed."""
        deadline = WaitDeadline(timeout)
        while True:
            run = await self.sender.send(runs.get_run(self.run_id))
            if (await self.refresh()).view.quiet or run.ended:
                return self
            await self.sender.send(deadline.poll(run, f"{self.id} still goes on"))

    def stream(
        self, after: int = -1, *, timeout: float | None = None
    ) -> AsyncIterator[Event | Spoken]:
        """Yield every event once, and between events the words of speech in progress."""
        return self.sender.follow(
            threads.stream_thread(self.id), end_check_for(self.run_id), after, timeout
        )


class ThreadOperations(Resource[S]):
    """The operations on all threads."""

    list = client_method(threads.list_threads)
    minutes = client_method(threads.get_minutes)
    export = client_method(threads.export_thread)


class ThreadsResource(ThreadOperations[Sender]):
    """All threads. A council is a thread that was convened with a question."""

    def get(self, thread_id: str) -> Thread:
        return Thread(self.sender, self.sender.send(threads.get_thread(thread_id)))

    def convene(
        self,
        question: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        **options: Unpack[CouncilOptions],
    ) -> Thread:
        """Convene a council; ``options`` set title, moderator, policy, budget and openness."""
        council = self.sender.send(threads.convene_council(question, participants, **options))
        return self.get(council.thread_id)

    def begin(
        self,
        title: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        *,
        opening: str | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> Thread:
        """Begin a thread without an end."""
        call = threads.begin_thread(title, participants, opening=opening, policy=policy)
        return Thread(self.sender, self.sender.send(call))

    def reopen(self, thread_id: str, *, note: str | None = None) -> Thread:
        """Continue a closed thread in a new one that starts just before its end."""
        return Thread(self.sender, self.sender.send(threads.reopen_thread(thread_id, note=note)))

    def import_(self, bundle: bytes) -> Thread:
        """Import the result of ``export("bundle")`` from this or another host."""
        return self.get(self.sender.send(threads.import_thread(bundle)).thread_id)


class AsyncThreadsResource(ThreadOperations[AsyncSender]):
    """All threads, for asyncio."""

    async def get(self, thread_id: str) -> AsyncThread:
        return AsyncThread(self.sender, await self.sender.send(threads.get_thread(thread_id)))

    async def convene(
        self,
        question: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        **options: Unpack[CouncilOptions],
    ) -> AsyncThread:
        """Convene a council; ``options`` set title, moderator, policy, budget and openness."""
        council = await self.sender.send(threads.convene_council(question, participants, **options))
        return await self.get(council.thread_id)

    async def begin(
        self,
        title: str,
        participants: Sequence[str | Mapping[str, Any]] = (),
        *,
        opening: str | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> AsyncThread:
        """Begin a thread without an end."""
        call = threads.begin_thread(title, participants, opening=opening, policy=policy)
        return AsyncThread(self.sender, await self.sender.send(call))

    async def reopen(self, thread_id: str, *, note: str | None = None) -> AsyncThread:
        """Continue a closed thread in a new one that starts just before its end."""
        view = await self.sender.send(threads.reopen_thread(thread_id, note=note))
        return AsyncThread(self.sender, view)

    async def import_(self, bundle: bytes) -> AsyncThread:
        """Import the result of ``export("bundle")`` from this or another host."""
        return await self.get((await self.sender.send(threads.import_thread(bundle))).thread_id)
