"""Choose the turns a council member hears: question, summary, newest turns.

The turns of an active conversation are read from the log once. Later turns are added as they go to
disk.
"""

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.invocation.context import TranscriptTurn
from moot.core import events
from moot.core.conversations.turns import TURN_TYPES, recorded_turn
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Floor, Invitation
from moot.core.state.run import Run
from moot.engine.head import Head
from moot.engine.streams.hub import Published
from moot.store.protocol import LogStore

#: events searched for turns at most, and read at a time
LOOK_BACK = 6000
PAGE = 500
MOST_KEPT = 512
#: turns cached beyond those an invitation needs, which is older than the newest turn
SPARE_TURNS = 16

#: bytes that every row with a turn contains
_CONVERSATION_MARK = b'"type":"conversation.'


class SpeakerContext(Struct, frozen=True):
    """The turns a member hears, oldest first, and the number of hidden ones."""

    turns: tuple[TranscriptTurn, ...]
    hidden: int


class _CachedTurns(Struct):
    """The newest turns of one conversation, in order, up to the followed place in its log."""

    until: int
    turns: list[TranscriptTurn] = []
    #: index from which the turns are complete; None while they are read
    first: int | None = None
    question: TranscriptTurn | None = None


class TurnCache:
    """The turns of conversations with invited members."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._cached: OrderedDict[tuple[str, str, str], _CachedTurns] = OrderedDict()

    async def context(
        self, head: Head, conversation: Conversation, wake: Invitation
    ) -> SpeakerContext:
        """Return the turns for an invitation. Later turns are left out, so that a repeat hears the
        same."""
        assert conversation.floor is not None
        key = _key(head.run, conversation)
        oldest = max(0, wake.turn + 1 - turns_before(conversation.floor, wake))
        cached = self._cached.get(key)
        if cached is None or cached.until < wake.seq:
            cached = await self._start_following(key, head, conversation, wake, oldest)
        elif cached.first is None or cached.first > oldest:
            cached = _CachedTurns(wake.seq)  # for this invitation alone
            await self._read(cached, head, conversation, wake, oldest)
        else:
            self._cached.move_to_end(key)
        return _choose_turns(cached, conversation.floor, wake, oldest)

    def follow(self, run: Run, published: list[Published]) -> None:
        """Add the turns of a batch on its way to disk.

        If an earlier batch was lost, the sequences do not match and the cached turns are dropped.
        """
        for conversation in run.conversations.values():
            if (
                conversation.floor is None
                or (cached := self._cached.get(_key(run, conversation))) is None
            ):
                continue
            if cached.until != published[0].sequence:
                del self._cached[_key(run, conversation)]
                continue
            cached.until = published[-1].sequence + 1
            rows = (
                turn_from_row(row.body, conversation.node_id)
                for row in published
                if row.type in TURN_TYPES
            )
            cached.turns += [turn for turn in rows if turn is not None]
            spare = len(cached.turns) - _turn_limit(conversation.floor) - SPARE_TURNS
            if spare > 0 and cached.first is not None:
                del cached.turns[:spare]
                cached.first = cached.turns[0].index

    async def _start_following(
        self,
        key: tuple[str, str, str],
        head: Head,
        conversation: Conversation,
        wake: Invitation,
        oldest: int,
    ) -> _CachedTurns:
        """Start following the conversation, also while the earlier turns are read."""
        cached = self._cached[key] = _CachedTurns(head.run.next_sequence)
        while len(self._cached) > MOST_KEPT:
            self._cached.popitem(last=False)
        try:
            await self._read(cached, head, conversation, wake, oldest)
        except BaseException:
            if self._cached.get(key) is cached:
                del self._cached[key]
            raise
        return cached

    async def _read(
        self,
        cached: _CachedTurns,
        head: Head,
        conversation: Conversation,
        wake: Invitation,
        oldest: int,
    ) -> None:
        run, until = head.run, cached.until
        await head.on_disk(until - 1)
        begin = conversation.opened_seq
        if wake.of is None:  # a summary needs all turns that it sums up
            begin = max(begin, wake.seq - LOOK_BACK)
        turns: list[TranscriptTurn] = []
        while until > begin and not (turns and turns[0].index <= oldest):
            first = max(begin, until - PAGE)
            turns = await self._page(run, conversation, first, until) + turns
            until = first
        if until > conversation.opened_seq:
            rows = await self._store.read(run.tenant, run.run_id, conversation.opened_seq - 1, 1)
            cached.question = turn_from_row(rows[0], conversation.node_id) if rows else None
        elif turns and turns[0].index == 0:
            cached.question = turns[0]
        cached.turns[:0] = turns
        cached.first = oldest

    async def _page(
        self, run: Run, conversation: Conversation, first: int, until: int
    ) -> list[TranscriptTurn]:
        rows = await self._store.read(run.tenant, run.run_id, first - 1, until - first)
        turns = (turn_from_row(row, conversation.node_id) for row in rows)
        return [turn for turn in turns if turn is not None]


def _key(run: Run, conversation: Conversation) -> tuple[str, str, str]:
    return run.tenant, run.run_id, conversation.conversation_id


def _turn_limit(floor: Floor) -> int:
    """Return how many of the newest turns are considered for a member."""
    return 2 * floor.policy.window + 2


def turn_from_row(row: bytes, node_id: str) -> TranscriptTurn | None:
    """Return the turn of an event of this node, or None."""
    if _CONVERSATION_MARK not in row:
        return None
    event = events.decode(row)
    turn = recorded_turn(event.payload)
    if turn is None or event.node_id != node_id:
        return None
    return TranscriptTurn(
        index=turn.turn_index or 0,
        speaker=turn.from_,
        role=turn.role or "system",
        content=turn.body,
        to=turn.to,
        edited_by=turn.edited_by,
    )


def _can_hear(turn: TranscriptTurn, wake: Invitation) -> bool:
    """Return whether the member hears the turn. In a blind round it does not hear other agents."""
    blind = wake.blind is not None and turn.index > wake.blind and turn.role == "agent"
    return turn.index <= wake.turn and (not blind or turn.speaker == wake.agent)


def _choose_turns(
    cached: _CachedTurns, floor: Floor, wake: Invitation, oldest: int
) -> SpeakerContext:
    """Return the context. The question is never hidden, and a summary replaces the turns it sums
    up."""
    near = (turn for turn in cached.turns if turn.index >= max(1, oldest))
    heard = {turn.index: turn for turn in near if _can_hear(turn, wake)}
    front = [] if cached.question is None else [cached.question]
    first, last = 0, wake.turn if wake.of is None else wake.of[1]
    most, summary_of = floor.policy.window, floor.summary
    if summary_of is not None and (summary := heard.pop(summary_of.turn, None)) is not None:
        front.append(replace(summary, of=(summary_of.first, summary_of.until)))
        first, most = summary_of.until, 2 * most
    if wake.of is not None:
        most = wake.of[1]
    visible = [turn for turn in heard.values() if first < turn.index <= last][-most:]
    total = last - first - (summary_of is not None and first < summary_of.turn <= last)
    hidden = 0 if wake.blind is not None else max(0, total - len(visible))
    return SpeakerContext((*front, *visible), hidden)


def turns_before(floor: Floor, wake: Invitation) -> int:
    """Return how many turns before the invitation are needed. A summary needs all it sums up."""
    summed_up = 0 if wake.of is None else wake.turn - wake.of[0] + 2
    return max(_turn_limit(floor), summed_up)
