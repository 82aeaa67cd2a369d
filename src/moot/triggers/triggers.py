"""Everything that wakes a host by itself, started once it listens and stopped before it goes."""

from collections.abc import Awaitable, Callable

from moot.agents.roster import Roster
from moot.clock import Clock
from moot.engine.host import Host
from moot.engine.pins import Pins
from moot.net.outbound import Outbound
from moot.store.protocol import Store
from moot.triggers.clockwork import Clockwork
from moot.triggers.courier import Courier
from moot.triggers.declared import Declared
from moot.triggers.firing import Firing
from moot.triggers.outgoing import Outgoing
from moot.triggers.rounds import Rounds
from moot.triggers.schedules import Schedules
from moot.triggers.sight import Sight
from moot.triggers.webhooks import SOURCE, Webhooks


class Triggers:
    def __init__(
        self, host: Host, store: Store, clock: Clock, roster: Roster, pins: Pins, net: Outbound
    ) -> None:
        self.roster = roster
        self.firing = Firing(host, roster, pins, clock)
        self.courier = Courier(store, clock)
        self.webhooks = Webhooks(store, clock, net)
        self.outgoing = Outgoing(store, clock, self.webhooks, net)
        self.courier.carriers[SOURCE] = self.outgoing.carry
        self.webhooks.look = self.courier.look
        host.outbox = self.webhooks
        self.clockwork = Clockwork(host, store, clock, self.firing, Sight(store, clock, roster))
        self.schedules = Schedules(store, clock, host.flows, roster, self.clockwork)
        self.declared = Declared(store, clock, host.flows, self.schedules)
        #: what fires portfolios here: each part that brings such a source adds its name
        self.sources: set[str] = {"schedule"}
        #: what goes round, and what must be let go of
        self.rounds: list[Rounds] = [self.courier.rounds, self.clockwork.rounds]
        self.closing: list[Callable[[], Awaitable[None]]] = [
            self.clockwork.rounds.aclose,
            self.courier.aclose,
            net.aclose,
        ]

    async def load(self) -> None:
        """What must be known before the first commit."""
        await self.webhooks.load()

    def start(self) -> None:
        for each in self.rounds:
            each.start()

    def look(self) -> None:
        """The clock was set forward."""
        for each in self.rounds:
            each.look()

    async def aclose(self) -> None:
        for close in self.closing:
            await close()
