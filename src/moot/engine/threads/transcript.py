"""Read the turns of a conversation from the log, and count unread ones."""

from collections.abc import Iterator

from msgspec import Struct

from moot.agents.invocation.context import TranscriptTurn
from moot.core.state.conversation import Conversation
from moot.core.state.run import Run
from moot.engine.councils.context import turn_from_row
from moot.store.protocol import LogStore
from moot.store.search import ReadMark

#: events read at a time, at first and at most
FIRST_PAGE, PAGE = 64, 2000
#: events after a mark that are searched for the reader's own turns
EVENTS_SEARCHED = 200


class ConversationExtent(Struct, frozen=True, kw_only=True):
    """The facts about a conversation needed to count its turns; a list row has them, too."""

    tenant: str
    run_id: str
    node_id: str
    #: index of the newest turn, and number of events in the log
    turns: int
    length: int
    #: sequence of its first own event; inherited events are not unread
    first: int = 0


def conversation_extent(run: Run, conversation: Conversation) -> ConversationExtent:
    return ConversationExtent(
        tenant=run.tenant,
        run_id=run.run_id,
        node_id=conversation.node_id,
        turns=conversation.turns,
        length=run.next_sequence,
        first=max(conversation.opened_seq, run.inherited),
    )


class StoredConversation(Struct, frozen=True):
    """A conversation and the store that holds its log."""

    store: LogStore
    run: Run
    talk: Conversation

    @property
    def extent(self) -> ConversationExtent:
        return conversation_extent(self.run, self.talk)


async def turn_index_at(stored: StoredConversation, sequence: int) -> int:
    """Return the index of the newest turn at or before an event; -1 before the first."""
    conversation, size = stored.talk, FIRST_PAGE
    if sequence >= conversation.turn_seq:
        return conversation.turns
    while sequence >= conversation.opened_seq:
        first = max(conversation.opened_seq, sequence + 1 - size)
        turns = list(await _read_page(stored.store, stored.extent, first, sequence))
        if turns:
            return turns[-1].index
        sequence, size = first - 1, min(PAGE, 4 * size)
    return -1


async def turn_sequence(stored: StoredConversation, index: int) -> int:
    """Return the sequence of a turn, or the one it would have."""
    low, high = stored.talk.opened_seq, stored.talk.turn_seq
    while low < high:
        middle = (low + high) // 2
        if await turn_index_at(stored, middle) >= index:
            high = middle
        else:
            low = middle + 1
    return low


async def read_turns(
    stored: StoredConversation, first: int, last: int, most: int
) -> list[TranscriptTurn]:
    """Return the turns from ``first`` to ``last`` in order, at most the newest ``most``."""
    collected: list[TranscriptTurn] = []
    until = await turn_sequence(stored, last)
    while until >= stored.talk.opened_seq and len(collected) < most:
        start = max(stored.talk.opened_seq, until + 1 - min(PAGE, 2 * most))
        turns = await _read_page(stored.store, stored.extent, start, until)
        page = [turn for turn in turns if first <= turn.index <= last]
        collected = page + collected
        until = start - 1
        if page and page[0].index <= first:
            break
    return collected[-most:]


async def count_unread(
    store: LogStore, extent: ConversationExtent, mark: ReadMark | None, reader: str
) -> int:
    """Return the number of others' turns after the mark.

    Beyond ``EVENTS_SEARCHED`` events the reader's own turns count, too.
    """
    last_read, after = (mark.turn, mark.sequence) if mark else (-1, extent.first - 1)
    if last_read >= extent.turns:
        return 0
    last = min(after + EVENTS_SEARCHED, extent.length - 1)
    page = await _read_page(store, extent, after + 1, last)
    turns = [turn for turn in page if turn.index > last_read]
    counted = sum(turn.speaker != reader and not _is_title_turn(turn) for turn in turns)
    if last == extent.length - 1:
        return counted
    return counted + extent.turns - (turns[-1].index if turns else last_read)


def _is_title_turn(turn: TranscriptTurn) -> bool:
    """Return whether the turn is the host's title of a thread without an opening."""
    return turn.index == 0 and turn.role == "system"


async def newest_turn(store: LogStore, extent: ConversationExtent) -> TranscriptTurn | None:
    """Return the newest turn within the last ``EVENTS_SEARCHED`` events."""
    first = max(0, extent.length - EVENTS_SEARCHED)
    turns = list(await _read_page(store, extent, first, extent.length - 1))
    return turns[-1] if turns else None


async def _read_page(
    store: LogStore, extent: ConversationExtent, first: int, last: int
) -> Iterator[TranscriptTurn]:
    rows = await store.read(extent.tenant, extent.run_id, first - 1, last - first + 1)
    turns = (turn_from_row(row, extent.node_id) for row in rows)
    return (turn for turn in turns if turn is not None)
