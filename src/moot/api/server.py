"""Start and stop the server: open the store, recover, listen."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import uvicorn

from moot.agents.definitions.registry import AgentRegistry, DeploymentService
from moot.agents.invocation.context import Invoke, no_agents
from moot.agents.invocation.invoke import Invoker
from moot.agents.models.registry import ModelRegistry
from moot.agents.project import build_model_registry, build_tool_registry
from moot.agents.roster import members
from moot.agents.roster.members import MemberResolver, RosterService
from moot.api.access import signed_links
from moot.api.access.auth import DEFAULT_TENANT, LIVE_PREFIX, hash_secret, new_key
from moot.api.app import App
from moot.api.host import discovery, selfcheck
from moot.api.http.connection import HttpConnection
from moot.api.seams import Seams
from moot.api.services import Services
from moot.api.workflows.folder import register_folder
from moot.clock import Clock, SystemClock
from moot.config.project import ProjectConfig
from moot.config.settings import (
    Settings,
    find_agents_folder,
    load_project,
    parse_peers,
    read_bootstrap_key,
    read_peer_key,
    read_secret,
)
from moot.core.errors import MootError
from moot.core.runs.start import RunLimits
from moot.core.workflows.node_types import NodeType
from moot.engine.effects.budgets import AgentBudgets, TenantBudget
from moot.engine.host import Host
from moot.engine.nodes import registry
from moot.engine.peers.calls import Peer
from moot.engine.streams.hub import inbox_channel
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Store
from moot.store.sqlite import SqliteStore

log = logging.getLogger("moot.server")

GRACE_SECONDS = 3
UPKEEP_SECONDS = 3600
#: How long the store keeps finished deliveries.
DELIVERY_MS = 30 * 24 * 3_600_000
#: The name of the record with this host's id.
HOST_ID = "host-id"


async def build_services(
    settings: Settings,
    store: Store,
    clock: Clock,
    chosen: ProjectConfig | None = None,
    book: ModelRegistry | None = None,
    seams: Seams | None = None,
) -> Services:
    """Build everything but the listener.

    ``chosen`` replaces the project in this folder, and ``book`` the models of that project. A host
    under test has ``seams`` of its own.
    """
    seams = seams or Seams()
    config = chosen or load_project()
    shelf = build_tool_registry(config, settings, read_secret)
    book = book or build_model_registry(
        config, settings, read_secret, clock, load_project if chosen is None else None
    )
    agents = AgentRegistry(store, clock, shelf.problem, book.problem)
    deployments = DeploymentService(store, clock, agents)
    roster = RosterService(store, clock, settings.roster)
    instances = MemberResolver(roster, agents, deployments, clock)
    invoker = Invoker(book, instances.resolve, shelf)
    types = build_node_types(settings, invoker, seams.node_types(invoker))
    flows = WorkflowRegistry(store, types, clock, agents=instances.worker)
    heads, activities = settings.max_heads, settings.max_activities
    host = Host(store, flows, clock, limits_from_settings(settings), heads, activities, invoker)
    host.presence.ttl_ms = settings.presence_s * 1000
    host.activities.ledger.tenant_budget = TenantBudget(
        store, clock, settings.tenant_tokens_per_day, settings.tenant_money_per_day or 0.0
    )
    allowances = host.activities.ledger.tenant_budget.agent_budgets = AgentBudgets(
        store, clock, roster
    )
    allowances.ring = lambda tenant: host.hub.ring(inbox_channel(tenant))
    services = Services(settings, host, store, clock, instances, seams)
    services.tools, services.book = shelf, book
    await services.triggers.load()
    fresh = clock.new_secret("").encode()
    services.token_secret = await store.secret(signed_links.SECRET_NAME, fresh)
    await set_up_peers(services)
    await ensure_admin_key(services)
    await seams.prepare(services)
    if (folder := find_agents_folder(settings)) is not None:
        for problem in await agents.load(DEFAULT_TENANT, folder):
            log.warning("An agent's file was left out: %s", problem)
    if settings.workflows:
        for problem in await register_folder(services, Path(settings.workflows)):
            log.warning("A workflow file was left out: %s", problem)
    return services


def limits_from_settings(settings: Settings) -> RunLimits:
    return RunLimits(
        node_executions=settings.max_node_executions,
        duration_ms=settings.max_run_duration_ms,
        parallel=settings.max_parallel_nodes,
        depth=settings.max_depth,
        tree=settings.max_tree_runs,
    )


async def check_discovery(services: Services) -> None:
    """Raise ValueError when the claims of this host contradict each other."""
    bound = False
    for tenant in await services.store.record_tenants(members.MEMBER_KIND):
        roster = await services.roster.all(tenant)
        bound = bound or any(member.entry.agent_ref.channel is not None for member in roster)
    selfcheck.check_claims(discovery.discovery_document(services), bound)


async def set_up_peers(services: Services) -> None:
    """Set the host's own id and address, and the peers it knows."""
    settings, peers = services.settings, services.host.peers
    minted = await services.store.secret(HOST_ID, services.clock.new_id("moot-").encode())
    peers.host_id = settings.host_id or minted.decode()
    peers.address = settings.public_url or f"http://{settings.host}:{settings.port}"
    peers.patience_ms = settings.peer_patience_s * 1000
    peers.know(
        [Peer(name, url, read_peer_key(name)) for name, url in parse_peers(settings).items()]
    )


