"""Records, ledgers and deliveries: one set of promises, every store."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moot.core.errors import BadRequest
from moot.core.errors.triggers import Overtaken
from moot.store.memory.records import matches_filter
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Batch, Store
from moot.store.records import Delivery, DeliveryAttempt, DeliveryFilter, Guard, LedgerRow, Record
from moot.store.sqlite import SqliteStore
from tests.support.store.rows import append


def record(name: str = "sally", body: bytes = b"{}", **more: Any) -> Record:
    return Record(
        tenant=more.pop("tenant", "acme"), kind="member", name=name, version="1", body=body,
        created_at=1, **more,
    )  # fmt: skip


def ledger(revision: int, **more: Any) -> LedgerRow:
    fields = {"tenant": "acme", "kind": "schedule", "name": "s1", "body": b"{}"} | more
    return LedgerRow(revision=revision, **fields)


def delivery(key: str = "k1", **more: Any) -> Delivery:
    fields: dict[str, Any] = {
        "tenant": "acme", "subscription": "sub1", "key": key, "delivery_id": f"dlv_{key}",
        "source": "queue", "state": "waiting", "received_at": 5, "updated_at": 5,
    }  # fmt: skip
    return Delivery(**fields | more)


async def test_a_batch_holds_only_while_its_records_are_as_they_were(store: Store) -> None:
    await store.put_record(record())
    known = await store.record("acme", "member", "sally")
    assert known is not None and known.revision > 0
    guard = Guard(tenant="acme", kind="member", name="sally", revision=known.revision)
    await store.commit(Batch(guards=[guard], ledgers=[ledger(1)]))
    await store.put_record(record(body=b'{"enabled":false}'))
    with pytest.raises(Overtaken):
        await store.commit(Batch(guards=[guard], ledgers=[ledger(2)], appends=[append("r1", 0)]))
    assert await store.ledger("acme", "schedule", "s1") == ledger(1)
    assert await store.head("acme", "r1") is None


async def test_there_is_no_record_is_something_a_batch_can_rely_on(store: Store) -> None:
    none = Guard(tenant="acme", kind="member", name="sally", revision=0)
    await store.commit(Batch(guards=[none], records=[record()]))
    with pytest.raises(Overtaken):
        await store.commit(Batch(guards=[none], records=[record()]))
    assert len(await store.record_history("acme", "member", "sally")) == 1
    assert await store.record_tenants("member") == ["acme"]
    assert await store.record_tenants("nothing") == []


async def test_records_are_read_page_by_page_without_what_is_gone(store: Store) -> None:
    for name in "bacd":
        for version in ("1", "2"):
            await store.put_record(
                Record(tenant="acme", kind="member", name=name, version=version, body=b"{}",
                       created_at=1, gone=name == "c" and version == "2")
            )  # fmt: skip
    page, total = await store.record_page("acme", "member", "", 2)
    assert ([each.name for each in page], total) == (["a", "b"], 3)
    page, total = await store.record_page("acme", "member", "b", 2)
    assert ([(each.name, each.version) for each in page], total) == ([("d", "2")], 3)
    assert await store.record_page("other", "member", "", 2) == ([], 0)


async def test_of_two_who_decide_on_one_ledger_one_is_refused(store: Store) -> None:
    await store.commit(Batch(ledgers=[ledger(1, due_at=10)]))
    with pytest.raises(Overtaken):
        await store.commit(Batch(ledgers=[ledger(1, due_at=11)]))
    with pytest.raises(Overtaken):
        await store.commit(Batch(ledgers=[ledger(3)]))
    await store.commit(Batch(ledgers=[ledger(2, due_at=12)]))
    assert await store.next_ledger("schedule") == 12
    assert await store.next_ledger("webhook") is None
    assert await store.due_ledgers("schedule", 11, 5) == []
    assert await store.due_ledgers("schedule", 12, 5) == [ledger(2, due_at=12)]
    await store.commit(Batch(ledgers=[ledger(3, gone=True)]))
    assert await store.ledger("acme", "schedule", "s1") is None
    await store.commit(Batch(ledgers=[ledger(1)]))


async def test_a_key_is_delivered_once_however_many_bring_it(store: Store) -> None:
    first = delivery(run_id="r1", state="delivered", attempts=[
        DeliveryAttempt(event_id="dlv_k1", at=6, outcome="delivered")
    ])  # fmt: skip
    await store.commit(Batch(deliveries=[first], appends=[append("r1", 0)]))
    with pytest.raises(Overtaken):
        await store.commit(Batch(deliveries=[delivery(run_id="r2")], appends=[append("r2", 0)]))
    assert await store.head("acme", "r2") is None
    assert await store.delivery("acme", "sub1", "k1") == first
    assert await store.delivery_by_id("acme", "dlv_k1") == first
    assert await store.delivery_by_id("other", "dlv_k1") is None
    assert await store.delivery("other", "sub1", "k1") is None
    await store.commit(Batch(deliveries=[replace(first, revision=2, gone=True)]))
    assert await store.delivery("acme", "sub1", "k1") is None


FILTERS = [
    DeliveryFilter(sources=("queue", "webhook"), states=("dead", "waiting", "dead")),
    DeliveryFilter(subscription="sub1", states=("waiting", "dead")),
    DeliveryFilter(subscription="sub1", prefix="dlv_k1"),
    DeliveryFilter(prefix="dlv_k1", states=("dead",), sources=("queue",)),
    DeliveryFilter(prefix="dlv_k1"),
    DeliveryFilter(states=("dead", "waiting", "delivered"), member="host:sally"),
    DeliveryFilter(run_id="r1", states=("delivered", "dead")),
]


@pytest.mark.parametrize("where", FILTERS, ids=range(len(FILTERS)))
async def test_a_filter_finds_all_that_fit_in_order_page_by_page(
    store: Store, where: DeliveryFilter
) -> None:
    rows = [
        delivery(
            f"k{number}",
            subscription=f"sub{number % 2}",
            source=("queue", "webhook", "outbound")[number % 3],
            state=("dead", "waiting", "delivered")[number % 5 % 3],
            received_at=number // 3,
            member="host:sally" if number % 2 else None,
            run_id="r1" if number % 4 == 2 else None,
        )
        for number in range(24)
    ]
    await store.commit(Batch(deliveries=rows))
    wanted = [row.key for row in reversed(rows) if matches_filter(row, where)]
    found, more = list[str](), None
    while True:
        page, more = await store.deliveries("acme", where, more, 3)
        found += [row.key for row in page]
        if more is None:
            break
    assert found == wanted and wanted


async def test_deliveries_are_listed_newest_first_page_by_page(store: Store) -> None:
    for number in range(7):
        state = "dead" if number % 3 == 0 else "delivered"
        await store.commit(
            Batch(deliveries=[delivery(f"k{number}", received_at=number // 2, state=state)])
        )
    page, more = await store.deliveries("acme", DeliveryFilter(), None, 4)
    assert [each.key for each in page] == ["k6", "k5", "k4", "k3"]
    rest, end = await store.deliveries("acme", DeliveryFilter(), more, 4)
    assert [each.key for each in rest] == ["k2", "k1", "k0"]
    assert end is None
    dead, _ = await store.deliveries("acme", DeliveryFilter(states=("dead",)), None, 9)
    assert [each.key for each in dead] == ["k6", "k3", "k0"]
    assert await store.delivery_counts("acme", "sub1") == {"dead": 3, "delivered": 4}
    assert await store.delivery_counts("other", "sub1") == {}
    assert (await store.deliveries("other", DeliveryFilter(), None, 9))[0] == []
    with pytest.raises(BadRequest):
        await store.deliveries("acme", DeliveryFilter(), "nonsense", 9)
    for tenant, where in (("other", DeliveryFilter()), ("acme", DeliveryFilter(states=("dead",)))):
        with pytest.raises(BadRequest):
            await store.deliveries(tenant, where, more, 9)


async def test_what_is_owed_is_found_and_what_is_old_is_forgotten(store: Store) -> None:
    owed = [delivery("a", due_at=30), delivery("b", due_at=10, tenant="other")]
    await store.commit(Batch(deliveries=[*owed, delivery("c", updated_at=3)]))
    assert [each.key for each in await store.due_deliveries("acme", "sub1", 30, 9)] == ["a"]
    assert await store.due_deliveries("acme", "sub1", 29, 9) == []
    assert [each.key for each in await store.due_deliveries("other", "sub1", 29, 9)] == ["b"]
    assert await store.forget_deliveries(4) == 1
    assert await store.forget_deliveries(2**60) == 0


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("gld"), st.sampled_from("xy"), st.integers(0, 4),
        st.none() | st.integers(0, 9), st.booleans(),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(CHANGES)
async def test_every_store_takes_and_refuses_the_same(
    changes: list[tuple[str, str, int, int | None, bool]],
) -> None:
    with TemporaryDirectory() as folder:
        sqlite = await SqliteStore.open(Path(folder) / "one.db")
        try:
            await compare((MemoryStore(), sqlite), changes)
        finally:
            await sqlite.aclose()


async def compare(
    stores: tuple[Store, Store], changes: list[tuple[str, str, int, int | None, bool]]
) -> None:
    for kind, name, revision, due, gone in changes:
        told = set()
        for store in stores:
            batch = Batch(
                guards=[
                    Guard(tenant="acme", kind="member", name=name, revision=revision)
                ] if kind == "g" else [],
                records=[record(name, gone=gone)] if kind == "g" else [],
                ledgers=[ledger(revision, name=name, due_at=due, gone=gone)] if kind == "l" else [],
                deliveries=[delivery(name, revision=revision, due_at=due, gone=gone)]
                if kind == "d" else [],
            )  # fmt: skip
            try:
                await store.commit(batch)
            except Overtaken:
                told.add("overtaken")
            else:
                told.add("taken")
        assert len(told) == 1
    memory, sqlite = stores
    assert await memory.due_ledgers("schedule", 9, 9) == await sqlite.due_ledgers("schedule", 9, 9)
    everything = DeliveryFilter()
    assert await memory.deliveries("acme", everything, None, 9) == await sqlite.deliveries(
        "acme", everything, None, 9
    )
    assert await memory.records("acme", "member") == await sqlite.records("acme", "member")


async def test_what_waits_is_given_oldest_first_and_of_one_subscription(store: Store) -> None:
    rows = [
        delivery("late", received_at=9), delivery("early", received_at=3), delivery("then"),
        delivery("done", received_at=1, state="delivered"),
        delivery("theirs", received_at=1, subscription="sub2"),
        delivery("foreign", received_at=1, tenant="other"),
    ]  # fmt: skip
    await store.commit(Batch(deliveries=rows))
    found = await store.waiting_deliveries("acme", "sub1", 2)
    assert [each.key for each in found] == ["early", "then"]
