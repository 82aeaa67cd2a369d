"""A thread as it happens, as Agent Bridge streams it: bare data, and now and then a comment."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from moot.api.agent_bridge.view import Thread, moment_of, teller
from moot.api.http.request import Receive, Request, Send, encode
from moot.api.runs.event_stream import KEEPALIVE, Reader
from moot.core.events import decode, micros
from moot.core.state.conversation import Conversation
from moot.core.threads.agent_bridge import Told
from moot.engine.head import Head
from moot.engine.streams.hub import Group, Published

NOTHING: frozenset[str] = frozenset()
#: how long a piece may wait for its reader; who takes longer is let go, and may come back with the
#: time or the sequence it has come to
PATIENCE_S = 60.0


class ThreadReader(Reader):
    """Events of one conversation from a place on. Each group is framed once for all readers."""

    greeting = KEEPALIVE

    def __init__(self, request: Request, head: Head, talk: Conversation, after: int) -> None:
        super().__init__(request, head, NOTHING, 0, after)
        self._its, self._talk = head.run, talk
        self._teller = teller(head.run, talk)
        self._form = ("thread", talk.conversation_id)
        self._seen, self._moment = self._after, 0
        #: since when a piece waits for its reader
        self._since: float | None = None
        self._watch: asyncio.TimerHandle

    async def begin(self, since: str | None) -> "ThreadReader":
        """Who tells begins with a whole decision, though not all of it is to be told."""
        thread = Thread(self._services.store, self._its, self._talk)
        if since is not None:
            self._moment = moment_of(since)
            self._after = self._seen = await thread.place_of(since)
        self._after = await thread.decision_after(self._after) - 1
        return self

    @property
    def at_end(self) -> bool:
        """Whether everything was told that ever will be."""
        last = self._its.next_sequence - 1
        return not self._talk.open and self._seen >= min(last, self._talk.last_seq)

    def _ends(self, events: Sequence[Published]) -> bool:
        """A conversation may be over while its run goes on."""
        return super()._ends(events) or any(map(self._closes, events))

    def _closes(self, event: Published) -> bool:
        if event.type != "conversation.closed":
            return False
        return decode(event.body).payload.get("conversationId") == self._talk.conversation_id

    def _framed(self, group: Group) -> bytes:
        return group.made(self._form, self._fresh)

    def _fresh(self, events: list[Published]) -> Iterator[bytes]:
        """A group holds whole decisions: whoever tells it needs to know nothing before it."""
        told = teller(self._its, self._talk)
        return _frames(each for event in events for each in told.tell(decode(event.body)))

    def _frames(self, events: list[Published]) -> Iterator[bytes]:
        told = (each for event in events for each in self._teller.tell(decode(event.body)))
        return _frames(
            each for each in told if each["seq"] > self._seen and micros(each["ts"]) > self._moment
        )

    async def write(self, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):  # the reader has stopped reading
            async with asyncio.timeout(None) as patience:
                self._look(patience)
                try:
                    await super().write(receive, send)
                finally:
                    self._watch.cancel()

    def _look(self, patience: asyncio.Timeout) -> None:
        """One timer for the stream, not one for each piece."""
        loop = asyncio.get_running_loop()
        waits = 0.0 if self._since is None else loop.time() - self._since
        if waits >= PATIENCE_S:
            patience.reschedule(loop.time())
        else:
            self._watch = loop.call_later(PATIENCE_S - waits, self._look, patience)

    async def _piece(self, send: Send, piece: bytes) -> None:
        self._since = asyncio.get_running_loop().time()
        await super()._piece(send, piece)
        self._since = None


def _frames(told: Iterable[Told]) -> Iterator[bytes]:
    return (b"data: %b\n\n" % encode(each) for each in told)
