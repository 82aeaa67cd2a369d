"""What standing agents have done, counted the same by every store; notices that an inbox has."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moot.store.memory.store import MemoryStore
from moot.store.protocol import DAY_MS, Batch, InboxRow, Store, Tally
from moot.store.sqlite import SqliteStore
from tests.support.store.rows import append, batch, listed, row

SALLY = "host:sally"


def item(run_id: str, since: int) -> InboxRow:
    return InboxRow(
        tenant="acme", item_id=f"int_{run_id}", run_id=run_id, node_id="gate", kind="approval",
        question="Go on?", actions=["accept"], asked_by="brief/gate", since=since,
    )  # fmt: skip


async def test_runs_are_counted_by_workflow_day_and_status(store: Store) -> None:
    for number, (flow, day, status, more) in enumerate([
        ("brief", 1, "completed", {}),
        ("brief", 3, "completed", {}),
        ("brief", 3, "completed", {}),
        ("brief", 3, "failed", {}),
        ("triage", 3, "running", {}),
        ("brief", 3, "completed", {"parent_run": "r1"}),
        ("brief", 3, "completed", {"member": "host:mo"}),
        ("brief", 3, "completed", {"tenant": "elsewhere"}),
    ]):  # fmt: skip
        fields: dict[str, Any] = {"member": SALLY, "workflow_id": flow, "status": status, **more}
        await store.commit(listed(f"r{number}", created_at=day * DAY_MS + number, **fields))
    assert await store.tally("acme", SALLY, 2 * DAY_MS, 100) == [
        Tally("brief", 3, "completed", 2), Tally("brief", 3, "failed", 1),
        Tally("triage", 3, "running", 1),
    ]  # fmt: skip
    assert [found.run_id for found in await store.newest_runs("acme", SALLY, 100)] == ["r3", "r4"]
    assert await store.tally("acme", SALLY, 0, 2) == [Tally("triage", 3, "running", 1)]
    assert await store.newest_runs("nobody", SALLY, 100) == []


async def test_what_a_members_runs_ask_has_its_number_in_the_inbox(store: Store) -> None:
    for number, member in enumerate((SALLY, "host:mo", None, SALLY)):
        name = f"r{number}"
        fresh = append(name, row=row(name, member=member), inbox=[item(name, number)])
        await store.commit(batch(fresh))
    assert await store.asked_by("acme", SALLY, 10) == [(1, item("r0", 0)), (4, item("r3", 3))]
    assert await store.asked_by("acme", SALLY, 3) == [(1, item("r0", 0))]
    assert await store.asked_by("elsewhere", SALLY, 10) == []


async def test_notices_make_an_inbox_another_one(store: Store) -> None:
    assert (await store.inbox("acme", 10))[1] == 0
    await store.commit(Batch(inboxes=["acme"]))
    first = (await store.inbox("acme", 10))[1]
    await store.commit(Batch(inboxes=["acme", "elsewhere"]))
    assert (await store.inbox("acme", 10))[1] > first > 0
    assert (await store.inbox("elsewhere", 10))[1] == 1


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["brief", "triage"]), st.integers(0, 4), st.sampled_from(["failed", "x"]),
        st.sampled_from([SALLY, "host:mo"]), st.booleans(),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(RUNS, st.integers(0, 5), st.integers(1, 12))
async def test_every_store_counts_the_same(
    runs: list[tuple[str, int, str, str, bool]], since: int, most: int
) -> None:
    with TemporaryDirectory() as folder:
        sqlite, memory = await SqliteStore.open(Path(folder) / "one.db"), MemoryStore()
        try:
            for number, (flow, day, status, member, child) in enumerate(runs):
                more = {"parent_run": "r0"} if child else {}
                fresh = listed(f"r{number}", created_at=day * DAY_MS, workflow_id=flow,
                               status=status, member=member, **more)  # fmt: skip
                await sqlite.commit(fresh)
                await memory.commit(fresh)
            asked = "acme", SALLY
            assert await sqlite.newest_runs(*asked, most) == await memory.newest_runs(*asked, most)
            began = since * DAY_MS
            assert await sqlite.tally(*asked, began, 99) == await memory.tally(*asked, began, 99)
            assert await sqlite.tally(*asked, 0, most) == await memory.tally(*asked, 0, most)
        finally:
            await sqlite.aclose()
