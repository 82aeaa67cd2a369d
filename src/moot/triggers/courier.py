"""Deliveries that are due are carried out, each by whoever carries its kind, few at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moot.clock import Clock
from moot.core.errors import MootError
from moot.core.trigger_errors import Overtaken
from moot.store.protocol import Store
from moot.store.standing import Delivery
from moot.triggers.rounds import Rounds

log = logging.getLogger("moot.triggers")

#: deliveries on their way at a time, of all tenants
LANES = 32
PAGE = 256

#: tries a delivery once, and writes down how it went: its next revision, due later or not at all
Carry = Callable[[Delivery], Awaitable[None]]


class Courier:
    """A delivery that its carrier could not even write down is due again a second later."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        #: source -> who carries it
        self.carriers: dict[str, Carry] = {}
        self._on_the_way: dict[str, asyncio.Task[None]] = {}
        self.rounds = Rounds("Deliveries", clock, self._next, self._round)

    def look(self) -> None:
        self.rounds.look()

    async def aclose(self) -> None:
        await self.rounds.aclose()
        going = list(self._on_the_way.values())
        for task in going:
            task.cancel()
        if going:
            await asyncio.wait(going, timeout=1.0)

    async def _next(self) -> int | None:
        """With every lane taken, the first that comes free looks again."""
        if len(self._on_the_way) >= LANES:
            return None
        found = await self._store.due_deliveries(2**62, LANES + 1)
        waiting = [each for each in found if self._can_go(each)]
        return waiting[0].due_at if waiting else None

    def _can_go(self, delivery: Delivery) -> bool:
        return delivery.source in self.carriers and delivery.delivery_id not in self._on_the_way

    async def _round(self, now: int) -> bool:
        found = await self._store.due_deliveries(now, PAGE)
        for delivery in found:
            if len(self._on_the_way) >= LANES:
                break
            if self._can_go(delivery):
                carry = self.carriers[delivery.source]
                task = asyncio.get_running_loop().create_task(self._carry(carry, delivery))
                self._on_the_way[delivery.delivery_id] = task
        return False

    async def _carry(self, carry: Carry, delivery: Delivery) -> None:
        try:
            await carry(delivery)
        except Overtaken:
            pass  # somebody else has carried it, or dropped it
        except MootError as refusal:
            log.warning("Delivery %s waits: %s", delivery.delivery_id, refusal)
            await asyncio.sleep(1)
        except Exception:
            log.exception("Delivery %s could not be carried", delivery.delivery_id)
            await asyncio.sleep(1)
        finally:
            del self._on_the_way[delivery.delivery_id]
            self.rounds.look()
