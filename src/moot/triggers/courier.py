"""Carry out due deliveries, a few at a time for each subscription.

The deliveries of one subscription form a lane. The lane with the fewest deliveries on the way goes
first, so a slow receiver delays only its own deliveries. Inbound and outbound deliveries have
separate limits."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from msgspec import Struct

from moot.clock import Clock
from moot.core.errors import MootError
from moot.core.errors.triggers import Overtaken
from moot.engine.tasks import Tasks
from moot.store.protocol import Store
from moot.store.records import Delivery, Lane
from moot.triggers.polling import PollingLoop

log = logging.getLogger("moot.triggers")

#: limits on concurrent deliveries in each direction: per lane, per tenant, in total
WIDTH = 8
SHARE = 16
MOST = 128
#: a lane rests this long (ms) after an unexpected error, and after a lost race
REST = 1000
MOMENT = 50
#: a shut lane is checked again after this long (ms) even without a wake-up
GLANCE = 60_000
NEVER = 2**62

#: tries a delivery once and writes its next revision: done, or due later
Carry = Callable[[Delivery], Awaitable[None]]


class LaneGate(Struct, frozen=True):
    """The number of deliveries of a lane that may be on the way. A shut lane opens at ``until``
    (ms) or on a wake-up."""

    width: int = WIDTH
    until: int | None = None


SHUT = LaneGate(0)
#: lane, now (ms) -> its gate
GateCheck = Callable[[Lane, int], Awaitable[LaneGate]]


async def keep_open(lane: Lane, now: int) -> LaneGate:
    return LaneGate()


class Carrier(Struct, frozen=True):
    """The function that delivers one source, and the gate of its lanes."""

    carry: Carry
    gate: GateCheck
    #: carriers of one direction share their limits
    direction: str


class Courier:
    """The loop that hands due deliveries to their carriers.

    Due deliveries stay in the store unchanged until the courier tries them, so a shut lane costs
    no write. When a carrier cannot even write its result, the delivery is due again a second
    later."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock, self._tasks = store, clock, Tasks()
        #: source -> its carrier
        self.carriers: dict[str, Carrier] = {}
        #: delivery id -> its lane
        self._on_the_way: dict[str, tuple[str, str]] = {}
        #: deliveries on the way: per lane, per tenant and direction, per direction
        self._count: Counter[tuple[str, ...]] = Counter()
        #: lane -> the time (ms) before which it is not checked
        self._rests: dict[tuple[str, str], int] = {}
        self._soonest = NEVER
        self.rounds = PollingLoop("Deliveries", clock, self._next, self._round)

    def look(self) -> None:
        """Check the lanes soon, because there are new deliveries."""
        self.rounds.look()

    def news(self) -> None:
        """Check all lanes soon, because a shut lane may be open."""
        self._rests.clear()
        self.rounds.look()

    @property
    def busy(self) -> bool:
        return bool(self._on_the_way)

    async def next_due(self) -> int | None:
        """Return when (ms) the first delivery can be tried; that may be in the past."""
        now, dues = self._clock.millis(), []
        for lane in await self._store.lanes():
            if (carrier := self.carriers.get(lane.source)) is None:
                continue
            gate = await carrier.gate(lane, now)
            opens_at = 0 if gate.width else gate.until
            dues += [] if opens_at is None else [max(lane.due_at, opens_at)]
        return min(dues, default=None)

    async def aclose(self) -> None:
        await self.rounds.aclose()
        await self._tasks.aclose()

    async def _next(self) -> int | None:
        """Return the time that the last round found. A lane without room is checked again when a
        delivery ends."""
        return None if self._soonest == NEVER else self._soonest

    async def _round(self, now: int) -> bool:
        self._soonest = NEVER
        self._rests = {lane: until for lane, until in self._rests.items() if until > now}
        ready: dict[str, list[tuple[Lane, int]]] = {}
        for lane in await self._store.lanes():
            carrier = self.carriers.get(lane.source)
            if carrier is None or (room := await self._room(carrier, lane, now)) <= 0:
                continue
            ready.setdefault(carrier.direction, []).append((lane, room))
        for direction, lanes in ready.items():
            await self._fill(direction, lanes, now)
        return False

    async def _room(self, carrier: Carrier, lane: Lane, now: int) -> int:
        """Return how many deliveries of the lane may start before the next look at its gate.

        Note when a later one is due. Count before asking the gate, because a delivery that ends
        meanwhile may shut it."""
        on_the_way = self._count[lane.tenant, lane.subscription, carrier.direction]
        opens_at = max(lane.due_at, self._rests.get((lane.tenant, lane.subscription), 0))
        if opens_at > now:
            self._soonest = min(self._soonest, opens_at)
            return 0
        gate = await carrier.gate(lane, now)
        if gate.width == 0:
            opens_at = min(now + GLANCE, gate.until or NEVER)
            self._rests[lane.tenant, lane.subscription] = opens_at
            self._soonest = min(self._soonest, opens_at)
        return gate.width - on_the_way

    async def _fill(self, direction: str, lanes: list[tuple[Lane, int]], now: int) -> None:
        """Start deliveries until there is no room or nothing is left. Each step starts one or
        drops a lane."""
        while self._count[direction,] < MOST:
            lanes = [each for each in lanes if self._count[each[0].tenant, direction] < SHARE]
            if not lanes:
                return
            chosen = min(lanes, key=lambda each: self._priority(direction, each[0]))
            lanes.remove(chosen)
            lane, room = chosen
            delivery = await self._first_idle(lane)
            if delivery is None or delivery.due_at is None:
                continue
            if delivery.due_at > now:
                self._soonest = min(self._soonest, delivery.due_at)
                continue
            self._send(direction, delivery)
            lanes += [(lane, room - 1)] if room > 1 else []

    def _priority(self, direction: str, lane: Lane) -> tuple[int, int, int]:
        """Prefer the tenant and lane with the fewest on the way, then the longest wait."""
        in_lane = self._count[lane.tenant, lane.subscription, direction]
        return self._count[lane.tenant, direction], in_lane, lane.due_at

    async def _first_idle(self, lane: Lane) -> Delivery | None:
        """Return the first delivery of the lane that is not on its way. The store may still show
        one that has just ended, so exclude those that were on the way before the read."""
        place = lane.tenant, lane.subscription
        excluded = {name for name, its_lane in self._on_the_way.items() if its_lane == place}
        deliveries = await self._store.due_deliveries(*place, NEVER, len(excluded) + 1)
        return next((each for each in deliveries if each.delivery_id not in excluded), None)

    def _send(self, direction: str, delivery: Delivery) -> None:
        name = delivery.delivery_id
        self._on_the_way[name] = delivery.tenant, delivery.subscription
        self._count.update(_counter_keys(direction, delivery))
        carry = self.carriers[delivery.source].carry
        self._tasks.start(self._carry(direction, carry, delivery))

    async def _carry(self, direction: str, carry: Carry, delivery: Delivery) -> None:
        try:
            await carry(delivery)
        except Overtaken:  # another task has carried or dropped it
            self._rest(delivery, MOMENT)
        except MootError as refusal:
            log.warning("Delivery %s waits: %s", delivery.delivery_id, refusal)
            self._rest(delivery, REST)
        except Exception:
            log.exception("Delivery %s could not be carried", delivery.delivery_id)
            self._rest(delivery, REST)
        finally:
            del self._on_the_way[delivery.delivery_id]
            self._count.subtract(_counter_keys(direction, delivery))
            self._count += Counter()  # drops the zero counts
            self.rounds.look()

    def _rest(self, delivery: Delivery, millis: int) -> None:
        self._rests[delivery.tenant, delivery.subscription] = self._clock.millis() + millis


def _counter_keys(direction: str, delivery: Delivery) -> list[tuple[str, ...]]:
    lane = delivery.tenant, delivery.subscription, direction
    return [lane, (delivery.tenant, direction), (direction,)]
