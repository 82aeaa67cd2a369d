"""Everything that wakes a host by itself, started once it listens and stopped before it goes."""

from collections.abc import Awaitable, Callable

from moot.agents.roster.members import Roster
from moot.clock import Clock
from moot.engine.agents.pins import Pins
from moot.engine.host import Host
from moot.net.outbound import Outbound
from moot.store.protocol import Store
from moot.store.records import DeliveryFilter
from moot.triggers.courier import Carrier, Courier, always
from moot.triggers.inbound.deliveries import Deliveries
from moot.triggers.inbound.dismissal import Leaving
from moot.triggers.inbound.gate import Holding
from moot.triggers.inbound.items import SOURCES, Items
from moot.triggers.inbound.overview import Listening
from moot.triggers.inbound.queues import Queues
from moot.triggers.inbound.subscriptions import Subscriptions
from moot.triggers.polling import Rounds
from moot.triggers.schedules.declarations import Declared
from moot.triggers.schedules.records import SOURCE as SCHEDULE
from moot.triggers.schedules.scheduler import Clockwork
from moot.triggers.schedules.service import Schedules
from moot.triggers.schedules.snapshot import Sight
from moot.triggers.start_run import Firing
from moot.triggers.webhooks.deliveries import Outgoing
from moot.triggers.webhooks.registrations import SOURCE, Webhooks


class Triggers:
    def __init__(
        self, host: Host, store: Store, clock: Clock, roster: Roster, pins: Pins, net: Outbound
    ) -> None:
        self.roster, self.net = roster, net
        #: what fires portfolios here: each part that brings such a source adds its name
        self.sources: set[str] = set()
        self.firing = Firing(host, roster, pins, clock, self.sources)
        self.courier = Courier(store, clock)
        self.webhooks = Webhooks(store, clock, net)
        self.outgoing = Outgoing(store, clock, self.webhooks, net)
        self.courier.carriers[SOURCE] = Carrier(self.outgoing.carry, self.outgoing.gate, "out")
        self.webhooks.look, self.outgoing.stir = self.courier.look, self.courier.news
        host.outbox = self.webhooks
        sight = Sight(store, clock, roster, host.flows)
        self.clockwork = Clockwork(host, store, clock, self.firing, sight)
        self.clockwork.look_at_retries = self.courier.look
        self.courier.carriers[SCHEDULE] = Carrier(self.clockwork.again, always, "in")
        self.sources.add(SCHEDULE)
        self.schedules = Schedules(store, clock, host.flows, roster, self.clockwork)
        self.declared = Declared(store, clock, host.flows, self.schedules)
        self.subscriptions = Subscriptions(store, clock, host.flows, roster)
        self.deliveries = Deliveries(
            store, clock, self.firing, host.flows, roster, self.subscriptions
        )
        self.deliveries.look = self.courier.news
        self.deliveries.news = self.outgoing.news = self.clockwork.news
        inward = Carrier(self.deliveries.carry, Holding(self.subscriptions, roster).gate, "in")
        self.courier.carriers |= dict.fromkeys(SOURCES, inward)
        self.sources.update(SOURCES)
        self.items = Items(host, self.subscriptions)
        self.queues = Queues(clock, host.flows, roster, self.subscriptions, self.deliveries)
        self.listening = Listening(store, clock, roster, self.subscriptions, self.schedules)
        self.leaving = Leaving(store, clock, self.subscriptions, self.listening)
        self._tasks = host.tasks
        roster.leaving.append(self.leaving.rest)
        roster.told.append(self._member_changed)
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
        await self.subscriptions.load()

    def _member_changed(self, tenant: str, roster_id: str) -> None:
        """What waits for a member is tried again when there is news of it."""
        self._tasks.start(self._member_news(tenant, roster_id))

    async def _member_news(self, tenant: str, roster_id: str) -> None:
        self.clockwork.rounds.look()
        await self.deliveries.wake(tenant, DeliveryFilter(member=roster_id))

    def start(self) -> None:
        for each in self.rounds:
            each.start()

    def look(self) -> None:
        """The clock was set forward."""
        self.courier.news()
        for each in self.rounds:
            each.look()

    async def aclose(self) -> None:
        for close in self.closing:
            await close()
