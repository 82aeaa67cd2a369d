"""A real host in a thread of its own, reached without a network."""

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

from moot.agents.models.registry import ModelRegistry
from moot.api.access.auth import DEFAULT_TENANT
from moot.api.app import App
from moot.api.http.request import HttpScope, ReceivedMessage
from moot.api.server import build_services, key_file
from moot.api.services import Services
from moot.config.project import ProjectConfig
from moot.config.settings import Settings
from moot.core.state.run import Run
from moot.core.workflows.node_types import NodeType
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Store
from moot.store.sqlite import SqliteStore
from moot.testing.clock import VirtualClock

T = TypeVar("T")

#: real seconds that a bench waits before it raises ``Stuck``
TIMEOUT_S = 30.0
#: real seconds between two checks while the host is busy
POLL_S = 0.002
MOST_PIECES = 64


class Stuck(AssertionError):
    """A run did not come to rest."""


class BenchLoop:
    """An event loop in a thread of its own, for blocking callers."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="moot-bench", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T], seconds: float = TIMEOUT_S + 5) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def soon(self, act: Callable[[], Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no call waits
            self._loop.call_soon_threadsafe(act)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        if not self._thread.is_alive():
            self._loop.close()


class InProcessTransport(httpx2.BaseTransport):
    """Passes requests to the application and streams its answers."""

    def __init__(self, loop: BenchLoop, app: App) -> None:
        self._loop, self._app = loop, app

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = _InProcessExchange(self._loop, request)
        self._loop.start(exchange.carry(self._app))
        first = exchange.next()
        if first is None or first["type"] != "http.response.start":
            raise httpx2.RemoteProtocolError("The application gave no answer.", request=request)
        return httpx2.Response(
            first["status"], headers=first["headers"], stream=_AnswerStream(exchange)
        )


class _InProcessExchange:
    """One request to the application. Pieces of the answer wait for their reader."""

    def __init__(self, loop: BenchLoop, request: httpx2.Request) -> None:
        self._loop, self._body = loop, request.read()
        self._scope: HttpScope = {
            "type": "http",
            "method": request.method,
            "path": request.url.path,
            "query_string": request.url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": ("127.0.0.1", 0),
        }
        self._pieces: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._room, self._gone = asyncio.Semaphore(MOST_PIECES), asyncio.Event()
        self._body_sent = False

    async def carry(self, app: App) -> None:
        try:
            await app(self._scope, self._receive, self._send)
        finally:
            self._pieces.put(None)

    async def _receive(self) -> ReceivedMessage:
        if not self._body_sent:
            self._body_sent = True
            return {"type": "http.request", "body": self._body}
        await self._gone.wait()  # only the disconnect can follow
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self._room.acquire()
        if self._gone.is_set():
            raise ConnectionResetError("The reader has gone.")
        self._pieces.put(message)

    def next(self) -> dict[str, Any] | None:
        try:
            piece = self._pieces.get(timeout=TIMEOUT_S)
        except queue.Empty:
            raise httpx2.ReadTimeout("The application is silent.") from None
        self._loop.soon(self._room.release)
        return piece

    def leave(self) -> None:
        self._loop.soon(self._gone.set)
        self._loop.soon(self._room.release)


class _AnswerStream(httpx2.SyncByteStream):
    def __init__(self, exchange: _InProcessExchange) -> None:
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._exchange.next()) is not None:
            if body := piece.get("body"):
                yield body
            if not piece.get("more_body"):
                return

    def close(self) -> None:
        self._exchange.leave()


class BenchHost:
    """A host with its store, from start to close."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        clock: VirtualClock,
        project: ProjectConfig,
        book: ModelRegistry,
    ) -> None:
        self.clock, self._project = clock, project
        self._scratch = tempfile.TemporaryDirectory(prefix="moot-bench-")
        file = str(settings.get("database") or "")
        database = file or str(Path(self._scratch.name) / "moot.db")
        fixed = {"rate_limit": 1_000_000_000, "demo_wps": 0.0, "agents": self._scratch.name}
        self.settings = Settings(**{**settings, **fixed, "database": database})
        self.loop = BenchLoop()
        self.services: Services = self.loop.call(self._start(bool(file), book))
        self.app = App(self.services)
        self.key = key_file(self.settings).read_text(encoding="utf-8").strip()

    async def _start(self, on_disk: bool, book: ModelRegistry) -> Services:
        store: Store = MemoryStore()
        if on_disk:
            store = await SqliteStore.open(self.settings.database)
        services = await build_services(self.settings, store, self.clock, self._project, book)
        await services.host.recover()
        services.triggers.start()
        return services

    def add_node_types(self, types: Mapping[str, NodeType]) -> None:
        flows = self.services.host.flows
        flows.types = {**flows.types, **types}

    def settle(self, run_id: str) -> None:
        """Return when the run has ended or waits for an answer from outside.

        If the run only waits for a time, the clock jumps to that time.
        """
        self.loop.call(self._settle(run_id))

    async def _settle(self, run_id: str) -> None:
        host, until = self.services.host, time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            run = (await host.view(DEFAULT_TENANT, run_id)).run
            if run.terminal or (self._is_idle() and is_at_rest(run)):
                return
            if self._is_idle():
                self._jump_to_next_timer(run)
            await asyncio.sleep(POLL_S)
        raise Stuck(f"{run_id} is still {run.status.value} after {TIMEOUT_S:g} s.")

    def _is_idle(self) -> bool:
        host = self.services.host
        return len(host.tasks) <= host.speakers.outside

    def _jump_to_next_timer(self, run: Run) -> None:
        timers = self.services.host.timers
        if timers.next is None:
            raise Stuck(f"{run.run_id} is {run.status.value}, and nothing is under way for it.")
        self.clock.until(timers.next)
        timers.look()

    def forward(self, seconds: float) -> None:
        """Set the clock forward and carry out everything that falls due, one after another."""
        self.loop.call(self._forward(seconds))

    async def _forward(self, seconds: float) -> None:
        timers, until = self.services.host.timers, time.monotonic() + TIMEOUT_S
        triggers = self.services.triggers
        target = self.clock.millis() + round(seconds * 1000)
        while time.monotonic() < until:
            if self._is_idle() and not triggers.courier.busy:
                scheduled = await triggers.scheduler.next_due()
                dues = timers.next, scheduled, await triggers.courier.next_due()
                due = min((each for each in dues if each is not None), default=None)
                if due is None or due > target:
                    self.clock.until(target)
                    return
                self.clock.until(due)
                timers.look()
                triggers.look()
            await asyncio.sleep(POLL_S)
        raise Stuck(f"What fell due has not come to rest after {TIMEOUT_S:g} s.")

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.loop.call(self.services.aclose(), 10)
        self.loop.close()
        self._scratch.cleanup()


def is_at_rest(run: Run) -> bool:
    """Return whether the run is paused or waits for an answer, not for time."""
    return run.status.value == "paused" or run.status.value.startswith("waiting-")
