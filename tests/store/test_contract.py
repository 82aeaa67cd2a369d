"""What every store promises, one sentence each."""

import asyncio

import pytest
from msgspec.structs import replace

from moot.core.errors import SequenceConflict
from moot.store.protocol import Append, ArtifactRow, Batch, RunFilter, Store
from tests.support.store.rows import (
    append,
    batch,
    definition,
    effect,
    events,
    receipt,
    row,
)

ANY = RunFilter()


async def outcomes(store: Store, *batches: Batch) -> list[type[BaseException] | None]:
    """Commits all at the same time and tells how each ended."""
    ends = await asyncio.gather(*map(store.commit, batches), return_exceptions=True)
    return [None if end is None else type(end) for end in ends]


# the log


async def test_what_was_committed_is_read_back_byte_for_byte(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 3)))
    assert await store.read("acme", "r1") == events("r1", 0, 3)


async def test_a_log_grows_at_its_end(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 2)))
    await store.commit(batch(append("r1", 2, 1)))
    assert await store.read("acme", "r1") == events("r1", 0, 3)
    assert await store.head("acme", "r1") == 3


async def test_a_read_starts_after_a_sequence_and_stops_at_the_limit(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 9)))
    assert await store.read("acme", "r1", after=2, limit=3) == events("r1", 3, 3)
    assert await store.read("acme", "r1", after=8) == []
    assert await store.read("acme", "r1", limit=0) == []


async def test_once_settled_a_batch_is_there_though_its_caller_is_gone(store: Store) -> None:
    waiting = asyncio.ensure_future(store.commit(batch(append("r1", 0, 2))))
    await asyncio.sleep(0)  # handed over
    waiting.cancel()
    await asyncio.wait([waiting])
    await store.settled()
    assert await store.read("acme", "r1") == events("r1", 0, 2)


async def test_an_unknown_run_reads_as_empty_and_has_no_head(store: Store) -> None:
    assert await store.read("acme", "r1") == []
    assert await store.head("acme", "r1") is None
    assert await store.find_run("acme", "r1") is None
    assert await store.runs() == []


async def test_bytes_that_are_not_text_are_kept_as_they_are(store: Store) -> None:
    body = bytes(range(256))
    await store.commit(batch(Append(tenant="acme", run_id="r1", first=0, events=[body, b""])))
    assert await store.read("acme", "r1") == [body, b""]


async def test_a_gap_is_refused(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 2)))
    with pytest.raises(SequenceConflict):
        await store.commit(batch(append("r1", 3)))
    assert await store.head("acme", "r1") == 2


async def test_an_overlap_is_refused(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 2)))
    with pytest.raises(SequenceConflict):
        await store.commit(batch(append("r1", 1)))
    assert await store.read("acme", "r1") == events("r1", 0, 2)


async def test_a_new_run_starts_at_zero(store: Store) -> None:
    with pytest.raises(SequenceConflict):
        await store.commit(batch(append("r1", 1)))
    assert await store.head("acme", "r1") is None


async def test_a_run_id_of_another_tenant_is_a_conflict(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 1, tenant="acme")))
    assert await outcomes(
        store, batch(append("r1", 0, tenant="evil")), batch(append("r1", 1, tenant="evil"))
    ) == [SequenceConflict, SequenceConflict]
    assert await store.read("acme", "r1") == events("r1", 0, 1)


async def test_an_append_without_events_only_changes_derived_rows(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 1, row=row("r1"), work=5)))
    await store.commit(batch(append("r1", 1, 0, work=None)))
    assert await store.head("acme", "r1") == 1
    assert await store.work(10, 10) == []
    with pytest.raises(SequenceConflict):
        await store.commit(batch(append("r1", 0, 0, work=7)))


async def test_one_conflict_in_a_group_leaves_the_others_written(store: Store) -> None:
    assert await outcomes(
        store, batch(append("r1")), batch(append("r2", 7)), batch(append("r3")), batch(append("r1"))
    ) == [None, SequenceConflict, None, SequenceConflict]
    assert await store.runs() == [("acme", "r1"), ("acme", "r3")]
    assert await store.read("acme", "r1") == events("r1", 0, 1)


async def test_commits_to_one_run_in_one_group_follow_each_other(store: Store) -> None:
    batches = [batch(append("r1", sequence)) for sequence in range(50)]
    assert await outcomes(store, *batches) == [None] * 50
    assert await store.read("acme", "r1") == events("r1", 0, 50)


async def test_a_batch_over_two_runs_is_all_or_nothing(store: Store) -> None:
    await store.commit(batch(append("r2")))
    refused = batch(
        append("r1", row=row("r1"), work=0, snapshot=b"s"),
        append("r2", 5),
        receipt=receipt("k"),
        artifacts=[ArtifactRow(tenant="acme", run_id="r1", artifact_id="a", body=b"x")],
        effects=[effect("i", 0)],
        sealed=[("acme", "r1", "token", b"1")],
    )
    assert await outcomes(store, refused, batch(append("r3"))) == [SequenceConflict, None]
    assert await store.runs() == [("acme", "r2"), ("acme", "r3")]
    assert await store.find_run("acme", "r1") is None
    assert await store.work(10, 10) == []
    assert await store.snapshot("acme", "r1", 0) is None
    assert await store.receipt("acme", "POST /runs", "k") is None
    assert await store.artifact("acme", "r1", "a") is None
    assert await store.effect("acme", "r1", "i") is None
    assert await store.sealed("acme", "r1") == {}


