"""When standing agents were away, as bars of a schedule: pauses, times switched off, work taken
from them. Read from what was done to them, so that being back in time for the look changes nothing.
"""

from collections import OrderedDict

from msgspec import Struct

from moot.agents.roster.members import Pause, Roster, Seat, decoded
from moot.core.schedules.model import Bar
from moot.store.records import Record

MOST_KNOWN = 10_000

#: nobody of that name is here
GONE = Bar(0, None, "disabled")


class Spell(Struct, frozen=True):
    """One version of a member, for as long as it held."""

    since: int
    until: int | None
    on: bool
    pause: Pause | None
    workflows: tuple[str, ...]

    def bars(self, workflow_id: str | None) -> list[Bar]:
        found = []
        if not self.on or (workflow_id is not None and workflow_id not in self.workflows):
            found.append(Bar(self.since, self.until, "disabled"))
        if self.pause is not None:
            ends = [end for end in (self.until, self.pause.until) if end is not None]
            since, until = max(self.since, self.pause.since), min(ends, default=None)
            if until is None or since < until:
                found.append(Bar(since, until, "paused"))
        return found


class Absences:
    """A member's history is read once for each of its versions."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._known: OrderedDict[tuple[str, str], tuple[int, list[Spell]]] = OrderedDict()

    async def of(self, tenant: str, seat: Seat, workflow_id: str | None, after: int) -> list[Bar]:
        """Bars of its own and, with ``workflow_id``, times in which that was not its work; those
        that were over by ``after`` are left out. They hold while the seat's guard does."""
        spells = await self._spells(tenant, seat)
        return [
            bar
            for spell in spells
            if spell.until is None or spell.until > after
            for bar in spell.bars(workflow_id)
            if bar.until is None or bar.until > after
        ]

    async def _spells(self, tenant: str, seat: Seat) -> list[Spell]:
        place, revision = (tenant, seat.entry.roster_id), seat.guard.revision
        known = self._known.get(place)
        if known is not None and known[0] == revision:
            return known[1]
        history = await self._roster.history(*place)
        spells = _spells([each for each in history if each.revision <= revision])
        self._known[place] = revision, spells
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return spells


def _spells(history: list[Record]) -> list[Spell]:
    """From the newest version to the oldest."""
    ends = [None, *(record.created_at for record in history)]
    return [_spell(record, until) for record, until in zip(history, ends, strict=False)]


def _spell(record: Record, until: int | None) -> Spell:
    hired = decoded(record)
    on = hired.entry.enabled and not record.gone
    return Spell(record.created_at, until, on, hired.pause, hired.entry.workflows)
