"""What is owed stands in lanes, one for each subscription; a long one hides no other."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moot.store.memory.store import MemoryStore
from moot.store.protocol import Batch, Store
from moot.store.records import Delivery, Lane
from moot.store.sqlite import SqliteStore
from moot.store.sqlite.read import records
from tests.support.store.sqlite_access import meddling


def owed(number: int, due_at: int | None, **more: Any) -> Delivery:
    fields: dict[str, Any] = {
        "tenant": "acme", "subscription": "s1", "key": f"k{number}", "source": "queue",
        "delivery_id": f"dlv_{number}", "state": "waiting", "received_at": 5, "updated_at": 5,
    }  # fmt: skip
    return Delivery(due_at=due_at, **fields | more)


def lane(due_at: int, **more: Any) -> Lane:
    fields: dict[str, Any] = {"tenant": "acme", "subscription": "s1", "source": "queue"}
    return Lane(due_at=due_at, **fields | more)


async def test_every_lane_is_known_by_its_first(store: Store) -> None:
    assert await store.lanes() == []
    many = [owed(number, 50 - number) for number in range(40)]
    others = [
        owed(1, 90, subscription="s0", source="outbound"),
        owed(2, 95, subscription="s0", source="outbound"),
        owed(1, 3, tenant="other"),
        owed(9, None, subscription="idle"),
    ]
    await store.commit(Batch(deliveries=[*many, *others]))
    assert await store.lanes() == [
        lane(90, subscription="s0", source="outbound"),
        lane(11),
        lane(3, tenant="other"),
    ]
    found = await store.due_deliveries("acme", "s1", 13, 9)
    assert [each.due_at for each in found] == [11, 12, 13]
    assert len(await store.due_deliveries("acme", "s1", 99, 5)) == 5
    assert await store.due_deliveries("other", "s0", 99, 5) == []


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("a", "b", "aa")), st.sampled_from(("x", "y", "")),
            st.none() | st.integers(0, 5),
        ),
        max_size=20,
    )
)  # fmt: skip
async def test_every_store_has_the_same_lanes(rows: list[tuple[str, str, int | None]]) -> None:
    batch = Batch(
        deliveries=[
            owed(number, due, tenant=tenant, subscription=name)
            for number, (tenant, name, due) in enumerate(rows)
        ]
    )
    memory = MemoryStore()
    await memory.commit(batch)
    with TemporaryDirectory() as folder:
        sqlite = await SqliteStore.open(Path(folder) / "one.db")
        try:
            await sqlite.commit(batch)
            assert await sqlite.lanes() == await memory.lanes()
            for found in await memory.lanes():
                place = found.tenant, found.subscription, 3, 9
                assert await sqlite.due_deliveries(*place) == await memory.due_deliveries(*place)
        finally:
            await sqlite.aclose()


async def test_lanes_are_found_by_steps_into_an_index(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "moot.db")
    await store.aclose()
    with meddling(tmp_path / "moot.db") as db:
        for sql in (records.SQL["LANES"], records.SQL["DUE"]):
            values = [1] * sql.count("?")
            steps = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            assert not [step for step in steps if "TEMP B-TREE" in step]
            walks = [step for step in steps if step.startswith("SCAN")]
            # the first of all is the beginning of the index
            first = "SCAN deliveries USING COVERING INDEX deliveries_lane"
            assert [step for step in walks if step not in (first, "SCAN lane")
                    and not step.startswith("SCAN CONSTANT")] == []  # fmt: skip
