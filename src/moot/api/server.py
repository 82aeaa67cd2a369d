"""Starting and stopping: open the store, take up what is owed, listen; stop within seconds."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from moot.api import tokens
from moot.api.app import App
from moot.api.auth import DEFAULT_TENANT, LIVE_PREFIX, new_key
from moot.api.fixtures import seed
from moot.api.folder import register_folder
from moot.api.services import Services
from moot.clock import Clock, SystemClock
from moot.config import Settings, bootstrap_key
from moot.core.outcomes import NodeType
from moot.core.starting import Limits
from moot.engine.flows import Flows
from moot.engine.host import Host
from moot.engine.nodes import registry
from moot.store.protocol import Store
from moot.store.sqlite import SqliteStore

log = logging.getLogger("moot.server")

GRACE_SECONDS = 3


async def build(settings: Settings, store: Store, clock: Clock) -> Services:
    """Everything but the listener."""
    flows = Flows(store, node_types(settings), clock)
    limits = Limits(
        node_executions=settings.max_node_executions,
        duration_ms=settings.max_run_duration_ms,
        parallel=settings.max_parallel_nodes,
        depth=settings.max_depth,
    )
    host = Host(store, flows, clock, limits, settings.max_heads, settings.max_activities)
    services = Services(settings, host, store, clock)
    fresh = clock.new_secret("").encode()
    services.token_secret = await store.secret(tokens.SECRET_NAME, fresh)
    await first_key(services)
    if settings.conformance:
        services.fixtures = await seed(services)
    if settings.workflows:
        for problem in await register_folder(services, Path(settings.workflows)):
            log.warning("A workflow file was left out: %s", problem)
    return services


def node_types(settings: Settings) -> dict[str, NodeType]:
    types = registry.built_in(settings.conformance)
    types.update(registry.from_entry_points())
    if settings.nodes:
        types.update(registry.from_file(Path(settings.nodes)))
    return types


async def first_key(services: Services) -> None:
    """An empty store gets an administrator's key: the given one, or one in a file beside it."""
    store, clock = services.store, services.clock
    given = bootstrap_key()
    if not await store.keys(None) and given is not None:
        key = new_key(clock, given, "bootstrap", DEFAULT_TENANT, [], [], admin=True)
        await store.put_key(key)
    place = key_file(services.settings)
    if not place.exists():
        secret = clock.new_secret(LIVE_PREFIX)
        key = new_key(clock, secret, "local", DEFAULT_TENANT, [], [], admin=True)
        await store.put_key(key)
        write_private(place, secret)


def key_file(settings: Settings) -> Path:
    return Path(settings.database + ".key")


def write_private(place: Path, secret: str) -> None:
    place.touch(mode=0o600)
    place.chmod(0o600)
    place.write_text(secret + "\n")


class Server:
    """A listening host. ``ready`` is called with its address once it answers."""

    def __init__(self, settings: Settings, ready: Callable[[str], None] | None = None) -> None:
        self._settings, self._ready = settings, ready
        self._uvicorn: uvicorn.Server | None = None

    async def run(self) -> None:
        clock = SystemClock()
        store = await SqliteStore.open(
            self._settings.database, queue_limit=self._settings.queue_limit
        )
        services = await build(self._settings, store, clock)
        try:
            await services.host.recover()
            await self._listen(services)
        finally:
            await services.host.aclose()

    async def _listen(self, services: Services) -> None:
        config = uvicorn.Config(
            App(services),
            host=self._settings.host,
            port=self._settings.port,
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=75,
            backlog=2048,
        )
        self._uvicorn = server = _Uvicorn(config, services.host.hub.close, self._started)
        upkeep = asyncio.ensure_future(_upkeep(services))
        try:
            await server.serve()
        finally:
            upkeep.cancel()

    def _started(self, address: str) -> None:
        if self._ready is not None:
            self._ready(address)


class _Uvicorn(uvicorn.Server):
    """Uvicorn that ends open streams before it waits for them."""

    def __init__(
        self, config: uvicorn.Config, end_streams: Callable[[], None], ready: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._end_streams, self._announce = end_streams, ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")

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
        self._end_streams()


async def _upkeep(services: Services) -> None:
    """Answers older than their retention are forgotten, once an hour."""
    while True:
        oldest = services.clock.millis() - services.settings.receipt_hours * 3_600_000
        await services.store.forget_receipts(oldest)
        await asyncio.sleep(3600)


def serve(settings: Settings, ready: Callable[[str], None] | None = None) -> None:
    """Run until told to stop."""
    server = Server(settings, ready)
    try:
        import uvloop
    except ImportError:
        asyncio.run(server.run())
    else:
        uvloop.run(server.run())
