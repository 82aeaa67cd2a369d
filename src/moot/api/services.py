"""What the handlers work with, made once when the server starts."""

from moot.agents.models.registry import Book
from moot.agents.roster.resolve import Instances
from moot.agents.tools.registry import Shelf
from moot.api.access.auth import Keyring
from moot.api.http.locks import Turns
from moot.api.http.rate_limit import RateLimit
from moot.clock import Clock
from moot.config.settings import Settings
from moot.conformance.mock_model import Programs
from moot.engine.agents.pins import Pins
from moot.engine.host import Host
from moot.net.outbound import Outbound
from moot.store.protocol import Store
from moot.triggers.service import Triggers

INGEST_RATE = 100


class Services:
    def __init__(
        self,
        settings: Settings,
        host: Host,
        store: Store,
        clock: Clock,
        instances: Instances,
        programs: Programs | None = None,
    ) -> None:
        self.settings, self.host, self.store, self.clock = settings, host, store, clock
        self.instances = instances
        self.agents, self.deployments = instances.agents, instances.deployments
        self.roster = instances.roster
        self.pins = Pins(instances, clock)
        net = Outbound(settings.allow_private_targets)
        self.triggers = Triggers(host, store, clock, self.roster, self.pins, net)
        self.keyring = Keyring(store, clock)
        self.rate = RateLimit(settings.rate_limit, clock)
        #: requests a second that one subscription takes of whoever does not sign them rightly
        self.ingest_rate = RateLimit(INGEST_RATE, clock)
        self.turns = Turns()
        #: what agents can be given to use
        self.tools = Shelf()
        #: the models agents speak through; set where agents speak
        self.book: Book | None = None
        #: signs links to open questions; set when the store is open
        self.token_secret = b""
        #: published fixtures that really run here (only with --conformance)
        self.fixtures: list[str] = []
        #: capabilities a test has switched off or on (only with --conformance)
        self.overlay: dict[str, bool] = {}
        #: (tenant, a test's name for a council) -> its run (only with --conformance)
        self.councils: dict[tuple[str, str], str] = {}
        #: what tests have told the mock model to say (only with --conformance)
        self.programs = programs or Programs()

    @property
    def keeps_roster(self) -> bool:
        """Whether there are standing agents here, for all who ask from outside."""
        switched = (self.overlay.get(name) for name in ("agents.roster", "agents.roster.supported"))
        return self.settings.roster and False not in switched

    async def aclose(self) -> None:
        """Finish what was accepted, then let go of everything outside."""
        await self.triggers.aclose()
        await self.host.aclose()
        await self.tools.aclose()
        if self.book is not None:
            await self.book.aclose()
