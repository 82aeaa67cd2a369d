"""Deliveries that are due are carried out, each by whoever carries its kind, few at a time.

What is owed to one subscription stands in a lane. Lanes take turns: whoever has least on the way
goes first, so that a slow receiver keeps its own deliveries waiting and nobody else's. What goes
out and what comes in do not share their room.
"""

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
from moot.triggers.polling import Rounds

log = logging.getLogger("moot.triggers")

#: deliveries of one lane on their way at a time, of one tenant, and of all; for each direction
WIDTH = 8
SHARE = 16
MOST = 128
#: after what nobody foresaw a lane rests for so long (ms), and after a race for so long
REST = 1000
MOMENT = 50
#: a lane that is shut is looked at again after so long (ms) even if nobody says that it is open
GLANCE = 60_000
NEVER = 2**62

#: tries a delivery once, and writes down how it went: its next revision, due later or not at all
Carry = Callable[[Delivery], Awaitable[None]]


class Gate(Struct, frozen=True):
    """How many of a lane may be on the way. A lane that is shut opens at ``until`` (ms), or when
    somebody says so."""

    width: int = WIDTH
    until: int | None = None


SHUT = Gate(0)
#: of a lane, at a moment (ms)
Look = Callable[[Lane, int], Awaitable[Gate]]


async def always(lane: Lane, now: int) -> Gate:
    return Gate()


class Carrier(Struct, frozen=True):
    carry: Carry
    gate: Look
    #: carriers of one direction share their room
    direction: str


class Courier:
    """What is due stays in the store as it is until it is tried: a lane that is shut costs no
    write. A delivery that its carrier could not even write down is due again a second later."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock, self._tasks = store, clock, Tasks()
        #: source -> who carries it
        self.carriers: dict[str, Carrier] = {}
        #: delivery -> the lane it is of
        self._on_the_way: dict[str, tuple[str, str]] = {}
        #: how many are on the way: of a lane, of a tenant in a direction, of a direction
        self._count: Counter[tuple[str, ...]] = Counter()
        #: lanes that are not looked at before then (ms)
        self._rests: dict[tuple[str, str], int] = {}
        self._soonest = NEVER
        self.rounds = Rounds("Deliveries", clock, self._next, self._round)

    def look(self) -> None:
        """There is something new to carry."""
        self.rounds.look()

    def news(self) -> None:
        """A lane that was shut may be open."""
        self._rests.clear()
        self.rounds.look()

    @property
    def busy(self) -> bool:
        return bool(self._on_the_way)

    async def next_due(self) -> int | None:
        """When (ms) the first of all can be tried; that may be long past."""
        now, dues = self._clock.millis(), []
        for lane in await self._store.lanes():
            if (carrier := self.carriers.get(lane.source)) is None:
                continue
            gate = await carrier.gate(lane, now)
            opens = 0 if gate.width else gate.until
            dues += [] if opens is None else [max(lane.due_at, opens)]
        return min(dues, default=None)

    async def aclose(self) -> None:
        await self.rounds.aclose()
        await self._tasks.aclose()

    async def _next(self) -> int | None:
        """As the last round found it. Where there was no room, the first that comes free looks
        again."""
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
        """How many more of it may set out before its gate is looked at again; what is due later
        is remembered. They are counted first: what comes home while the gate is looked at may
        be what shuts it."""
        going = self._count[lane.tenant, lane.subscription, carrier.direction]
        opens = max(lane.due_at, self._rests.get((lane.tenant, lane.subscription), 0))
        if opens > now:
            self._soonest = min(self._soonest, opens)
            return 0
        gate = await carrier.gate(lane, now)
        if gate.width == 0:
            opens = min(now + GLANCE, gate.until or NEVER)
            self._rests[lane.tenant, lane.subscription] = opens
            self._soonest = min(self._soonest, opens)
        return gate.width - going

    async def _fill(self, direction: str, lanes: list[tuple[Lane, int]], now: int) -> None:
        """Until there is no room or nothing is left; each step sends one or strikes off a lane."""
        while self._count[direction,] < MOST:
            lanes = [each for each in lanes if self._count[each[0].tenant, direction] < SHARE]
            if not lanes:
                return
            chosen = min(lanes, key=lambda each: self._turn(direction, each[0]))
            lanes.remove(chosen)
            lane, room = chosen
            found = await self._first(lane)
            if found is None or found.due_at is None:
                continue
            if found.due_at > now:
                self._soonest = min(self._soonest, found.due_at)
                continue
            self._send(direction, found)
            lanes += [(lane, room - 1)] if room > 1 else []

    def _turn(self, direction: str, lane: Lane) -> tuple[int, int, int]:
        """Who has least on the way is first, then who has waited longest."""
        of_lane = self._count[lane.tenant, lane.subscription, direction]
        return self._count[lane.tenant, direction], of_lane, lane.due_at

    async def _first(self, lane: Lane) -> Delivery | None:
        """The first that is not on its way. One that was when the store was asked may be read as
        it was before."""
        before = {
            name for name, place in self._on_the_way.items()
            if place == (lane.tenant, lane.subscription)
        }  # fmt: skip
        found = await self._store.due_deliveries(
            lane.tenant, lane.subscription, NEVER, len(before) + 1
        )
        return next((each for each in found if each.delivery_id not in before), None)

    def _send(self, direction: str, delivery: Delivery) -> None:
        name = delivery.delivery_id
        self._on_the_way[name] = delivery.tenant, delivery.subscription
        self._count.update(_places(direction, delivery))
        carry = self.carriers[delivery.source].carry
        self._tasks.start(self._carry(direction, carry, delivery))

    async def _carry(self, direction: str, carry: Carry, delivery: Delivery) -> None:
        try:
            await carry(delivery)
        except Overtaken:  # somebody else has carried it, or dropped it
            self._rest(delivery, MOMENT)
        except MootError as refusal:
            log.warning("Delivery %s waits: %s", delivery.delivery_id, refusal)
            self._rest(delivery, REST)
        except Exception:
            log.exception("Delivery %s could not be carried", delivery.delivery_id)
            self._rest(delivery, REST)
        finally:
            del self._on_the_way[delivery.delivery_id]
            self._count.subtract(_places(direction, delivery))
            self._count += Counter()  # keeps what is not nothing
            self.rounds.look()

    def _rest(self, delivery: Delivery, millis: int) -> None:
        self._rests[delivery.tenant, delivery.subscription] = self._clock.millis() + millis


def _places(direction: str, delivery: Delivery) -> list[tuple[str, ...]]:
    lane = delivery.tenant, delivery.subscription, direction
    return [lane, (delivery.tenant, direction), (direction,)]
