"""The clients of a server: ``Client`` blocks, ``AsyncClient`` is for asyncio."""

from typing import TYPE_CHECKING, Unpack

from moot.client import host
from moot.client.http.async_sender import AsyncSender
from moot.client.http.attempts import CallSettings, ServerAccess
from moot.client.http.httpx_transport import HttpxTransport
from moot.client.http.methods import Resource, S, client_method
from moot.client.http.sender import Sender
from moot.client.operations.agent_bridge import BridgeResource
from moot.client.operations.host import (
    get_discovery,
    get_health,
    get_index,
    get_metrics,
    get_openapi,
    get_readiness,
)
from moot.client.operations.roster import RosterResource
from moot.client.operations.schedules import SchedulesResource
from moot.client.operations.search import find_texts
from moot.client.operations.threads import CouncilOptions
from moot.client.operations.triggers import QueuesResource, SubscriptionsResource
from moot.client.operations.webhooks import WebhooksResource
from moot.client.runs import AsyncRunsResource, RunsResource
from moot.client.threads import AsyncThread, AsyncThreadsResource, Thread, ThreadsResource
from moot.config.server_location import locate_server

if TYPE_CHECKING:
    import httpx2


class ClientResources(Resource[S]):
    """The resources and methods that both clients have alike."""

    def __init__(self, sender: S) -> None:
        super().__init__(sender)
        self.bridge = BridgeResource(sender)
        self.agents = host.AgentsResource(sender)
        self.memory = host.MemoryResource(sender)
        self.keys = host.KeysResource(sender)
        self.webhooks = WebhooksResource(sender)
        self.schedules = SchedulesResource(sender)
        self.roster = RosterResource(sender)
        self.queues = QueuesResource(sender)
        self.subscriptions = SubscriptionsResource(sender)

    discovery = client_method(get_discovery)
    openapi = client_method(get_openapi)
    health = client_method(get_health)
    ready = client_method(get_readiness)
    metrics = client_method(get_metrics)
    index = client_method(get_index)
    search = client_method(find_texts)

    @property
    def url(self) -> str:
        return self.sender.server.place.url


class Client(ClientResources[Sender]):
    """A blocking client of one server. Several threads may use it.

    Without an address and a key it looks for them like the command line: in ``MOOT_URL`` and
    ``MOOT_KEY``, then beside the database in this folder.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        database: str | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        transport: "httpx2.BaseTransport | None" = None,
    ) -> None:
        settings = CallSettings(timeout=timeout, retries=retries)
        server = ServerAccess(locate_server(url, key, database), settings)
        super().__init__(Sender(server, HttpxTransport(server, transport)))
        self.runs = RunsResource(self.sender)
        self.threads = ThreadsResource(self.sender)
        self.inbox = host.InboxResource(self.sender)
        self.workflows = host.WorkflowsResource(self.sender)

    def convene(
        self, question: str, *participants: str, **options: Unpack[CouncilOptions]
    ) -> Thread:
        """Convene a council: ``convene("Do we?", "ada", "bo", moderator="mo")``."""
        return self.threads.convene(question, participants, **options)

    def close(self) -> None:
        self.sender.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(ClientResources[AsyncSender]):
    """A client of one server for asyncio, with the same parameters as ``Client``."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        database: str | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        transport: "httpx2.AsyncBaseTransport | None" = None,
    ) -> None:
        settings = CallSettings(timeout=timeout, retries=retries)
        server = ServerAccess(locate_server(url, key, database), settings)
        super().__init__(AsyncSender(server, transport))
        self.runs = AsyncRunsResource(self.sender)
        self.threads = AsyncThreadsResource(self.sender)
        self.inbox = host.AsyncInboxResource(self.sender)
        self.workflows = host.AsyncWorkflowsResource(self.sender)

    async def convene(
        self, question: str, *participants: str, **options: Unpack[CouncilOptions]
    ) -> AsyncThread:
        """Convene a council: ``await convene("Do we?", "ada", "bo", moderator="mo")``."""
        return await self.threads.convene(question, participants, **options)

    async def aclose(self) -> None:
        await self.sender.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
