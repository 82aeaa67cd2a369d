"""Hosts on stores that outlive them, clocks that can be set forward, stores that misbehave."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from moot.clock import SystemClock
from moot.conformance.nodes.registry import conformance_types
from moot.core.catalogue import TERMINAL_TYPES
from moot.core.errors import StorageFailed
from moot.core.events import Event, decode
from moot.core.runs.start import RunLimits, StartRun
from moot.core.state.run import Run, fold
from moot.core.verify.walk import verify
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import NodeType
from moot.engine.host import Host
from moot.engine.nodes.registry import built_in_types
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Batch, Store
from moot.store.sqlite import SqliteStore

TENANT = "acme"
PATIENCE = 60.0


class SkewedClock(SystemClock):
    """The machine's clock, set forward at will."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_ms = 0

    def micros(self) -> int:
        self._last = max(self._last, time.time_ns() // 1000 + self.ahead_ms * 1000)
        return self._last


class Wrapped:
    """A store with something in front of it."""

    def __init__(self, store: Store) -> None:
        self.inner = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Recording(Wrapped):
    """Remembers every batch that was written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.batches: list[Batch] = []

    async def commit(self, batch: Batch) -> None:
        await self.inner.commit(batch)
        self.batches.append(batch)

    def batch_with(self, run_id: str, type_: str) -> Batch:
        """The batch in which this run's event of this type was written."""
        for batch in self.batches:
            for append in batch.appends:
                if append.run_id == run_id and type_ in [decode(e).type for e in append.events]:
                    return batch
        raise AssertionError(f"{run_id} has no {type_}")


class Gated(Wrapped):
    """Commits wait in line until the gate is open; a chosen one of them may fail."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.refuse: Callable[[Batch], bool] = lambda batch: False
        self._line = asyncio.Lock()

    async def commit(self, batch: Batch) -> None:
        self.waiting += 1
        try:
            async with self._line:
                await self.gate.wait()
                await asyncio.sleep(0)
                if self.refuse(batch):
                    raise StorageFailed("The disk refused the write; nothing of it was kept.")
                await self.inner.commit(batch)
        finally:
            self.waiting -= 1


class Failing(Wrapped):
    """The nth operation fails, and only that one."""

    COUNTED = ("commit", "read", "snapshot", "sealed", "effect", "definition_by_digest",
               "definition", "active_run", "find_run")  # fmt: skip

    def __init__(self, store: Store, nth: int, counted: tuple[str, ...] = COUNTED) -> None:
        super().__init__(store)
        self.nth, self.counted, self.count = nth, counted, 0
        self.failed: str | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in self.counted:
            return found

        async def maybe(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count == self.nth:
                self.failed = name
                raise StorageFailed("The disk refused; nothing of it was kept.")
            return await found(*args, **kwargs)

        return maybe


class Place:
    """A store, and the hosts that come and go on it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.file = kind, folder / "moot.db"
        self.clock = SkewedClock()
        self.types: dict[str, NodeType] = built_in_types(extra=conformance_types())
        self.store: Any = None
        self.hosts: list[Host] = []

    async def open(self) -> None:
        if self.kind == "memory":
            self.store = self.store or MemoryStore()
        else:
            self.store = await SqliteStore.open(self.file)

    def knows(self, *functions: Any) -> None:
        """@node functions and node types this host has."""
        for each in functions:
            type_ = each if isinstance(each, NodeType) else each.node_type
            self.types = {**self.types, type_.type_id: type_}

    def host(self, wrapper: Callable[[Any], Any] | None = None, **given: Any) -> Host:
        store = wrapper(self.store) if wrapper else self.store
        host = Host(store, WorkflowRegistry(store, self.types, self.clock), self.clock, **given)
        self.hosts.append(host)
        return host

    async def crash(self, host: Host) -> None:
        """The host is gone in this moment; what it had not written, it never will."""
        host.stopping = True
        host.timers.close()
        await host.activities.aclose()
        await host.tasks.aclose()

    async def restart(self, host: Host, **given: Any) -> Host:
        """An orderly stop, and a new host on the same file."""
        await host.aclose()
        await self.open()
        fresh = self.host(**given)
        await fresh.recover()
        return fresh

    async def aclose(self) -> None:
        for host in self.hosts:
            await self.crash(host)
        await self.store.aclose()


# -- definitions ---------------------------------------------------------------------------------


def node(name: str, type_id: str = "core.noop", **given: Any) -> dict[str, Any]:
    fields = {"config": {}, "inputs": {}, "position": {"x": 0, "y": 0}, "name": name}
    return {"id": name, "typeId": type_id, **fields, **given}


def edge(source: str, target: str, rule: str = "all_success", **given: Any) -> dict[str, Any]:
    ends = {"sourceNodeId": source, "targetNodeId": target, "triggerRule": rule}
    return {"id": f"{source}>{target}", **ends, **given}


def definition(
    nodes: list[dict[str, Any]], edges: list[dict[str, Any]] | None = None, **given: Any
) -> dict[str, Any]:
    return {
        "id": "sample", "name": "sample", "version": "1.0", "nodes": nodes, "edges": edges or [],
        "triggers": [], "variables": [], "metadata": {}, "settings": {}, **given,
    }  # fmt: skip


def chain(*nodes: dict[str, Any], **given: Any) -> dict[str, Any]:
    edges = [edge(a["id"], b["id"]) for a, b in itertools.pairwise(nodes)]
    return definition(list(nodes), edges, **given)


def sub(workflow_id: str, name: str = "sub", **config: Any) -> dict[str, Any]:
    return node(name, "core.subWorkflow", config={"workflowId": workflow_id, **config})


def delay(ms: int, name: str = "wait") -> dict[str, Any]:
    return node(name, "core.delay", config={"ms": ms})


def variable(name: str) -> dict[str, Any]:
    return {"type": "variable", "variableName": name}


# -- runs ----------------------------------------------------------------------------------------


async def registered(host: Host, *bodies: dict[str, Any]) -> Flow:
    """All of them; the last one is given back, ready to run."""
    for body in bodies:
        flow = await host.flows.register(TENANT, msgspec.json.encode(body))
    return await host.flows.newest(TENANT, flow.definition.id)


async def begun(host: Host, *bodies: dict[str, Any], **given: Any) -> str:
    """A run of the last definition."""
    return await another(host, await registered(host, *bodies), **given)


async def another(host: Host, flow: Flow, **given: Any) -> str:
    options: dict[str, Any] = {"tenant": TENANT, "principal": "p", "limits": host.limits, **given}
    run = await host.create(flow, StartRun(at=host.clock.millis(), **options))
    return run.run_id


async def ended(host: Host, run_id: str) -> Run:
    """The run once it is over."""
    return await until(host, run_id, lambda run: run.terminal)


async def until(host: Host, run_id: str, reached: Callable[[Run], bool]) -> Run:
    """The run as soon as it is so; woken by what is published, not by a clock."""
    reader = host.hub.subscribe(run_id)
    try:
        async with asyncio.timeout(PATIENCE):
            while not reached(run := (await host.view(TENANT, run_id)).run):
                await reader.wait(0.05)
                reader.waiting.clear()
                reader.lagging = False
    except TimeoutError:
        raise AssertionError(f"it never came to that: {await order(host, run_id)}") from None
    finally:
        host.hub.unsubscribe(run_id, reader)
    return run


async def all_over(host: Host) -> None:
    """Waits until every run there is has ended, those that are begun meanwhile, too."""
    known: set[str] = set()
    while new := {run_id for _, run_id in await host.store.runs()} - known:
        for run_id in new:
            await ended(host, run_id)
        known |= new


async def soon(reached: Callable[[], Any]) -> None:
    """Waits until it is so."""
    async with asyncio.timeout(PATIENCE):
        while not reached():
            await asyncio.sleep(0.002)


async def log(host: Host, run_id: str) -> list[Event]:
    return [decode(row) for row in await host.store.read(TENANT, run_id, -1, 100_000)]


async def order(host: Host, run_id: str) -> list[str]:
    """The log in short: ``type`` or ``type node``."""
    return [
        event.type if not isinstance(event.node_id, str) else f"{event.type} {event.node_id}"
        for event in await log(host, run_id)
    ]


async def sound(host: Host) -> None:
    """Every log in the store is whole, and what is in memory is what is in it."""
    for tenant, run_id in await host.store.runs():
        events = await log(host, run_id)
        assert [event.sequence for event in events] == list(range(len(events)))
        assert [event.type for event in events].count("run.started") == 1
        ends = [event.sequence for event in events if event.type in TERMINAL_TYPES]
        assert ends in ([], [len(events) - 1])
        head = await host.view(tenant, run_id)
        assert head.run == fold(run_id, events), "memory and log say different things"
        row = await host.store.find_run(tenant, run_id)
        assert row is not None
        assert (row.status, row.next_sequence) == (head.run.status.value, len(events))
        found = verify(head.flow, tenant, run_id, events)
        assert found is None, (found, await order(host, run_id))
    assert await host.store.verify() == []


WIDE = RunLimits()
Body = Callable[..., Awaitable[Any]]
