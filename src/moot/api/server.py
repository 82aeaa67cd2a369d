"""Starting and stopping: open the store, take up what is owed, listen; stop within seconds."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from moot.agents.definitions.deployments import Deployments
from moot.agents.definitions.registry import Agents
from moot.agents.invocation.desk import Invoke, nobody
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.registry import Book
from moot.agents.roster.members import KIND as MEMBER
from moot.agents.roster.members import Roster
from moot.agents.roster.resolve import Instances
from moot.api.access import signed_links
from moot.api.access.auth import DEFAULT_TENANT, LIVE_PREFIX, hash_of, new_key
from moot.api.app import App
from moot.api.host import discovery, selfcheck
from moot.api.http.connection import Http
from moot.api.services import Services
from moot.api.workflows.folder import register_folder
from moot.clock import Clock, SystemClock
from moot.config.project import Project, book_of, shelf_of
from moot.config.settings import (
    Settings,
    agents_folder,
    bootstrap_key,
    peer_key,
    peers_of,
    project,
    secret,
)
from moot.conformance.fixtures import seed
from moot.conformance.mock_model import Programs
from moot.core.errors import MootError
from moot.core.runs.start import Limits
from moot.core.workflows.node_types import NodeType
from moot.engine.effects.agent_budgets import Allowances
from moot.engine.effects.tenant_budget import Purse
from moot.engine.host import Host
from moot.engine.nodes import registry
from moot.engine.peers.calls import Peer
from moot.engine.streams.hub import inbox_of
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Store
from moot.store.sqlite import SqliteStore

log = logging.getLogger("moot.server")

GRACE_SECONDS = 3
UPKEEP_SECONDS = 3600
#: how long deliveries that have come to their end are remembered
DELIVERY_MS = 30 * 24 * 3_600_000
#: under which the store keeps the name this host has for others
HOST_ID = "host-id"


async def build(
    settings: Settings,
    store: Store,
    clock: Clock,
    given: Project | None = None,
    book: Book | None = None,
) -> Services:
    """Everything but the listener. The project is the one that lies here, and its models are
    spoken to, unless others are given."""
    programs = Programs()
    found = given or project()
    shelf = shelf_of(found, settings, secret)
    book = book or book_of(found, settings, secret, clock, project if given is None else None)
    agents = Agents(store, clock, shelf.problem, book.problem)
    deployments = Deployments(store, clock, agents)
    roster = Roster(store, clock, settings.roster)
    instances = Instances(roster, agents, deployments, clock)
    invoker = Invoker(book, instances.resolve, shelf)
    types = node_types(settings, programs, invoker)
    flows = Flows(store, types, clock, agents=instances.worker)
    heads, activities = settings.max_heads, settings.max_activities
    host = Host(store, flows, clock, limits_of(settings), heads, activities, invoker)
    host.presence.ttl_ms = settings.presence_s * 1000
    host.activities.ledger.purse = Purse(
        store, clock, settings.tenant_tokens_per_day, settings.tenant_money_per_day or 0.0
    )
    allowances = host.activities.ledger.purse.allowances = Allowances(store, clock, roster)
    allowances.ring = lambda tenant: host.hub.ring(inbox_of(tenant))
    services = Services(settings, host, store, clock, instances, programs)
    services.tools, services.book = shelf, book
    await services.triggers.load()
    fresh = clock.new_secret("").encode()
    services.token_secret = await store.secret(signed_links.SECRET_NAME, fresh)
    await meet(services)
    await first_key(services)
    if settings.conformance:
        services.fixtures = await seed(services)
    if (folder := agents_folder(settings)) is not None:
        for problem in await agents.load(DEFAULT_TENANT, folder):
            log.warning("An agent's file was left out: %s", problem)
    if settings.workflows:
        for problem in await register_folder(services, Path(settings.workflows)):
            log.warning("A workflow file was left out: %s", problem)
    return services


def limits_of(settings: Settings) -> Limits:
    return Limits(
        node_executions=settings.max_node_executions,
        duration_ms=settings.max_run_duration_ms,
        parallel=settings.max_parallel_nodes,
        depth=settings.max_depth,
        tree=settings.max_tree_runs,
    )


async def refuse_contradictions(services: Services) -> None:
    """Raises ValueError with a sentence when what this host would claim cannot be so."""
    bound = False
    for tenant in await services.store.record_tenants(MEMBER):
        seats = await services.roster.all(tenant)
        bound = bound or any(seat.entry.agent_ref.channel is not None for seat in seats)
    selfcheck.refuse(discovery.document(services), bound)


async def meet(services: Services) -> None:
    """Who this host is to others, and which others it knows."""
    settings, peers = services.settings, services.host.peers
    minted = await services.store.secret(HOST_ID, services.clock.new_id("moot-").encode())
    peers.host_id = settings.host_id or minted.decode()
    peers.address = settings.public_url or f"http://{settings.host}:{settings.port}"
    peers.patience_ms = settings.peer_patience_s * 1000
    peers.know([Peer(name, url, peer_key(name)) for name, url in peers_of(settings).items()])


def node_types(
    settings: Settings, programs: Programs | None = None, invoke: Invoke = nobody
) -> dict[str, NodeType]:
    types = registry.built_in(settings.conformance, programs, invoke)
    types.update(registry.from_entry_points())
    if settings.nodes:
        types.update(registry.from_file(Path(settings.nodes)))
    return types


async def first_key(services: Services) -> None:
    """An empty store gets the administrator's key that is given; the file beside it has one, too.

    A key in that file which this store does not know, or does not take any more, is replaced.
    """
    store, clock = services.store, services.clock
    given = bootstrap_key()
    if not await store.keys(None) and given is not None:
        key = new_key(clock, given, "bootstrap", DEFAULT_TENANT, [], [], admin=True)
        await store.put_key(key)
    place = key_file(services.settings)
    if not await _usable(services, place):
        secret = clock.new_secret(LIVE_PREFIX)
        key = new_key(clock, secret, "local", DEFAULT_TENANT, [], [], admin=True)
        await store.put_key(key)
        write_private(place, secret)


def key_file(settings: Settings) -> Path:
    return Path(settings.database + ".key")


async def _usable(services: Services, place: Path) -> bool:
    """Whether the file has a key that this store takes."""
    if not place.is_file():
        return False
    secret = place.read_text(errors="replace").strip()
    key = await services.store.key_by_hash(hash_of(secret))
    if key is None or key.revoked_at is not None:
        return False
    return key.expires_at is None or key.expires_at > services.clock.millis()


def write_private(place: Path, secret: str) -> None:
    """For the owner only (mode 0600), and never half written."""
    with tempfile.NamedTemporaryFile(
        "w", dir=place.parent, prefix=f"{place.name}.", delete=False
    ) as part:
        part.write(secret + "\n")
    Path(part.name).replace(place)


class Server:
    """A listening host. ``ready`` is called with its address once it answers."""

    def __init__(self, settings: Settings, ready: Callable[[str], None] | None = None) -> None:
        self._settings, self._ready = settings, ready

    async def run(self) -> None:
        clock = SystemClock()
        store = await SqliteStore.open(
            self._settings.database, queue_limit=self._settings.queue_limit
        )
        services = await build(self._settings, store, clock)
        try:
            await refuse_contradictions(services)
            await services.host.recover()
            services.triggers.start()
            relax_collector()
            await self._listen(services)
        finally:
            await services.aclose()
            if len(services.host.tasks):
                # A node swallows its cancellation. Everything is on disk: leave without it.
                logging.shutdown()
                os._exit(0)

    async def _listen(self, services: Services) -> None:
        config = uvicorn.Config(
            App(services),
            host=self._settings.host,
            port=self._settings.port,
            loop="none",
            http=Http,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            date_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=75,
            backlog=2048,
        )

        def started(address: str) -> None:
            if self._settings.public_url is None:
                services.host.peers.address = address
            self._started(address)

        server = _Uvicorn(config, services.host.hub.close, started)
        tidying = asyncio.ensure_future(upkeep(services))
        try:
            await server.serve()
        finally:
            tidying.cancel()

    def _started(self, address: str) -> None:
        if self._ready is not None:
            self._ready(address)


def relax_collector() -> None:
    """What a start makes stays for ever, and hardly anything later is a cycle: look less often."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


