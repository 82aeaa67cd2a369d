"""Stream a thread live in the format of Agent Bridge."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from moot.api.agent_bridge.thread_log import ThreadLog, event_translator, parse_since
from moot.api.http.request import Receive, Request, Send, encode
from moot.api.runs.event_stream import KEEPALIVE_FRAME, RunEventStream
from moot.core.events import decode, micros
from moot.core.payloads.conversations import ConversationEnded
from moot.core.state.conversation import Conversation
from moot.core.threads.rendered_event import RenderedEvent
from moot.engine.head import Head
from moot.engine.streams.hub import EventGroup, Published

NO_MODES: frozenset[str] = frozenset()
#: How long a piece may wait for its reader. A slower reader is disconnected and may return with
#: its time or sequence.
PATIENCE_S = 60.0


class ThreadEventStream(RunEventStream):
    """A live stream of one conversation. The hub frames each group once for all readers."""

    greeting = KEEPALIVE_FRAME

    def __init__(
        self, request: Request, head: Head, conversation: Conversation, after: int
    ) -> None:
        super().__init__(request, head, NO_MODES, 0, after)
        self._run_state, self._conversation = head.run, conversation
        self._translator = event_translator(head.run, conversation)
        self._form = ("thread", conversation.conversation_id)
        self._seen, self._since_micros = self._after, 0
        #: When the current piece began to wait for its reader.
        self._since: float | None = None
        self._watch: asyncio.TimerHandle

    async def begin(self, since: str | None) -> "ThreadEventStream":
        """Move the cursor to the start of a decision.

        Translation needs the whole decision, though some of its events are not sent.
        """
        thread = ThreadLog(self._services.store, self._run_state, self._conversation)
        if since is not None:
            self._since_micros = parse_since(since)
            self._after = self._seen = await thread.sequence_before(since)
        self._after = await thread.decision_after(self._after) - 1
        return self

    @property
    def at_end(self) -> bool:
        """Return whether the reader already has the last event of a closed conversation."""
        last = self._run_state.next_sequence - 1
        return not self._conversation.open and self._seen >= min(last, self._conversation.last_seq)

    def _is_end(self, events: Sequence[Published]) -> bool:
        """Return whether the stream ends here. A conversation may close before its run ends."""
        return super()._is_end(events) or any(map(self._is_closing, events))

    def _is_closing(self, event: Published) -> bool:
        if event.type != ConversationEnded.event_type:
            return False
        talk = getattr(decode(event.body).payload, "conversation_id", None)
        return talk == self._conversation.conversation_id

    def _frame_group(self, group: EventGroup) -> bytes:
        return group.made(self._form, self._translate_group)

    def _translate_group(self, events: list[Published]) -> Iterator[bytes]:
        """Translate a group on its own. It holds whole decisions, so it needs no earlier event."""
        translator = event_translator(self._run_state, self._conversation)
        return _encode_frames(
            translated for event in events for translated in translator.tell(decode(event.body))
        )

    def _frames(self, events: list[Published]) -> Iterator[bytes]:
        translated = (
            each for event in events for each in self._translator.tell(decode(event.body))
        )
        return _encode_frames(
            each
            for each in translated
            if each.seq > self._seen and micros(each.ts) > self._since_micros
        )

    async def write(self, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):  # the reader has stopped reading
            async with asyncio.timeout(None) as patience:
                self._check_patience(patience)
                try:
                    await super().write(receive, send)
                finally:
                    self._watch.cancel()

    def _check_patience(self, patience: asyncio.Timeout) -> None:
        """Time out a slow reader. One timer serves the stream, not one for each piece."""
        loop = asyncio.get_running_loop()
        waits = 0.0 if self._since is None else loop.time() - self._since
        if waits >= PATIENCE_S:
            patience.reschedule(loop.time())
        else:
            self._watch = loop.call_later(PATIENCE_S - waits, self._check_patience, patience)

    async def _send_piece(self, send: Send, piece: bytes) -> None:
        self._since = asyncio.get_running_loop().time()
        await super()._send_piece(send, piece)
        self._since = None


def _encode_frames(events: Iterable[RenderedEvent]) -> Iterator[bytes]:
    return (b"data: %b\n\n" % encode(event) for event in events)
