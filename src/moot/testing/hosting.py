"""A real host in a thread of its own, and the way to it: requests that never reach a network."""

import asyncio
import contextlib
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from moot.agents.models.registry import Book
from moot.api.access.auth import DEFAULT_TENANT
from moot.api.app import App
from moot.api.server import build, key_file
from moot.api.services import Services
from moot.config.project import Project
from moot.config.settings import Settings
from moot.core.state.run import Run
from moot.core.workflows.node_types import NodeType
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Store
from moot.store.sqlite import SqliteStore
from moot.testing.clock import VirtualClock

T = TypeVar("T")

#: real seconds a bench waits for anything before it says so
PATIENCE_S = 30.0
#: how long it looks away while something is at work
GLANCE_S = 0.002
MOST_PIECES = 64


class Stuck(AssertionError):
    """A run did not come to rest."""


class Loop:
    """An event loop in a thread of its own, for callers that wait."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="moot-bench", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T], seconds: float = PATIENCE_S + 5) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def soon(self, act: Callable[[], Any]) -> None:
        with contextlib.suppress(RuntimeError):  # it is closed: nobody is left to hear of it
            self._loop.call_soon_threadsafe(act)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        if not self._thread.is_alive():
            self._loop.close()


class InProcess(httpx2.BaseTransport):
    """Answers requests with the application itself; what streams, streams."""

    def __init__(self, loop: Loop, app: App) -> None:
        self._loop, self._app = loop, app

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = _Exchange(self._loop, request)
        self._loop.start(exchange.carry(self._app))
        first = exchange.next()
        if first is None or first["type"] != "http.response.start":
            raise httpx2.RemoteProtocolError("The application gave no answer.", request=request)
        return httpx2.Response(first["status"], headers=first["headers"], stream=_Body(exchange))


class _Exchange:
    """One request on its way through, in pieces that wait for their reader."""

    def __init__(self, loop: Loop, request: httpx2.Request) -> None:
        self._loop, self._body = loop, request.read()
        self._scope = {
            "type": "http",
            "method": request.method,
            "path": request.url.path,
            "query_string": request.url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": ("127.0.0.1", 0),
        }
        self._pieces: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._room, self._gone = asyncio.Semaphore(MOST_PIECES), asyncio.Event()
        self._asked = False

    async def carry(self, app: App) -> None:
        try:
            await app(self._scope, self._receive, self._send)
        finally:
            self._pieces.put(None)

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": self._body}
        await self._gone.wait()  # the reader's leaving is all there is left to hear of
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self._room.acquire()
        if self._gone.is_set():
            raise ConnectionResetError("The reader has gone.")
        self._pieces.put(message)

    def next(self) -> dict[str, Any] | None:
        try:
            piece = self._pieces.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise httpx2.ReadTimeout("The application is silent.") from None
        self._loop.soon(self._room.release)
        return piece

    def leave(self) -> None:
        self._loop.soon(self._gone.set)
        self._loop.soon(self._room.release)


class _Body(httpx2.SyncByteStream):
    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._exchange.next()) is not None:
            if body := piece.get("body"):
                yield body
            if not piece.get("more_body"):
                return

    def close(self) -> None:
        self._exchange.leave()


class Hosting:
    """A host on its store, from its start to its end."""

    def __init__(
        self, settings: Mapping[str, Any], clock: VirtualClock, project: Project, book: Book
    ) -> None:
        self.clock, self._project = clock, project
        self._scratch = tempfile.TemporaryDirectory(prefix="moot-bench-")
        file = str(settings.get("database") or "")
        place = file or str(Path(self._scratch.name) / "moot.db")
        usual = {"rate_limit": 1_000_000_000, "demo_wps": 0.0, "agents": self._scratch.name}
        self.settings = Settings(**{**settings, **usual, "database": place})
        self.loop = Loop()
        self.services: Services = self.loop.call(self._opened(bool(file), book))
        self.app = App(self.services)
        self.key = key_file(self.settings).read_text(encoding="utf-8").strip()

    async def _opened(self, on_disk: bool, book: Book) -> Services:
        store: Store = MemoryStore()
        if on_disk:
            store = await SqliteStore.open(self.settings.database)
        services = await build(self.settings, store, self.clock, self._project, book)
        await services.host.recover()
        services.triggers.start()
        return services

    def know(self, types: Mapping[str, NodeType]) -> None:
        """Further node types."""
        flows = self.services.host.flows
        flows.types = {**flows.types, **types}

    def settle(self, run_id: str) -> None:
        """Until the run has ended, or waits, and nothing happens by itself any more.

        A run that only waits for a time gets it at once: the clock jumps there.
        """
        self.loop.call(self._settled(run_id))

    async def _settled(self, run_id: str) -> None:
        host, until = self.services.host, time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            run = (await host.view(DEFAULT_TENANT, run_id)).run
            if run.terminal or (self._idle() and at_rest(run)):
                return
            if self._idle():
                self._jump(run)
            await asyncio.sleep(GLANCE_S)
        raise Stuck(f"{run_id} is still {run.status.value} after {PATIENCE_S:g} s.")

    def _idle(self) -> bool:
        host = self.services.host
        return len(host.tasks) <= host.speakers.outside

    def _jump(self, run: Run) -> None:
        timers = self.services.host.timers
        if timers.next is None:
            raise Stuck(f"{run.run_id} is {run.status.value}, and nothing is under way for it.")
        self.clock.until(timers.next)
        timers.look()

    def forward(self, seconds: float) -> None:
        """Set the clock forward, and let happen what falls due meanwhile, one after another."""
        self.loop.call(self._forward(seconds))

    async def _forward(self, seconds: float) -> None:
        timers, until = self.services.host.timers, time.monotonic() + PATIENCE_S
        triggers = self.services.triggers
        target = self.clock.millis() + round(seconds * 1000)
        while time.monotonic() < until:
            if self._idle() and not triggers.courier.busy:
                dues = (
                    timers.next,
                    await triggers.clockwork.next_due(),
                    await triggers.courier.next_due(),
                )
                due = min((each for each in dues if each is not None), default=None)
                if due is None or due > target:
                    self.clock.until(target)
                    return
                self.clock.until(due)
                timers.look()
                triggers.look()
            await asyncio.sleep(GLANCE_S)
        raise Stuck(f"What fell due has not come to rest after {PATIENCE_S:g} s.")

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.loop.call(self.services.aclose(), 10)
        self.loop.close()
        self._scratch.cleanup()


def at_rest(run: Run) -> bool:
    """Somebody else is to do something; time alone will not."""
    return run.status.value == "paused" or run.status.value.startswith("waiting-")