class _Uvicorn(uvicorn.Server):
    """Uvicorn that ends open streams before it waits for them, and stops when it is told."""

    def __init__(
        self, config: uvicorn.Config, end_streams: Callable[[], None], ready: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._end_streams, self._announce = end_streams, ready
        self._told = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def main_loop(self) -> None:
        """Uvicorn would look ten times a second, which is as often as an idle host would wake."""
        await self._told.wait()

    async def shutdown(self, sockets: Any = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """One SIGTERM or Ctrl-C stops gracefully; uvicorn would raise it again at the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._told.set()
        self._end_streams()


async def upkeep(services: Services, every: float = UPKEEP_SECONDS) -> None:
    """Answers older than their retention are forgotten, once an hour; what fails is tried again."""
    while True:
        oldest = services.clock.millis() - services.settings.receipt_hours * 3_600_000
        try:
            await services.store.forget_receipts(oldest)
            await services.store.forget_deliveries(services.clock.millis() - DELIVERY_MS)
        except MootError as refusal:
            log.warning(
                "Old answers could not be forgotten: %s",
                refusal.message,
                extra={"action": "upkeep.failed", "code": refusal.code},
            )
        await asyncio.sleep(every)


def serve(settings: Settings, ready: Callable[[str], None] | None = None) -> None:
    """Run until told to stop."""
    server = Server(settings, ready)
    try:
        import uvloop
    except ImportError:
        asyncio.run(server.run())
    else:
        uvloop.run(server.run())
