"""Decide when inbound deliveries may be tried, and how many may be stored."""

from moot.agents.roster.members import RosterService
from moot.store.protocol import Store
from moot.store.records import Lane
from moot.triggers.courier import SHUT, LaneGate
from moot.triggers.inbound.subscriptions import SubscriptionService


class InboundGate:
    """Opens the lane of a subscription while it is active and its member is on duty."""

    def __init__(self, subscriptions: SubscriptionService, roster: RosterService) -> None:
        self._subscriptions, self._roster = subscriptions, roster

    async def gate(self, lane: Lane, now: int) -> LaneGate:
        """Return the gate of the lane. A shut lane costs no write for the deliveries that wait in
        it."""
        version = await self._subscriptions.find(lane.tenant, lane.subscription)
        if version is None:
            return LaneGate()  # the carrier drops what is left
        if version.it.workflow_id is None:
            return SHUT  # it opens when a workflow is bound, even during a pause
        if version.it.state != "active":
            return LaneGate(0, version.it.until)
        if version.it.roster_id is None:
            return LaneGate()
        member = await self._roster.find(lane.tenant, version.it.roster_id)
        if member is None or version.it.workflow_id not in member.entry.workflows:
            return SHUT
        if member.hired.off_duty(now) is None:
            return LaneGate()
        pause = member.hired.pause
        return LaneGate(0, pause.until if pause is not None and member.entry.enabled else None)


class DeliveryCapacity:
    """A limit on the deliveries of a subscription in some states.

    Counting reads all rows of a subscription, so the free places are counted once and then used
    up. Rows that leave free a place at the next count. The limit is never exceeded, but may be
    reached early."""

    def __init__(self, store: Store, states: tuple[str, ...], most: int) -> None:
        self._store, self._states, self._most = store, states, most
        self._free: dict[tuple[str, str], int] = {}

    async def take_place(self, tenant: str, subscription: str) -> bool:
        """Take one place and return True, or return False when none is free."""
        name = (tenant, subscription)
        if self._free.get(name, 0) < 1:
            counts = await self._store.delivery_counts(tenant, subscription)
            used = sum(counts.get(state, 0) for state in self._states)
            self._free[name] = self._most - used
        if self._free[name] < 1:
            return False
        self._free[name] -= 1
        return True
