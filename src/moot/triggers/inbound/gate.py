"""When what came in may be tried: its subscription takes something, and its member may do it."""

from moot.agents.roster.members import Roster
from moot.store.records import Lane
from moot.triggers.courier import SHUT, Gate
from moot.triggers.inbound.subscriptions import Subscriptions


class Holding:
    def __init__(self, subscriptions: Subscriptions, roster: Roster) -> None:
        self._subscriptions, self._roster = subscriptions, roster

    async def gate(self, lane: Lane, now: int) -> Gate:
        """What waits for somebody is not written again to say so."""
        seen = await self._subscriptions.find(lane.tenant, lane.subscription)
        if seen is None:
            return Gate()  # what is left is put away
        if seen.it.workflow_id is None:
            return SHUT  # whatever its pause says: it ends when somebody is bound
        if seen.it.state != "active":
            return Gate(0, seen.it.until)
        if seen.it.roster_id is None:
            return Gate()
        seat = await self._roster.find(lane.tenant, seen.it.roster_id)
        if seat is None or seen.it.workflow_id not in seat.entry.workflows:
            return SHUT
        if seat.hired.off_duty(now) is None:
            return Gate()
        pause = seat.hired.pause
        return Gate(0, pause.until if pause is not None and seat.entry.enabled else None)