async def test_a_batch_may_start_a_child_and_move_its_parent(store: Store) -> None:
    await store.commit(batch(append("r1")))
    await store.commit(batch(append("r1", 1), append("r2", 0, 2)))
    assert (await store.head("acme", "r1"), await store.head("acme", "r2")) == (2, 2)


@pytest.mark.parametrize("second", [0, 1])
async def test_a_batch_may_not_name_a_run_twice(store: Store, second: int) -> None:
    with pytest.raises(SequenceConflict):
        await store.commit(batch(append("r1"), append("r1", second)))
    assert await store.head("acme", "r1") is None


async def test_reads_are_scoped_to_the_tenant(store: Store) -> None:
    await store.commit(
        batch(
            append("r1", row=row("r1", scope_id="s"), snapshot=b"state"),
            receipt=receipt("k"),
            artifacts=[ArtifactRow(tenant="acme", run_id="r1", artifact_id="a", body=b"x")],
            effects=[effect("i", 0)],
            sealed=[("acme", "r1", "token", b"1")],
        )
    )
    assert await store.read("evil", "r1") == []
    assert await store.head("evil", "r1") is None
    assert await store.find_run("evil", "r1") is None
    assert await store.snapshot("evil", "r1", 0) is None
    assert await store.receipt("evil", "POST /runs", "k") is None
    assert await store.artifact("evil", "r1", "a") is None
    assert await store.effect("evil", "r1", "i") is None
    assert await store.sealed("evil", "r1") == {}
    assert await store.active_run("evil", "s") is None
    assert await store.list_runs("evil", ANY, None, 10) == ([], None)


# beside the log


async def test_a_receipt_is_remembered_whole(store: Store) -> None:
    await store.commit(batch(append("r1"), receipt=receipt("k")))
    assert await store.receipt("acme", "POST /runs", "k") == receipt("k")
    assert await store.receipt("acme", "POST /other", "k") is None


async def test_receipts_that_are_asked_for_together_are_each_found(store: Store) -> None:
    names = [f"k{number}\0ü" for number in range(1300)]
    for name in names[::7]:
        await store.commit(batch(receipt=receipt(name)))
    asked = [asyncio.ensure_future(store.receipt("acme", "POST /runs", name)) for name in names]
    await asyncio.sleep(0)
    asked[3].cancel()  # who no longer waits spoils nothing for the others
    found = await asyncio.gather(*asked, return_exceptions=True)
    for number, name in enumerate(names):
        if number != 3:
            assert found[number] == (None if number % 7 else receipt(name))


async def test_a_receipt_can_be_written_alone(store: Store) -> None:
    await store.commit(batch(receipt=receipt("k")))
    assert await store.receipt("acme", "POST /runs", "k") == receipt("k")


async def test_a_receipt_key_can_be_used_once(store: Store) -> None:
    await store.commit(batch(append("r1"), receipt=receipt("k")))
    with pytest.raises(SequenceConflict):
        await store.commit(batch(append("r2"), receipt=receipt("k")))
    assert await store.head("acme", "r2") is None


async def test_of_two_equal_receipt_keys_in_a_group_the_first_wins(store: Store) -> None:
    first, second = batch(append("r1"), receipt=receipt("k")), batch(receipt=receipt("k"))
    elsewhere = batch(append("r2"), receipt=receipt("k", tenant="other"))
    assert await outcomes(store, first, second, elsewhere) == [None, SequenceConflict, None]


async def test_old_receipts_are_forgotten_and_their_keys_free_again(store: Store) -> None:
    for name, at in [("a", 1), ("b", 2), ("c", 3)]:
        await store.commit(batch(receipt=receipt(name, at=at)))
    assert await store.forget_receipts(before=3) == 2
    assert await store.forget_receipts(before=3) == 0
    assert await store.receipt("acme", "POST /runs", "a") is None
    assert await store.receipt("acme", "POST /runs", "c") is not None
    await store.commit(batch(receipt=receipt("a")))


async def test_the_last_artifact_of_an_id_is_the_one_kept(store: Store) -> None:
    for body in (b"one", b"two"):
        kept = ArtifactRow(tenant="acme", run_id="r1", artifact_id="a", body=body)
        await store.commit(batch(artifacts=[kept]))
    assert await store.artifact("acme", "r1", "a") == b"two"
    assert await store.artifact("acme", "r1", "b") is None


