"""The client of Moot's API, for programs that wait and for asyncio.

Every route is described once, in ``calls_*``; ``sending`` carries calls out, ``bound`` makes
methods of them. Nothing here imports the server.
"""

from typing import TYPE_CHECKING, Unpack

from moot.client import host, roster, schedules, triggers, webhooks
from moot.client.agent_bridge import AsyncBridge, Bridge
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
from moot.client.http.methods import awaits, waits
from moot.client.http.senders import AsyncSender, Manner, Outlook, Sender
from moot.client.http.sse import Event, Spoken
from moot.client.operations import host as calls_host
from moot.client.operations import search as calls_reading
from moot.client.operations.runs import Edit, Options
from moot.client.operations.threads import Led
from moot.client.runs import AsyncRun, AsyncRuns, Run, Runs
from moot.client.threads import AsyncThread, AsyncThreads, Thread, Threads
from moot.config.place import find
from moot.wire.runs import Question, RunRow, Snapshot
from moot.wire.threads import Line

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
    """A server, spoken to by a program that waits. It may be used from several threads.

    Without an address and a key they are found as the command line finds them: ``MOOT_URL``,
    ``MOOT_KEY``, else beside the database of this folder.
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
        outlook = Outlook(find(url, key, database), Manner(timeout=timeout, retries=retries))
        self.sender = Sender(outlook, transport)
        self.runs = Runs(self.sender)
        self.threads = Threads(self.sender)
        self.bridge = Bridge(self.sender)
        self.inbox = host.InboxPart(self.sender)
        self.workflows = host.Workflows(self.sender)
        self.agents = host.Agents(self.sender)
        self.memory = host.Memory(self.sender)
        self.keys = host.Keys(self.sender)
        self.webhooks = webhooks.Webhooks(self.sender)
        self.schedules = schedules.Schedules(self.sender)
        self.roster = roster.Roster(self.sender)
        self.queues = triggers.Queues(self.sender)
        self.subscriptions = triggers.Subscriptions(self.sender)

    discovery = waits(calls_host.discovery)
    openapi = waits(calls_host.openapi)
    health = waits(calls_host.health)
    ready = waits(calls_host.ready)
    metrics = waits(calls_host.metrics)
    index = waits(calls_host.index)
    search = waits(calls_reading.search)

    @property
    def url(self) -> str:
        return self.sender.outlook.place.url

    def convene(self, question: str, *participants: str, **how: Unpack[Led]) -> Thread:
        """A council: ``convene("Do we?", "ada", "bo", moderator="mo")``."""
        return self.threads.convene(question, participants, **how)

    def close(self) -> None:
        self.sender.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient:
    """A server, spoken to from asyncio. What it is given is what ``Client`` is given."""

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
        outlook = Outlook(find(url, key, database), Manner(timeout=timeout, retries=retries))
        self.sender = AsyncSender(outlook, transport)
        self.runs = AsyncRuns(self.sender)
        self.threads = AsyncThreads(self.sender)
        self.bridge = AsyncBridge(self.sender)
        self.inbox = host.AsyncInboxPart(self.sender)
        self.workflows = host.AsyncWorkflows(self.sender)
        self.agents = host.AsyncAgents(self.sender)
        self.memory = host.AsyncMemory(self.sender)
        self.keys = host.AsyncKeys(self.sender)
        self.webhooks = webhooks.AsyncWebhooks(self.sender)
        self.schedules = schedules.AsyncSchedules(self.sender)
        self.roster = roster.AsyncRoster(self.sender)
        self.queues = triggers.AsyncQueues(self.sender)
        self.subscriptions = triggers.AsyncSubscriptions(self.sender)

    discovery = awaits(calls_host.discovery)
    openapi = awaits(calls_host.openapi)
    health = awaits(calls_host.health)
    ready = awaits(calls_host.ready)
    metrics = awaits(calls_host.metrics)
    index = awaits(calls_host.index)
    search = awaits(calls_reading.search)

    @property
    def url(self) -> str:
        return self.sender.outlook.place.url

    async def convene(self, question: str, *participants: str, **how: Unpack[Led]) -> AsyncThread:
        """A council: ``await convene("Do we?", "ada", "bo", moderator="mo")``."""
        return await self.threads.convene(question, participants, **how)

    async def aclose(self) -> None:
        await self.sender.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
