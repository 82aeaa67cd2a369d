"""Read a thread's log as events of Agent Bridge, oldest first."""

from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec
from msgspec import Struct

from moot.api.http.request import encode
from moot.core.errors import BadRequest
from moot.core.events import Event, decode, micros
from moot.core.state.conversation import Conversation, first_title, thread_id
from moot.core.state.run import Run
from moot.core.threads.agent_bridge import BridgeRenderer, micros_from_time
from moot.core.threads.rendered_event import RenderedEvent
from moot.store.protocol import LogStore

#: Events of the log read at once.
PAGE = 500
FIRST_LOOK = 16
#: Limits of one answer.
MOST_EVENTS = 10_000
MOST_BYTES = 16 * 1_048_576
#: Events of the log searched for one answer at most.
MOST_ROWS = 100_000


class ThreadLogPage(Struct):
    """Encoded events, and whether more events follow."""

    events: list[bytes]
    more: bool = False


def event_translator(run: Run, conversation: Conversation) -> BridgeRenderer:
    return BridgeRenderer(
        conversation, thread_id(run, conversation), first_title(run, conversation), run.person
    )


class ThreadLog:
    """One conversation, frozen at the length of its log.

    ``complete`` may add fields to each event, by the event of the log that it renders.
    """

    def __init__(
        self,
        store: LogStore,
        run: Run,
        conversation: Conversation,
        complete: Callable[[Event, RenderedEvent], RenderedEvent] | None = None,
    ) -> None:
        self._store, self._run, self._conversation = store, run, conversation
        self._complete = complete
        self._end = run.next_sequence

    async def after(self, sequence: int, limit: int = MOST_EVENTS) -> ThreadLogPage:
        """Return the events after a sequence."""
        first = max(sequence + 1, self._conversation.opened_seq)
        return await self._page(first, limit, sequence)

    async def since(self, text: str, limit: int = MOST_EVENTS) -> ThreadLogPage:
        """Return the events after a time.

        Events have distinct times, so pages neither skip nor repeat one.
        """
        moment = parse_since(text)
        first = await self._first_after(moment)
        return await self._page(first, limit, moment=moment)

    async def whole(self, limit: int = MOST_EVENTS) -> ThreadLogPage:
        """Return all events, or the newest ones of a very long thread."""
        look = 2 * limit
        while True:
            first = max(self._conversation.opened_seq, self._end - look)
            events = await self._newest(first, limit)
            if len(events) >= limit or first == self._conversation.opened_seq or look > MOST_ROWS:
                return ThreadLogPage(events)
            look *= 4

    async def before(self, sequence: int, limit: int = MOST_EVENTS) -> ThreadLogPage:
        """Return the newest events before a sequence, oldest first."""
        self._end = min(self._end, sequence)
        page = await self.whole(limit)
        page.more = (
            bool(page.events)
            and _sequence_decoder.decode(page.events[0]).seq > self._conversation.opened_seq
        )
        return page

    async def _newest(self, first: int, limit: int) -> list[bytes]:
        """Return the last events from there on that fit into one answer."""
        encoded: deque[bytes] = deque()
        size = 0
        async for event in self._translate(first):
            encoded.append(encode(event))
            size += len(encoded[-1])
            while len(encoded) > limit or size > MOST_BYTES:
                size -= len(encoded.popleft())
        return list(encoded)

    async def sequence_before(self, text: str) -> int:
        """Return the last sequence that is not later than the time."""
        page = await self.since(text, 1)
        return _sequence_decoder.decode(page.events[0]).seq - 1 if page.events else self._end - 1

    async def decision_after(self, sequence: int) -> int:
        """Return the start of the decision that the next event belongs to."""
        return await self._decision_start(sequence + 1)

    async def _page(
        self, first: int, limit: int, sequence: int = -1, moment: int = 0
    ) -> ThreadLogPage:
        """Return the events after a sequence and a time."""
        page, size, last = ThreadLogPage([]), 0, -1
        async for event in self._translate(first):
            if event.seq <= sequence or (moment and micros(event.ts) <= moment):
                continue
            full = len(page.events) >= limit or size > MOST_BYTES
            if full and event.seq != last:  # keep both parts of one event on one page
                page.more = True
                break
            page.events.append(encode(event))
            size, last = size + len(page.events[-1]), event.seq
        return page

    async def _translate(self, first: int) -> AsyncIterator[RenderedEvent]:
        """Yield translated events from the start of this event's decision on."""
        translator, sequence = (
            event_translator(self._run, self._conversation),
            await self._decision_start(first),
        )
        while sequence < self._end:
            rows = await self._read(sequence, min(PAGE, self._end - sequence))
            if not rows:
                break
            sequence += len(rows)
            for event in rows:
                for translated in translator.tell(event):
                    yield self._complete(event, translated) if self._complete else translated

    async def _first_after(self, moment: int) -> int:
        """Return the first sequence that is later than the time.

        The search goes backwards in growing steps, because most readers ask for new events.
        """
        low, high, step = self._conversation.opened_seq, self._end, 1
        while high > low:
            probe = max(low, high - step)
            [event] = await self._read(probe, 1)
            if micros(event.timestamp) <= moment:
                low = probe + 1
                break
            high, step = probe, step * 2
        while low < high:
            probe = (low + high) // 2
            [event] = await self._read(probe, 1)
            low, high = (low, probe) if micros(event.timestamp) > moment else (probe + 1, high)
        # the decision before may continue after the time
        return max(self._conversation.opened_seq, low - 1)

    async def _decision_start(self, place: int) -> int:
        """Return the first sequence of the decision that this event belongs to."""
        if place >= self._end:
            return place
        [event] = await self._read(place, 1)
        look = FIRST_LOOK
        while place > 0:
            first = max(0, place - look)
            before = await self._read(first, place - first)
            same = [each for each in before if each.timestamp == event.timestamp]
            place -= len(same)
            if len(same) < len(before):
                break
            look *= 2
        return place

    async def _read(self, first: int, count: int) -> list[Event]:
        run = self._run
        rows = await self._store.read(run.tenant, run.run_id, first - 1, count)
        return [decode(row) for row in rows]


class _EventSequence(Struct):
    seq: int


_sequence_decoder = msgspec.json.Decoder(_EventSequence)


def parse_since(text: str) -> int:
    """Return a time in microseconds. An unescaped plus sign arrives as a blank and is restored."""
    time = text.strip()
    if len(time) > 6 and time[-6] == " " and time[-3] == ":":
        time = f"{time[:-6]}+{time[-5:]}"
    try:
        return micros_from_time(time)
    except (ValueError, OverflowError):
        raise BadRequest(
            "since is the ts of an event, such as 2030-01-31T12:00:00.000000Z; or go on with"
            " after=<seq>.",
            field="since",
            value=text[:64],
        ) from None
