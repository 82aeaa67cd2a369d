"""Whatever is done to both, the SQLite store answers as the memory store does."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import UNSET

from moot.core.errors import MootError
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Append, ArtifactRow, Batch, EffectRow, RunFilter, Store
from moot.store.sqlite import SqliteStore
from tests.support.store.rows import append, definition, effect, event, key, receipt, row
from tests.support.store.sqlite_access import in_one_group

TENANTS = ["acme", "other"]
RUNS = ["r1", "r2", "r3", "s1"]
STATUSES = ["running", "completed", "failed"]
NAMES = ["x", "y"]

tenants = st.sampled_from(TENANTS)
runs = st.sampled_from(RUNS)
names = st.sampled_from(NAMES)
moments = st.integers(0, 5)
bodies = st.binary(max_size=20)


@st.composite
def rows(draw: st.DrawFn, tenant: str, run_id: str) -> Any:
    maybe = st.none() | names
    return row(
        run_id,
        tenant,
        workflow_id=draw(names),
        status=draw(st.sampled_from(STATUSES)),
        created_at=draw(moments),
        ended_at=draw(st.none() | moments),
        parent_run=draw(maybe),
        fork_of=draw(maybe),
        scope_id=draw(maybe),
        agent_id=draw(maybe),
        next_sequence=draw(moments),
    )


@st.composite
def appends(draw: st.DrawFn) -> tuple[Append, bool]:
    """An append, and whether its ``first`` shall be made to fit."""
    tenant, run_id = draw(tenants), draw(runs)
    made = append(
        run_id,
        draw(st.integers(0, 2)),
        draw(st.integers(0, 3)),
        tenant,
        row=draw(st.none() | rows(tenant, run_id)),
        work=draw(st.just(UNSET) | st.none() | moments),
        snapshot=draw(st.none() | bodies),
        fold_version=draw(st.integers(0, 1)),
    )
    return made, draw(st.booleans())


@st.composite
def effects(draw: st.DrawFn) -> EffectRow:
    return effect(draw(names), draw(moments), draw(st.booleans()), draw(tenants))


@st.composite
def receipts(draw: st.DrawFn) -> Any:
    return receipt(draw(names), draw(tenants), at=draw(moments))


@st.composite
def artifacts(draw: st.DrawFn) -> ArtifactRow:
    return ArtifactRow(
        tenant=draw(tenants), run_id=draw(runs), artifact_id=draw(names), body=draw(bodies)
    )


@st.composite
def batches(draw: st.DrawFn) -> tuple[Batch, list[bool]]:
    made = draw(st.lists(appends(), max_size=2))
    batch = Batch(
        appends=[one for one, _ in made],
        receipt=draw(st.none() | receipts()),
        artifacts=draw(st.lists(artifacts(), max_size=1)),
        effects=draw(st.lists(effects(), max_size=2)),
        sealed=draw(st.lists(st.tuples(tenants, runs, names, st.none() | bodies), max_size=2)),
        unseal=draw(st.lists(st.tuples(tenants, runs), max_size=1)),
    )
    return batch, [fits for _, fits in made]


@st.composite
def filters(draw: st.DrawFn) -> RunFilter:
    return RunFilter(
        statuses=tuple(draw(st.lists(st.sampled_from(STATUSES), max_size=2))),
        workflow_id=draw(st.none() | names),
        agent_id=draw(st.none() | names),
        parent_run=draw(st.none() | names),
        fork_of=draw(st.none() | names),
        prefix=draw(st.sampled_from([None, "", "r", "r1", "z"])),
    )


async def pages(store: Store, tenant: str, where: RunFilter, size: int) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        page, cursor = await store.list_runs(tenant, where, cursor, size)
        found.append(page)
        if cursor is None:
            return found


async def counted(store: Store) -> dict[str, Any]:
    found = await store.stats()
    return {name: found[name] for name in ("runs", "events", "statuses")}


async def everything(store: Store) -> dict[str, Any]:
    """All that can be asked about the few names the machine uses, asked at once."""
    asked: dict[str, Awaitable[Any]] = {
        "runs": store.runs(), "next work": store.next_work(), "keys": store.keys(None),
        "stats": counted(store), **{f"work {until}": store.work(until, 9) for until in (2, 9)},
    }  # fmt: skip
    for tenant in TENANTS:
        asked[f"{tenant} list"] = pages(store, tenant, RunFilter(), 2)
        asked[f"{tenant} definitions"] = store.definitions(tenant)
        for name in NAMES:
            asked[f"{tenant} {name} receipt"] = store.receipt(tenant, "POST /runs", name)
            asked[f"{tenant} {name} active"] = store.active_run(tenant, name)
            asked[f"{tenant} {name} definition"] = store.definition(tenant, name)
        for run_id in RUNS:
            asked[f"{tenant} {run_id} head"] = store.head(tenant, run_id)
            asked[f"{tenant} {run_id} log"] = store.read(tenant, run_id, after=0)
            asked[f"{tenant} {run_id} row"] = store.find_run(tenant, run_id)
            asked[f"{tenant} {run_id} snapshot"] = store.snapshot(tenant, run_id, 1)
            asked[f"{tenant} {run_id} sealed"] = store.sealed(tenant, run_id)
            for name in NAMES:
                asked[f"{tenant} {run_id} {name}"] = store.artifact(tenant, run_id, name)
                asked[f"{tenant} {run_id} {name} effect"] = store.effect(tenant, run_id, name)
    return dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))


async def ending(call: Any) -> Any:
    """What a call gave or how it refused."""
    try:
        return await call
    except MootError as refusal:
        return type(refusal)


class SameAsMemory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.memory = MemoryStore()
        self.runner.run(self.open())

    async def open(self) -> None:
        self.sqlite = await SqliteStore.open(Path(self.folder.name) / "moot.db")
        self.sqlite._writer._heads._limit = 2  # so that heads are also read back

    @rule(group=st.lists(batches(), min_size=1, max_size=6))
    def commit(self, group: list[tuple[Batch, list[bool]]]) -> None:
        self.runner.run(self.commit_group(group))

    async def commit_group(self, group: list[tuple[Batch, list[bool]]]) -> None:
        expected = []
        for batch, fits in group:
            for one, fit in zip(batch.appends, fits, strict=True):
                first = await self.memory.head(one.tenant, one.run_id) or 0
                one.first = first if fit else one.first
                count = len(one.events)
                one.events = [event(one.run_id, one.first + offset) for offset in range(count)]
            expected.append(await ending(self.memory.commit(batch)))
        commits = [ending(self.sqlite.commit(batch)) for batch, _ in group]
        assert await in_one_group(self.sqlite, commits) == expected

    @rule(tenant=tenants, where=filters(), size=st.integers(1, 3))
    def list_runs(self, tenant: str, where: RunFilter, size: int) -> None:
        async def both() -> None:
            ours = await pages(self.sqlite, tenant, where, size)
            assert ours == await pages(self.memory, tenant, where, size)

        self.runner.run(both())

    @rule(tenant=tenants, name=names, body=st.sampled_from([b"1", b"2"]))
    def put_definition(self, tenant: str, name: str, body: bytes) -> None:
        self.on_both(lambda store: store.put_definition(definition(name, body, tenant)))

    @rule(tenant=tenants, name=names, hash_=names)
    def put_key(self, tenant: str, name: str, hash_: str) -> None:
        self.on_both(lambda store: store.put_key(key(name, tenant, hash=hash_)))

    @rule(tenant=st.none() | tenants, name=names, at=moments)
    def revoke_key(self, tenant: str | None, name: str, at: int) -> None:
        self.on_both(lambda store: store.revoke_key(tenant, name, at))

    @rule(before=moments)
    def forget_receipts(self, before: int) -> None:
        self.on_both(lambda store: store.forget_receipts(before))

    @rule(given=st.lists(st.tuples(appends(), st.lists(effects(), max_size=1)), max_size=4))
    def rebuild(self, given: list[tuple[tuple[Append, bool], list[EffectRow]]]) -> None:
        async def pairs() -> AsyncIterator[tuple[Append, list[EffectRow]]]:
            for (one, _), found in given:
                yield one, found

        self.on_both(lambda store: store.rebuild(pairs()))

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.sqlite.aclose())
        self.runner.run(self.open())

    def on_both(self, call: Any) -> None:
        async def both() -> None:
            assert await ending(call(self.sqlite)) == await ending(call(self.memory))

        self.runner.run(both())

    @invariant()
    def the_stores_agree(self) -> None:
        async def both() -> None:
            assert await everything(self.sqlite) == await everything(self.memory)

        self.runner.run(both())

    def teardown(self) -> None:
        problems = self.runner.run(self.sqlite.verify())
        self.runner.run(self.sqlite.aclose())
        self.runner.close()
        self.folder.cleanup()
        assert problems == []


TestSameAsMemory = SameAsMemory.TestCase
TestSameAsMemory.settings = settings(
    max_examples=40,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
