"""The turns of a conversation, read from the log: which of them, how many, and whose."""

from collections.abc import Iterator

from msgspec import Struct

from moot.agents.invocation.desk import Heard
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.engine.councils.context import turn_in
from moot.store.protocol import LogStore
from moot.store.search import ReadMark

#: events that are read at a time, at first and at most
FIRST_PAGE, PAGE = 64, 2000
#: events after a mark that are looked through for one's own turns
LOOKED_AT = 200


class Extent(Struct, frozen=True, kw_only=True):
    """A conversation as far as it must be known to count in it: a row of a list knows as much."""

    tenant: str
    run_id: str
    node_id: str
    #: index of the newest turn, and events of the log
    turns: int
    length: int
    #: where it begins; what a fork has from its source is no news in it
    first: int = 0


def extent(run: Run, talk: Conversation) -> Extent:
    return Extent(
        tenant=run.tenant,
        run_id=run.run_id,
        node_id=talk.node_id,
        turns=talk.turns,
        length=run.next_sequence,
        first=max(talk.opened_seq, run.inherited),
    )


class Talk(Struct, frozen=True):
    """A conversation and where it is to be read."""

    store: LogStore
    run: Run
    talk: Conversation

    @property
    def extent(self) -> Extent:
        return extent(self.run, self.talk)


async def turn_at(place: Talk, sequence: int) -> int:
    """The index of the newest turn at or before an event; -1 before the first."""
    talk, size = place.talk, FIRST_PAGE
    if sequence >= talk.turn_seq:
        return talk.turns
    while sequence >= talk.opened_seq:
        first = max(talk.opened_seq, sequence + 1 - size)
        turns = list(await _turns(place.store, place.extent, first, sequence))
        if turns:
            return turns[-1].index
        sequence, size = first - 1, min(PAGE, 4 * size)
    return -1


async def place_of(place: Talk, index: int) -> int:
    """The sequence of a turn; of one that is not there, where it would be."""
    low, high = place.talk.opened_seq, place.talk.turn_seq
    while low < high:
        middle = (low + high) // 2
        if await turn_at(place, middle) >= index:
            high = middle
        else:
            low = middle + 1
    return low


async def between(place: Talk, first: int, last: int, most: int) -> list[Heard]:
    """Turns from one index to another, in order; of too many the newest."""
    found: list[Heard] = []
    until = await place_of(place, last)
    while until >= place.talk.opened_seq and len(found) < most:
        start = max(place.talk.opened_seq, until + 1 - min(PAGE, 2 * most))
        turns = await _turns(place.store, place.extent, start, until)
        page = [turn for turn in turns if first <= turn.index <= last]
        found = page + found
        until = start - 1
        if page and page[0].index <= first:
            break
    return found[-most:]


async def unread(store: LogStore, where: Extent, mark: ReadMark | None, reader: str) -> int:
    """Turns of others after the mark. Beyond ``LOOKED_AT`` events one's own are counted, too."""
    known, after = (mark.turn, mark.sequence) if mark else (-1, where.first - 1)
    if known >= where.turns:
        return 0
    last = min(after + LOOKED_AT, where.length - 1)
    found = await _turns(store, where, after + 1, last)
    turns = [turn for turn in found if turn.index > known]
    counted = sum(turn.speaker != reader and not _is_title(turn) for turn in turns)
    if last == where.length - 1:
        return counted
    return counted + where.turns - (turns[-1].index if turns else known)


def _is_title(turn: Heard) -> bool:
    """What the host begins a thread with that nobody has opened with words."""
    return turn.index == 0 and turn.role == "system"


async def newest(store: LogStore, where: Extent) -> Heard | None:
    """What was said last, unless so much else has happened since."""
    first = max(0, where.length - LOOKED_AT)
    turns = list(await _turns(store, where, first, where.length - 1))
    return turns[-1] if turns else None


async def _turns(store: LogStore, where: Extent, first: int, last: int) -> Iterator[Heard]:
    rows = await store.read(where.tenant, where.run_id, first - 1, last - first + 1)
    found = (turn_in(row, where.node_id) for row in rows)
    return (turn for turn in found if turn is not None)