def build_node_types(
    settings: Settings, invoke: Invoke = no_agents, extra: Iterable[NodeType] = ()
) -> dict[str, NodeType]:
    types = registry.built_in_types(invoke, extra)
    types.update(registry.types_from_entry_points())
    if settings.nodes:
        types.update(registry.types_from_file(Path(settings.nodes)))
    return types


async def ensure_admin_key(services: Services) -> None:
    """Make sure that an administrator's key exists.

    An empty store gets the key from the environment. The key file beside the store always holds a
    valid key; an unknown or revoked one is replaced.
    """
    store, clock = services.store, services.clock
    secret_from_settings = read_bootstrap_key()
    if not await store.keys(None) and secret_from_settings is not None:
        key = new_key(clock, secret_from_settings, "bootstrap", DEFAULT_TENANT, [], [], admin=True)
        await store.put_key(key)
    place = key_file(services.settings)
    if not await _has_usable_key(services, place):
        secret = clock.new_secret(LIVE_PREFIX)
        key = new_key(clock, secret, "local", DEFAULT_TENANT, [], [], admin=True)
        await store.put_key(key)
        write_secret_file(place, secret)


def key_file(settings: Settings) -> Path:
    return Path(settings.database + ".key")


async def _has_usable_key(services: Services, place: Path) -> bool:
    """Return whether the file holds a valid key of this store."""
    if not place.is_file():
        return False
    secret = place.read_text(errors="replace").strip()
    key = await services.store.key_by_hash(hash_secret(secret))
    if key is None or key.revoked_at is not None:
        return False
    return key.expires_at is None or key.expires_at > services.clock.millis()


def write_secret_file(place: Path, secret: str) -> None:
    """Write the file with mode 0600, in one step."""
    with tempfile.NamedTemporaryFile(
        "w", dir=place.parent, prefix=f"{place.name}.", delete=False
    ) as part:
        part.write(secret + "\n")
    Path(part.name).replace(place)


async def run_server(
    settings: Settings, ready: Callable[[str], None] | None, seams: Seams | None
) -> None:
    """Listen until a signal stops the server. Call ``ready`` with the address once it answers."""
    clock = SystemClock()
    store = await SqliteStore.open(settings.database, queue_limit=settings.queue_limit)
    services = await build_services(settings, store, clock, seams=seams)
    try:
        await check_discovery(services)
        await services.host.recover()
        services.triggers.start()
        tune_garbage_collector()
        await _listen(services, ready)
    finally:
        await services.aclose()
        if len(services.host.tasks):
            # A node ignores its cancellation. Everything is on disk, so exit without it.
            logging.shutdown()
            os._exit(0)


async def _listen(services: Services, ready: Callable[[str], None] | None) -> None:
    settings = services.settings
    config = uvicorn.Config(
        App(services),
        host=settings.host,
        port=settings.port,
        loop="none",
        http=HttpConnection,
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

    def report_address(address: str) -> None:
        if settings.public_url is None:
            services.host.peers.address = address
        if ready is not None:
            ready(address)

    server = _Uvicorn(config, services.host.hub.close, report_address)
    tidying = asyncio.ensure_future(forget_expired_records(services))
    try:
        await server.serve()
    finally:
        tidying.cancel()


def tune_garbage_collector() -> None:
    """Freeze what the start created and collect less often. Later garbage is rarely cyclic."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that ends open streams before it waits for them."""

    def __init__(
        self, config: uvicorn.Config, end_streams: Callable[[], None], ready: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._end_streams, self._announce = end_streams, ready
        self._stop_requested = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def main_loop(self) -> None:
        """Wait for the stop signal. Uvicorn would poll ten times a second and wake an idle host."""
        await self._stop_requested.wait()

    async def shutdown(self, sockets: Any = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Stop gracefully on one SIGTERM or Ctrl-C. Uvicorn would raise it again at the end."""
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
        self._stop_requested.set()
        self._end_streams()


async def forget_expired_records(services: Services, every: float = UPKEEP_SECONDS) -> None:
    """Delete old receipts and deliveries once an hour. A failure is logged and tried again."""
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


def serve(
    settings: Settings, ready: Callable[[str], None] | None = None, seams: Seams | None = None
) -> None:
    """Run until a signal stops the server."""
    running = run_server(settings, ready, seams)
    try:
        import uvloop
    except ImportError:
        asyncio.run(running)
    else:
        uvloop.run(running)
