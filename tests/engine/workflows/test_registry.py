"""Which definition new runs use, and how many are held in memory."""

import asyncio

import msgspec
import pytest

from moot.clock import SystemClock
from moot.core.errors import WorkflowNotFound
from moot.engine.nodes import registry
from moot.engine.workflows.built_in import DEPLOYMENT
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Definition


def body(name: str, version: str = "1", calls: str | None = None) -> bytes:
    node = {"id": "n", "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0}}
    node |= {"config": {}, "inputs": {}}
    if calls is not None:
        node |= {"typeId": "core.subWorkflow", "config": {"workflowId": calls}}
    empty = {key: [] for key in ("edges", "triggers", "variables")}
    more = {"id": name, "name": name, "version": version, "nodes": [node]}
    return msgspec.json.encode({**more, **empty, "metadata": {}, "settings": {}})


class Watched(MemoryStore):
    """Notes what is read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    async def definition(self, tenant: str, workflow_id: str) -> Definition | None:
        found = await super().definition(tenant, workflow_id)
        self.reads.append(workflow_id)
        return found


def flows(store: MemoryStore, limit: int = 4096) -> WorkflowRegistry:
    return WorkflowRegistry(store, registry.built_in_types(), SystemClock(), limit)


async def test_an_older_definition_that_comes_late_does_not_replace_a_newer_one() -> None:
    store = MemoryStore()
    await flows(store).register("default", body("one", "1"))
    found = flows(store)
    old = await store.definition("default", "one")
    arrived = asyncio.Event()

    async def late(tenant: str, workflow_id: str) -> Definition | None:
        await arrived.wait()
        return old

    store.definition, kept = late, store.definition  # type: ignore[method-assign, assignment]
    looking = asyncio.ensure_future(found.newest("default", "one"))
    await asyncio.sleep(0)
    store.definition = kept  # type: ignore[method-assign]
    registered = await found.register("default", body("one", "2"))
    arrived.set()
    assert await looking is registered
    assert await found.newest("default", "one") is registered


async def test_the_definition_used_last_is_held_and_the_one_used_longest_ago_is_read_again() -> (
    None
):
    store = Watched()
    found = flows(store, limit=2)
    await found.register("default", body("a"))
    await found.register("default", body("b"))
    await found.newest("default", "a")
    await found.register("default", body("c"))
    store.reads.clear()
    for name in ("a", "c"):
        await found.newest("default", name)
    assert store.reads == []
    await found.newest("default", "b")
    assert store.reads == ["b"]


async def test_a_workflow_that_another_calls_is_never_dropped() -> None:
    store = Watched()
    found = flows(store, limit=1)
    await found.register("default", body("child"))
    await found.register("default", body("parent", calls="child"))
    await found.newest("default", "parent")
    for name in "abc":
        await found.register("default", body(name))
    assert found.known("default", "child") is not None
    renewed = await found.register("default", body("child", "2"))
    await found.register("default", body("d"))
    assert found.known("default", "child") is renewed


async def test_an_unknown_workflow_is_compared_with_those_in_memory_of_the_same_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    found = flows(store)
    await found.register("default", body("hello"))

    async def nothing(tenant: str, workflow_id: str | None = None) -> None:
        return None

    monkeypatch.setattr(store, "definition", nothing)
    monkeypatch.setattr(store, "definitions", nothing)  # a 404 does not read them all
    with pytest.raises(WorkflowNotFound, match="Did you mean 'hello'"):
        await found.newest("default", "helo")
    with pytest.raises(WorkflowNotFound) as refusal:
        await found.newest("elsewhere", "helo")
    assert "hello" not in refusal.value.message


async def test_what_only_the_host_begins_is_handed_no_work() -> None:
    """Not by a decision that names it, though the host has just begun one itself."""
    found = flows(MemoryStore())
    own = await found.own("default", DEPLOYMENT)
    assert own.definition.id == DEPLOYMENT
    assert not found.is_available("default", DEPLOYMENT)
    await found.load_worker("default", DEPLOYMENT)
    assert found.is_missing("default", DEPLOYMENT) and not found.is_available("default", DEPLOYMENT)
    assert await found.by_digest("default", own.digest) is own, "its runs can be read"
    with pytest.raises(WorkflowNotFound):
        await found.newest("default", DEPLOYMENT)
