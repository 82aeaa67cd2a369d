"""What a member hears before it speaks: the question, a summary, and the newest turns.

Read from the log once for conversations that are going on; from then on what is decided is heard as
it goes to disk.
"""

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.invocation.desk import Heard
from moot.core import events
from moot.core.state.conversation import Conversation
from moot.core.state.floor import Floor, Wake
from moot.core.state.run import Run
from moot.engine.head import Head
from moot.engine.streams.hub import Published
from moot.store.protocol import LogStore

#: events that are looked through for turns at most, and read at a time
LOOK_BACK = 6000
PAGE = 500
MOST_KEPT = 512
#: turns that are kept beside those a wake hears: said before it came to listen
SPARE = 16

TURNS = {
    "conversation.opened": "initialTurn",
    "conversation.exchanged": "turn",
    "conversation.closed": "finalTurn",
}
#: what every row of a turn has somewhere
_MARK = b'"type":"conversation.'


class Context(Struct, frozen=True):
    """The turns, the oldest first, and how many there are besides."""

    turns: tuple[Heard, ...]
    hidden: int


class _Known(Struct):
    """The newest turns of one conversation, in order, up to where its log is followed."""

    until: int
    turns: list[Heard] = []
    #: nothing is missing from this turn on; None while it is being read
    first: int | None = None
    question: Heard | None = None


class Hearing:
    """The turns of conversations that members are woken in."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str, str], _Known] = OrderedDict()

    async def context(self, head: Head, talk: Conversation, wake: Wake) -> Context:
        """What is said meanwhile is not in it: who is woken again is told the same."""
        assert talk.floor is not None
        key = _key(head.run, talk)
        oldest = max(0, wake.turn + 1 - heard_by(talk.floor, wake))
        known = self._known.get(key)
        if known is None or known.until < wake.seq:
            known = await self._first(key, head, talk, wake, oldest)
        elif known.first is None or known.first > oldest:
            known = _Known(wake.seq)  # it is for this wake alone
            await self._read(known, head, talk, wake, oldest)
        else:
            self._known.move_to_end(key)
        return _chosen(known, talk.floor, wake, oldest)

    def follow(self, run: Run, said: list[Published]) -> None:
        """What goes to disk now is heard at once, where the conversation is known so far. What was
        followed and did not come there is known by the next that comes in its place."""
        for talk in run.conversations.values():
            if talk.floor is None or (known := self._known.get(_key(run, talk))) is None:
                continue
            if known.until != said[0].sequence:
                del self._known[_key(run, talk)]
                continue
            known.until = said[-1].sequence + 1
            rows = (turn_in(row.body, talk.node_id) for row in said if row.type in TURNS)
            known.turns += [turn for turn in rows if turn is not None]
            spare = len(known.turns) - _most(talk.floor) - SPARE
            if spare > 0 and known.first is not None:
                del known.turns[:spare]
                known.first = known.turns[0].index

    async def _first(
        self, key: tuple[str, str, str], head: Head, talk: Conversation, wake: Wake, oldest: int
    ) -> _Known:
        """From here on the conversation is followed, also while what was before is read."""
        known = self._known[key] = _Known(head.run.next_sequence)
        while len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        try:
            await self._read(known, head, talk, wake, oldest)
        except BaseException:
            if self._known.get(key) is known:
                del self._known[key]
            raise
        return known

    async def _read(
        self, known: _Known, head: Head, talk: Conversation, wake: Wake, oldest: int
    ) -> None:
        run, until = head.run, known.until
        await head.on_disk(until - 1)
        begin = talk.opened_seq
        if wake.of is None:  # what is summed up must have been heard, all of it
            begin = max(begin, wake.seq - LOOK_BACK)
        turns: list[Heard] = []
        while until > begin and not (turns and turns[0].index <= oldest):
            first = max(begin, until - PAGE)
            turns = await self._page(run, talk, first, until) + turns
            until = first
        if until > talk.opened_seq:
            rows = await self._store.read(run.tenant, run.run_id, talk.opened_seq - 1, 1)
            known.question = turn_in(rows[0], talk.node_id) if rows else None
        elif turns and turns[0].index == 0:
            known.question = turns[0]
        known.turns[:0] = turns
        known.first = oldest

    async def _page(self, run: Run, talk: Conversation, first: int, until: int) -> list[Heard]:
        rows = await self._store.read(run.tenant, run.run_id, first - 1, until - first)
        found = (turn_in(row, talk.node_id) for row in rows)
        return [turn for turn in found if turn is not None]


def _key(run: Run, talk: Conversation) -> tuple[str, str, str]:
    return run.tenant, run.run_id, talk.conversation_id


def _most(floor: Floor) -> int:
    """The newest turns that are looked at for what a member hears."""
    return 2 * floor.policy.window + 2


def turn_in(row: bytes, node_id: str) -> Heard | None:
    """The turn that an event of this node carries, if it carries one."""
    if _MARK not in row:
        return None
    event = events.decode(row)
    key = TURNS.get(event.type)
    if key is None or event.node_id != node_id:
        return None
    turn = event.payload.get(key, {})
    return Heard(
        index=turn.get("turnIndex", 0),
        speaker=turn.get("from", ""),
        role=turn.get("role", "system"),
        content=turn.get("content"),
        to=turn.get("to"),
        edited_by=turn.get("editedBy"),
    )


def _hears(turn: Heard, wake: Wake) -> bool:
    """In a blind round nobody hears what the other agents say in it."""
    blind = wake.blind is not None and turn.index > wake.blind and turn.role == "agent"
    return turn.index <= wake.turn and (not blind or turn.speaker == wake.agent)


def _chosen(known: _Known, floor: Floor, wake: Wake, oldest: int) -> Context:
    """The question is never hidden; a summary stands in the place of what it sums up."""
    near = (turn for turn in known.turns if turn.index >= max(1, oldest))
    heard = {turn.index: turn for turn in near if _hears(turn, wake)}
    front = [] if known.question is None else [known.question]
    first, last = 0, wake.turn if wake.of is None else wake.of[1]
    most, made = floor.policy.window, floor.summary
    if made is not None and (summary := heard.pop(made.turn, None)) is not None:
        front.append(replace(summary, of=(made.first, made.until)))
        first, most = made.until, 2 * most
    if wake.of is not None:
        most = wake.of[1]
    shown = [turn for turn in heard.values() if first < turn.index <= last][-most:]
    there = last - first - (made is not None and first < made.turn <= last)
    hidden = 0 if wake.blind is not None else max(0, there - len(shown))
    return Context((*front, *shown), hidden)


def heard_by(floor: Floor, wake: Wake) -> int:
    """How many turns before the wake are looked at: whoever sums up hears all that it sums up."""
    summed = 0 if wake.of is None else wake.turn - wake.of[0] + 2
    return max(_most(floor), summed)
