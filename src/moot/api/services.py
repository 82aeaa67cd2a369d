"""The services that handlers use, built once when the server starts."""

from moot.agents.models.registry import ModelRegistry
from moot.agents.roster.members import MemberResolver
from moot.agents.tools.registry import ToolRegistry
from moot.api.access.auth import Keyring, RateLimit
from moot.api.http.idempotency import RequestLocks
from moot.api.seams import Seams
from moot.clock import Clock
from moot.config.settings import Settings
from moot.engine.host import Host
from moot.engine.start import AgentPins
from moot.net.outbound import Outbound
from moot.store.protocol import Store
from moot.triggers.service import Triggers

INGEST_RATE = 100


class Services:
    """Everything a handler needs. One instance for each server."""

    def __init__(
        self,
        settings: Settings,
        host: Host,
        store: Store,
        clock: Clock,
        instances: MemberResolver,
        seams: Seams | None = None,
    ) -> None:
        self.settings, self.host, self.store, self.clock = settings, host, store, clock
        self.instances, self.seams = instances, seams or Seams()
        self.agents, self.deployments = instances.agents, instances.deployments
        self.roster = instances.roster
        self.pins = AgentPins(instances, clock)
        net = Outbound(settings.allow_private_targets)
        self.triggers = Triggers(host, store, clock, self.roster, self.pins, net)
        self.keyring = Keyring(store, clock)
        self.rate = RateLimit(settings.rate_limit, clock)
        #: Unsigned requests per second that one subscription accepts.
        self.ingest_rate = RateLimit(INGEST_RATE, clock)
        self.request_locks = RequestLocks()
        #: The tools that agents may use.
        self.tools = ToolRegistry()
        #: The models of agents. Set when the server runs agents.
        self.book: ModelRegistry | None = None
        #: Signs links to open questions. Set when the store is open.
        self.token_secret = b""

    @property
    def has_roster(self) -> bool:
        """Return whether this host offers standing agents to callers."""
        return self.settings.roster and self.seams.has_capabilities(
            "agents.roster", "agents.roster.supported"
        )

    async def aclose(self) -> None:
        """Finish accepted work, then close every outside connection."""
        await self.triggers.aclose()
        await self.host.aclose()
        await self.tools.aclose()
        if self.book is not None:
            await self.book.aclose()
