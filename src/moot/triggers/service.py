"""Build everything that starts runs by itself, and start and stop its loops."""

from collections.abc import Awaitable, Callable

from moot.agents.roster.members import RosterService
from moot.clock import Clock
from moot.engine.host import Host
from moot.engine.start import AgentPins
from moot.net.outbound import Outbound
from moot.store.protocol import Store
from moot.store.records import DeliveryFilter
from moot.triggers.courier import Carrier, Courier, keep_open
from moot.triggers.inbound.deliveries import InboundDeliveries
from moot.triggers.inbound.dismissal import DismissedTriggers
from moot.triggers.inbound.gate import InboundGate
from moot.triggers.inbound.items import INBOUND_SOURCES, ItemService
from moot.triggers.inbound.overview import SubscriptionOverview
from moot.triggers.inbound.queues import QueueService
from moot.triggers.inbound.subscriptions import SubscriptionService
from moot.triggers.polling import PollingLoop
from moot.triggers.schedules.declarations import DeclaredSchedules
from moot.triggers.schedules.records import SCHEDULE_SOURCE
from moot.triggers.schedules.scheduler import Scheduler
from moot.triggers.schedules.service import ScheduleService
from moot.triggers.schedules.snapshot import ScheduleReader
from moot.triggers.start_run import RunStarter
from moot.triggers.webhooks.deliveries import WebhookDeliveries
from moot.triggers.webhooks.registrations import WEBHOOK_SOURCE, WebhookRegistry


class Triggers:
    """The schedules, subscriptions, queues and webhooks of a host."""

    def __init__(
        self,
        host: Host,
        store: Store,
        clock: Clock,
        roster: RosterService,
        pins: AgentPins,
        net: Outbound,
    ) -> None:
        self.roster, self.net = roster, net
        #: the sources that may start portfolio workflows on this host
        self.sources: set[str] = set()
        self.run_starter = RunStarter(host, roster, pins, clock, self.sources)
        self.courier = Courier(store, clock)
        self.webhooks = WebhookRegistry(store, clock, net)
        self.webhook_deliveries = sender = WebhookDeliveries(store, clock, self.webhooks, net)
        self.courier.carriers[WEBHOOK_SOURCE] = Carrier(sender.carry, sender.gate, "out")
        self.webhooks.look, sender.stir = self.courier.look, self.courier.news
        host.outbox = self.webhooks
        reader = ScheduleReader(store, clock, roster, host.flows)
        self.scheduler = Scheduler(host, store, clock, self.run_starter, reader)
        self.scheduler.look_at_retries = self.courier.look
        self.courier.carriers[SCHEDULE_SOURCE] = Carrier(self.scheduler.again, keep_open, "in")
        self.sources.add(SCHEDULE_SOURCE)
        self.schedules = ScheduleService(store, clock, host.flows, roster, self.scheduler)
        self.declared = DeclaredSchedules(store, clock, host.flows, self.schedules)
        self.subscriptions = SubscriptionService(store, clock, host.flows, roster)
        self.deliveries = InboundDeliveries(
            store, clock, self.run_starter, host.flows, roster, self.subscriptions
        )
        self.deliveries.look = self.courier.news
        self.deliveries.notices = sender.notices = self.scheduler.notices
        inbound = Carrier(self.deliveries.carry, InboundGate(self.subscriptions, roster).gate, "in")
        self.courier.carriers |= dict.fromkeys(INBOUND_SOURCES, inbound)
        self.sources.update(INBOUND_SOURCES)
        self.items = ItemService(host, self.subscriptions)
        self.queues = QueueService(clock, host.flows, roster, self.subscriptions, self.deliveries)
        overview = SubscriptionOverview(store, clock, roster, self.subscriptions, self.schedules)
        self.listening = overview
        self.leaving = DismissedTriggers(store, clock, self.subscriptions, overview)
        self._tasks = host.tasks
        roster.leaving.append(self.leaving.pause_all)
        roster.told.append(self._member_changed)
        #: the loops to start, and what to close, in order
        self.rounds: list[PollingLoop] = [self.courier.rounds, self.scheduler.rounds]
        self.closing: list[Callable[[], Awaitable[None]]] = [
            self.scheduler.rounds.aclose, self.courier.aclose, net.aclose,
        ]  # fmt: skip

    async def load(self) -> None:
        """Load what commits rely on. Must run before the first commit."""
        await self.webhooks.load()
        await self.subscriptions.load()

    def _member_changed(self, tenant: str, roster_id: str) -> None:
        """Retry what waits for a member whenever the member changes."""
        self._tasks.start(self._wake_member(tenant, roster_id))

    async def _wake_member(self, tenant: str, roster_id: str) -> None:
        self.scheduler.rounds.look()
        await self.deliveries.wake(tenant, DeliveryFilter(member=roster_id))

    def start(self) -> None:
        for loop in self.rounds:
            loop.start()

    def look(self) -> None:
        """Check everything soon, because the clock was set forward."""
        self.courier.news()
        for loop in self.rounds:
            loop.look()

    async def aclose(self) -> None:
        for close in self.closing:
            await close()
