"""The client of Moot's API, for blocking programs and for asyncio.

``operations`` describes each route once. ``http.senders`` sends the calls, and ``http.methods``
turns operations into methods. The client never imports the server.
"""

from typing import TYPE_CHECKING, Unpack

from moot.client import host, roster, schedules, triggers, webhooks
from moot.client.agent_bridge import AsyncBridgeResource, BridgeResource
from moot.client.errors import (
    AlreadyAnswered,
    ApiError,
    BadAnswer,
    BadRequest,
    ClientError,
    Conflict,
    ConversationClosed,
    Forbidden,
    Gone,
    NotAParticipant,
    NotFound,
    NotProvided,
    ParticipantMuted,
    RateLimited,
    RunAlreadyActive,
    RunTerminal,
    ThreadPaused,
    TimedOut,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unprocessable,
    Unreachable,
)
from moot.client.http.methods import async_client_method, client_method
from moot.client.http.senders import AsyncSender, CallSettings, Sender, ServerAccess
from moot.client.http.sse import Event, Spoken
from moot.client.operations.host import (
    get_discovery,
    get_health,
    get_index,
    get_metrics,
    get_openapi,
    get_readiness,
)
from moot.client.operations.runs import Edit, Options
from moot.client.operations.search import find_texts
from moot.client.operations.threads import CouncilOptions
from moot.client.runs import AsyncRun, AsyncRunsResource, Run, RunsResource
from moot.client.threads import AsyncThread, AsyncThreadsResource, Thread, ThreadsResource
from moot.config.server_location import locate_server
from moot.wire.interrupts import Question
from moot.wire.minutes import Line
from moot.wire.runs import RunRow, Snapshot

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "AlreadyAnswered", "ApiError", "AsyncClient", "AsyncRun", "AsyncThread", "BadAnswer",
    "BadRequest", "Client", "ClientError", "Conflict", "ConversationClosed", "Edit", "Event",
    "Forbidden", "Gone", "Line", "NotAParticipant", "NotFound", "NotProvided", "Options",
    "ParticipantMuted", "Question", "RateLimited", "Run", "RunAlreadyActive", "RunRow",
    "RunTerminal", "Snapshot", "Spoken", "Thread", "ThreadPaused", "TimedOut", "TooLarge",
    "Unauthenticated", "Unavailable", "Unprocessable", "Unreachable",
]  # fmt: skip


class Client:
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
        self.sender = Sender(ServerAccess(locate_server(url, key, database), settings), transport)
        self.runs = RunsResource(self.sender)
        self.threads = ThreadsResource(self.sender)
        self.bridge = BridgeResource(self.sender)
        self.inbox = host.InboxResource(self.sender)
        self.workflows = host.WorkflowsResource(self.sender)
        self.agents = host.AgentsResource(self.sender)
        self.memory = host.MemoryResource(self.sender)
        self.keys = host.KeysResource(self.sender)
        self.webhooks = webhooks.WebhooksResource(self.sender)
        self.schedules = schedules.SchedulesResource(self.sender)
        self.roster = roster.RosterResource(self.sender)
        self.queues = triggers.QueuesResource(self.sender)
        self.subscriptions = triggers.SubscriptionsResource(self.sender)

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


class AsyncClient:
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
        self.sender = AsyncSender(
            ServerAccess(locate_server(url, key, database), settings), transport
        )
        self.runs = AsyncRunsResource(self.sender)
        self.threads = AsyncThreadsResource(self.sender)
        self.bridge = AsyncBridgeResource(self.sender)
        self.inbox = host.AsyncInboxResource(self.sender)
        self.workflows = host.AsyncWorkflowsResource(self.sender)
        self.agents = host.AsyncAgentsResource(self.sender)
        self.memory = host.AsyncMemoryResource(self.sender)
        self.keys = host.AsyncKeysResource(self.sender)
        self.webhooks = webhooks.AsyncWebhooksResource(self.sender)
        self.schedules = schedules.AsyncSchedulesResource(self.sender)
        self.roster = roster.AsyncRosterResource(self.sender)
        self.queues = triggers.AsyncQueuesResource(self.sender)
        self.subscriptions = triggers.AsyncSubscriptionsResource(self.sender)

    discovery = async_client_method(get_discovery)
    openapi = async_client_method(get_openapi)
    health = async_client_method(get_health)
    ready = async_client_method(get_readiness)
    metrics = async_client_method(get_metrics)
    index = async_client_method(get_index)
    search = async_client_method(find_texts)

    @property
    def url(self) -> str:
        return self.sender.server.place.url

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