async def test_the_newest_record_of_an_effect_is_the_one_found(store: Store) -> None:
    await store.commit(batch(effects=[effect("i", 1)]))
    assert await store.effect("acme", "r1", "i") == effect("i", 1)
    await store.commit(batch(effects=[effect("i", 2)]))
    assert await store.effect("acme", "r1", "i") == effect("i", 2)
    await store.commit(batch(effects=[effect("i", 3, finished=True)]))
    assert await store.effect("acme", "r1", "i") == effect("i", 3, finished=True)
    await store.commit(batch(effects=[effect("i", 4)]))
    assert await store.effect("acme", "r1", "i") == effect("i", 4)


async def test_an_effect_is_found_in_its_own_run_only(store: Store) -> None:
    other = replace(effect("i", 9, finished=True), run_id="r2")
    await store.commit(batch(effects=[effect("i", 1), other]))
    assert await store.effect("acme", "r1", "i") == effect("i", 1)
    assert await store.effect("acme", "r2", "i") == other
    assert await store.effect("acme", "r3", "i") is None


async def test_what_is_used_up_in_the_rooms_of_a_tenant_is_the_tenants(store: Store) -> None:
    tenants = ("acme/user:eve", "acme/user", "acme", "acme-two/user", "acm/user")
    used = [
        replace(effect("a", 1, finished=True, tenant=tenant), day=7, tokens=10**number)
        for number, tenant in enumerate(tenants)
    ]
    await store.commit(batch(effects=used))
    assert await store.spent("acme", 7) == (111, 0)
    assert await store.spent("acme", 8) == (0, 0)
    assert await store.spent("acm", 7) == (10_000, 0)


async def test_what_effects_use_up_is_added_up_by_tenant_and_day(store: Store) -> None:
    used = [
        replace(effect("a", 1, finished=True), day=7, tokens=100, money=5),
        replace(effect("b", 2, finished=True), day=7, tokens=20),
        replace(effect("c", 3, finished=True), day=8, tokens=3),
        replace(effect("a", 1, finished=True), tenant="evil", day=7, tokens=1000),
        effect("d", 4),
    ]
    await store.commit(batch(effects=used))
    await store.commit(batch(effects=used[:1]))
    assert await store.spent("acme", 7) == (120, 5)
    assert await store.spent("acme", 8) == (3, 0)
    assert await store.spent("acme", 9) == (0, 0)
    assert await store.effect("acme", "r1", "a") == used[0]


async def test_what_a_standing_agent_uses_up_is_added_up_from_day_to_day(
    store: Store,
) -> None:
    sally = replace(effect("a", 1, finished=True), member="host:sally")
    used = [
        replace(sally, day=7, tokens=100, money=5),
        replace(sally, invocation_id="b", run_id="r2", day=8, tokens=20),
        replace(sally, invocation_id="c", day=9, tokens=3),
        replace(effect("d", 4, finished=True), day=8, tokens=1000),
    ]
    await store.commit(batch(effects=used))
    assert await store.member_spending("acme", "host:sally", 7, 8) == (120, 5)
    assert await store.member_spending("acme", "host:sally", 9, 9) == (3, 0)
    assert await store.member_spending("acme", "host:sally", 10, 20) == (0, 0)
    assert await store.member_spending("acme", "host:bo", 7, 9) == (0, 0)
    assert await store.member_spending("evil", "host:sally", 7, 9) == (0, 0)


async def test_that_another_tenant_has_a_workflow_is_known(store: Store) -> None:
    await store.put_definition(definition("theirs", b"{}", tenant="evil"))
    assert await store.is_defined_elsewhere("acme", "theirs")
    assert not await store.is_defined_elsewhere("evil", "theirs")
    assert not await store.is_defined_elsewhere("acme", "nobodys")


async def test_start_and_end_of_an_effect_may_share_a_batch(store: Store) -> None:
    await store.commit(batch(effects=[effect("i", 1), effect("i", 2, finished=True)]))
    assert await store.effect("acme", "r1", "i") == effect("i", 2, finished=True)


async def test_sealed_values_are_kept_replaced_and_forgotten_by_name(store: Store) -> None:
    await store.commit(batch(sealed=[("acme", "r1", "a", b"1"), ("acme", "r1", "b", b"2")]))
    await store.commit(batch(sealed=[("acme", "r1", "a", b"3"), ("acme", "r1", "b", None)]))
    assert await store.sealed("acme", "r1") == {"a": b"3"}


async def test_unsealing_forgets_every_value_of_the_run_and_of_no_other(store: Store) -> None:
    await store.commit(batch(sealed=[("acme", "r1", "a", b"1"), ("acme", "r2", "a", b"2")]))
    await store.commit(batch(sealed=[("acme", "r1", "b", b"3")], unseal=[("acme", "r1")]))
    assert await store.sealed("acme", "r1") == {}
    assert await store.sealed("acme", "r2") == {"a": b"2"}


async def test_sealing_again_after_unsealing_in_one_group_keeps_the_new_value(
    store: Store,
) -> None:
    await store.commit(batch(sealed=[("acme", "r1", "a", b"1"), ("acme", "r1", "b", b"1")]))
    again = batch(sealed=[("acme", "r1", "a", b"2")])
    assert await outcomes(store, batch(unseal=[("acme", "r1")]), again) == [None, None]
    assert await store.sealed("acme", "r1") == {"a": b"2"}
