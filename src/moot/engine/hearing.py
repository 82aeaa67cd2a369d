"""What a member hears before it speaks: the question, a summary, and the newest turns.

Read from the log, and kept for conversations that are going on: each turn is read once.
"""

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.desk import Heard
from moot.core import events
from moot.core.participation import Floor, Wake
from moot.core.run import Run
from moot.core.waiting import Conversation
from moot.store.protocol import LogStore

#: events that are looked through for turns at most, and read at a time
LOOK_BACK = 6000
PAGE = 500
MOST_KEPT = 512

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
    """The newest turns of one conversation, in order, and how far the log was read."""

    turns: list[Heard]
    until: int
    question: Heard | None = None


class Hearing:
    """The turns of conversations that members are woken in."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str, str], _Known] = OrderedDict()

    async def context(self, run: Run, talk: Conversation, wake: Wake) -> Context:
        """What is said meanwhile is not in it: who is woken again is told the same."""
        assert talk.floor is not None
        key = (run.tenant, run.run_id, talk.conversation_id)
        window = talk.floor.policy.window
        known = await self._read(key, run, talk, wake.seq, 2 * window + 2)
        return _chosen(known, talk.floor, wake)

    async def _read(
        self, key: tuple[str, str, str], run: Run, talk: Conversation, until: int, most: int
    ) -> _Known:
        found = self._known.get(key)
        if found is None:
            oldest = max(talk.opened_seq, until - LOOK_BACK)
            found = _Known(await self._backwards(run, talk, until, oldest, most), until)
            if oldest > talk.opened_seq or len(found.turns) >= most:
                rows = await self._store.read(run.tenant, run.run_id, talk.opened_seq - 1, 1)
                found.question = turn_in(rows[0], talk.node_id) if rows else None
            self._known[key] = found
            while len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
        elif found.until < until:
            first = found.until
            new = await self._page(run, talk, first, until)
            if found.until == first:  # else another member was quicker
                found.turns, found.until = (found.turns + new)[-most:], until
        self._known.move_to_end(key)
        if found.question is None and found.turns and found.turns[0].index == 0:
            found.question = found.turns[0]
        return found

    async def _backwards(
        self, run: Run, talk: Conversation, until: int, oldest: int, most: int
    ) -> list[Heard]:
        turns: list[Heard] = []
        while until > oldest and len(turns) < most:
            first = max(oldest, until - PAGE)
            turns = await self._page(run, talk, first, until) + turns
            until = first
        return turns[-most:]

    async def _page(self, run: Run, talk: Conversation, first: int, until: int) -> list[Heard]:
        rows = await self._store.read(run.tenant, run.run_id, first - 1, until - first)
        found = (turn_in(row, talk.node_id) for row in rows)
        return [turn for turn in found if turn is not None]


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
    )


def _hears(turn: Heard, wake: Wake) -> bool:
    """In a blind round nobody hears what the other agents say in it."""
    blind = wake.blind is not None and turn.index > wake.blind and turn.role == "agent"
    return turn.index <= wake.turn and (not blind or turn.speaker == wake.agent)


def _chosen(known: _Known, floor: Floor, wake: Wake) -> Context:
    """The question is never hidden; a summary stands in the place of what it sums up."""
    heard = {turn.index: turn for turn in known.turns if turn.index and _hears(turn, wake)}
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
