"""Whatever runs write, end and are told: each sees what a naive model says it must."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.core.events import MemoryWrite
from moot.core.memory import MemoryEntry, is_ref, sharing_scope
from moot.core.state.memory import RunMemory
from moot.core.state.run import Run
from moot.engine.memory import (
    MemoryJournal,
    MemoryRevisions,
    entry_from_note,
    note_from_write,
)
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Batch
from tests.support.event_payloads import event_with

REFS, IDS, TAGS = ("desk", "shelf"), ("a", "b", "c"), ("x", "y")


class Stopped:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000

    def millis(self) -> int:
        return self.now


class Model:
    """Every write in one list; each run knows the numbers of those it sees."""

    def __init__(self) -> None:
        self.writes: list[dict[str, Any]] = []
        #: run -> (tenant, parent, what it saw at its start, what it has come to know since)
        self.runs: dict[str, tuple[str, str | None, set[int], set[int]]] = {}

    def start(self, name: str, tenant: str, parent: str | None) -> None:
        self.runs[name] = (tenant, parent, set(range(len(self.writes))), set())

    def write(self, name: str, **said: Any) -> None:
        tenant, _, _, known = self.runs[name]
        known.add(len(self.writes))
        self.writes.append({"tenant": tenant, **said})

    def complete(self, name: str) -> None:
        parent = self.runs[name][1]
        if parent is not None:
            self.runs[parent][3].update(self.runs[name][3])

    def seen(self, name: str, ref: str, now: int, tag: str | None) -> list[tuple[str, str]]:
        tenant, _, start, known = self.runs[name]
        newest: dict[str, dict[str, Any]] = {}
        for number in sorted(start | known):
            said = self.writes[number]
            if (said["tenant"], said["ref"]) == (tenant, ref):
                newest[said["id"]] = said
        living = [
            said
            for said in newest.values()
            if said["content"] is not None
            and (said["end"] is None or said["end"] > now)
            and (tag is None or tag in said["tags"])
        ]
        return sorted((said["id"], said["content"]) for said in living)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.sampled_from(["acme", "other"]), st.integers(-1, 5)),
        st.tuples(
            st.just("write"), st.integers(0, 5), st.sampled_from(REFS), st.sampled_from(IDS),
            st.sampled_from(["put", "put", "delete"]),
            st.lists(st.sampled_from(TAGS), max_size=2, unique=True),
            st.none() | st.integers(1, 5),
        ),
        st.tuples(st.just("complete"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(1, 3)),
    ),
    max_size=30,
)  # fmt: skip


class World:
    """The real parts beside the model."""

    def __init__(self) -> None:
        self.store, self.clock, self.model = MemoryStore(), Stopped(), Model()
        self.revisions = MemoryRevisions(self.store)
        self.memory = MemoryJournal(self.store, self.clock, self.revisions)  # type: ignore[arg-type]
        self.runs: list[Run] = []
        #: what would be the entry's end by its versions so far, as the journal keeps it
        self.ended: set[str] = set()

    async def start(self, tenant: str, parent: int) -> None:
        above = self.runs[parent] if 0 <= parent < len(self.runs) else None
        if above is not None and above.run_id in self.ended:
            above = None
        name = f"run{len(self.runs)}"
        tenant = above.tenant if above is not None else tenant
        line = [*above.memory.ancestors, above.run_id] if above and above.memory else []
        memory = RunMemory("desk", self.revisions.now(tenant), line)
        self.runs.append(Run(name, tenant=tenant, memory=memory))
        if above is not None:
            above.children[name] = None
        self.model.start(name, tenant, above.run_id if above is not None else None)

    async def write(self, who: int, ref: str, name: str, what: str, tags: Any, ttl: Any) -> None:
        if who >= len(self.runs) or self.runs[who].run_id in self.ended:
            return
        run = self.runs[who]
        before = await self.store.note(run.tenant, ref, name, None)
        content = f"{run.run_id}.{run.next_sequence}" if what == "put" else None
        ends = None if ttl is None or what != "put" else ttl
        write = MemoryWrite(scope=ref, memory_id=name, write_id=f"{run.run_id}{run.next_sequence}",
                      content=content, tags=tags if content else [], ttl_ms=ends)  # fmt: skip
        event: Any = event_with(event_id="", run_id=run.run_id, sequence=run.next_sequence,
                           type="memory.written", timestamp="", payload={})  # fmt: skip
        revision = self.revisions.next(run.tenant)
        note = note_from_write(run, write, event, revision, self.clock.now)
        await self.store.commit(Batch(notes=[note]))
        self.revisions.keep([note])
        run.next_sequence += 1
        end = note.expires_at
        if content is not None and before is not None and before.lives(self.clock.now):
            end = min((e for e in (end, before.expires_at) if e is not None), default=None)
        self.model.write(run.run_id, ref=ref, id=name, content=content, tags=write.tags, end=end)

    async def complete(self, who: int) -> None:
        if who < len(self.runs) and self.runs[who].run_id not in self.ended:
            child = self.runs[who]
            if None in child.children.values():
                return  # a run does not complete before its children have
            self.ended.add(child.run_id)
            for run in self.runs:
                if child.run_id in run.children:
                    run.children[child.run_id] = "completed"
            self.model.complete(child.run_id)

    async def wait(self, ms: int) -> None:
        self.clock.now += ms

    async def agree(self) -> None:
        now = self.clock.now
        for run in self.runs:
            for ref in REFS:
                for tag in (None, "x"):
                    found = await self.memory.list(run.tenant, ref, run, tag, None)
                    seen = sorted((note.memory_id, str(note.content)) for note in found)
                    assert seen == self.model.seen(run.run_id, ref, now, tag)
                    places = [(note.created_at, note.revision) for note in found]
                    assert places == sorted(places, reverse=True)
                for name in IDS:
                    one = await self.memory.get(run.tenant, ref, run, name)
                    listed = dict(self.model.seen(run.run_id, ref, now, None))
                    assert (one and entry_from_note(one).content) == listed.get(name)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_each_run_sees_what_the_model_says(taken: list[tuple[Any, ...]]) -> None:
    async def play() -> None:
        world = World()
        for name, *told in taken:
            await getattr(world, name)(*told)
            await world.agree()

    asyncio.run(play())


@given(st.text())
def test_a_reference_is_good_or_names_nothing_and_never_raises(ref: str) -> None:
    good = is_ref(ref)
    assert not good or (1 <= len(ref) <= 256 and "\0" not in ref and ".." not in ref.split("/"))
    if good:
        assert MemoryEntry(id="x", content=ref, tags=[], created_at="").content == ref


@given(st.text(min_size=1).filter(lambda text: ":" not in text))
def test_a_group_has_one_memory_however_it_is_named(group: str) -> None:
    assert sharing_scope(f"shared:{group}", "own") == sharing_scope("shared", "own", group)
    assert sharing_scope("isolated", "own", group) == "own"
