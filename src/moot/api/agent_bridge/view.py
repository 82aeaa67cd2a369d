"""Events of a thread from its log: from a time or a sequence on, oldest first."""

from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec
from msgspec import Struct

from moot.api.http.request import encode
from moot.core.errors import BadRequest
from moot.core.events import Event, decode, micros
from moot.core.state.conversation import Conversation, first_title, thread_id
from moot.core.state.run import Run
from moot.core.threads.agent_bridge import Teller, Told, instant
from moot.store.protocol import LogStore

#: events of the log that are read at once
PAGE = 500
FIRST_LOOK = 16
#: events and bytes of one answer
MOST_EVENTS = 10_000
MOST_BYTES = 16 * 1_048_576
#: events of the log that are looked through for them at most
MOST_ROWS = 100_000


class Page(Struct):
    """Encoded events, and whether there are more after them."""

    events: list[bytes]
    more: bool = False


def teller(run: Run, talk: Conversation) -> Teller:
    return Teller(talk, thread_id(run, talk), first_title(run, talk), run.person)


class Thread:
    """One conversation, read as it was when its run was looked at."""

    def __init__(self, store: LogStore, run: Run, talk: Conversation) -> None:
        self._store, self._run, self._talk = store, run, talk
        self._end = run.next_sequence

    async def after(self, sequence: int, limit: int = MOST_EVENTS) -> Page:
        """What came after a sequence."""
        first = max(sequence + 1, self._talk.opened_seq)
        return await self._page(first, limit, lambda told: told["seq"] > sequence)

    async def since(self, text: str, limit: int = MOST_EVENTS) -> Page:
        """What came after a time: as times differ, nothing is left out and nothing told twice."""
        moment = moment_of(text)
        first = await self._first_after(moment)
        return await self._page(first, limit, lambda told: micros(told["ts"]) > moment)

    async def whole(self, limit: int = MOST_EVENTS) -> Page:
        """All of it; of a very long thread the newest events."""
        look = 2 * limit
        while True:
            first = max(self._talk.opened_seq, self._end - look)
            found = await self._newest(first, limit)
            if len(found) >= limit or first == self._talk.opened_seq or look > MOST_ROWS:
                return Page(found)
            look *= 4

    async def before(self, sequence: int, limit: int = MOST_EVENTS) -> Page:
        """The newest that came before a sequence, oldest first; whether there are others before
        these."""
        self._end = min(self._end, sequence)
        page = await self.whole(limit)
        page.more = bool(page.events) and _place.decode(page.events[0]).seq > self._talk.opened_seq
        return page

    async def _newest(self, first: int, limit: int) -> list[bytes]:
        """What one answer holds of the events from there on: the last ones."""
        kept: deque[bytes] = deque()
        size = 0
        async for told in self._told(first):
            kept.append(encode(told))
            size += len(kept[-1])
            while len(kept) > limit or size > MOST_BYTES:
                size -= len(kept.popleft())
        return list(kept)

    async def place_of(self, text: str) -> int:
        """The sequence after which everything is later than the time."""
        page = await self.since(text, 1)
        return _place.decode(page.events[0]).seq - 1 if page.events else self._end - 1

    async def decision_after(self, sequence: int) -> int:
        """Where the decision begins that the next event is part of."""
        return await self._decision(sequence + 1)

    async def _page(self, first: int, limit: int, wanted: Callable[[Told], bool]) -> Page:
        page, size, last = Page([]), 0, -1
        async for told in self._told(first):
            if not wanted(told):
                continue
            full = len(page.events) >= limit or size > MOST_BYTES
            if full and told["seq"] != last:  # both parts of one event, or none
                page.more = True
                break
            page.events.append(encode(told))
            size, last = size + len(page.events[-1]), told["seq"]
        return page

    async def _told(self, first: int) -> AsyncIterator[Told]:
        """What the thread was told from the decision on that this event is part of."""
        teller_, place = teller(self._run, self._talk), await self._decision(first)
        while place < self._end:
            rows = await self._read(place, min(PAGE, self._end - place))
            if not rows:
                break
            place += len(rows)
            for event in rows:
                for told in teller_.tell(event):
                    yield told

    async def _first_after(self, moment: int) -> int:
        """The first event of the log that is later; from the end backwards, in growing steps, for
        most ask for what is new."""
        low, high, step = self._talk.opened_seq, self._end, 1
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
        return max(self._talk.opened_seq, low - 1)  # the last decision before may go on after it

    async def _decision(self, place: int) -> int:
        """Where the decision begins that the event at this place is part of."""
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


class _Place(Struct):
    seq: int


_place = msgspec.json.Decoder(_Place)


def moment_of(text: str) -> int:
    """Microseconds. A plus sign that was not escaped has become a blank on the way."""
    given = text.strip()
    if len(given) > 6 and given[-6] == " " and given[-3] == ":":
        given = f"{given[:-6]}+{given[-5:]}"
    try:
        return instant(given)
    except (ValueError, OverflowError):
        raise BadRequest(
            "since is the ts of an event, such as 2030-01-31T12:00:00.000000Z; or go on with"
            " after=<seq>.",
            field="since",
            value=text[:64],
        ) from None
