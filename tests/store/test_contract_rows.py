"""What every store promises of the rows beside its logs and of the whole, one sentence each."""

from collections.abc import AsyncIterator
from itertools import chain

import pytest
from msgspec.structs import replace

from moot.core.errors import BadRequest, Conflict, MootError, RunNotFound
from moot.store.protocol import Append, EffectRow, FoldSnapshot, RunFilter, Store, WorkRow
from moot.store.records import Record
from tests.support.store.rows import (
    append,
    batch,
    definition,
    effect,
    event,
    events,
    key,
    listed,
    row,
)

ANY = RunFilter()


async def ids(store: Store, where: RunFilter = ANY, limit: int = 100) -> list[str]:
    rows, _ = await store.list_runs("acme", where, None, limit)
    return [found.run_id for found in rows]


# derived rows


async def test_the_last_row_of_a_run_is_the_one_found(store: Store) -> None:
    await store.commit(listed("r1"))
    ended = row("r1", status="failed", ended_at=9, error_code="boom", agent_id="ada")
    await store.commit(batch(append("r1", 1, row=ended)))
    assert await store.find_run("acme", "r1") == ended
    await store.commit(batch(append("r1", 2)))
    assert await store.find_run("acme", "r1") == ended


async def test_runs_are_listed_newest_first_and_ties_by_arrival(store: Store) -> None:
    for run_id, at in [("a", 5), ("b", 9), ("c", 5), ("d", 1)]:
        await store.commit(listed(run_id, created_at=at))
    assert await ids(store) == ["b", "c", "a", "d"]


async def test_runs_are_listed_by_a_mark_and_by_their_scope(store: Store) -> None:
    for number in range(6):
        scope = "one" if number % 2 else "two"
        await store.commit(listed(f"r{number}", created_at=number, scope_id=scope))

    async def put(name: str, gone: bool = False, tenant: str = "acme") -> None:
        await store.put_record(
            Record(
                tenant=tenant,
                kind="away",
                name=name,
                version="1",
                body=b"{}",
                created_at=1,
                by="key",
                gone=gone,
            )
        )

    for name in ("r1", "r2", "r4", "nothing"):
        await put(name)
    await put("r2", gone=True)
    await put("r5", tenant="other")
    assert await ids(store, RunFilter(mark="away")) == ["r4", "r1"]
    assert await ids(store, RunFilter(mark="away", marked=False)) == ["r5", "r3", "r2", "r0"]
    assert await ids(store, RunFilter(mark="away", prefix="r1")) == ["r1"]
    assert await ids(store, RunFilter(mark="away", prefix="r1", marked=False)) == []
    assert await ids(store, RunFilter(mark="other")) == []
    assert await ids(store, RunFilter(scope_id="one")) == ["r5", "r3", "r1"]
    first, cursor = await store.list_runs("acme", RunFilter(mark="away"), None, 1)
    rest, end = await store.list_runs("acme", RunFilter(mark="away"), cursor, 1)
    assert ([row.run_id for row in first + rest], end) == (["r4", "r1"], None)


async def test_pages_join_without_gap_or_repeat(store: Store) -> None:
    for number in range(11):
        await store.commit(listed(f"r{number:02}", created_at=number // 3))
    pages, cursor = [], None
    while True:
        rows, cursor = await store.list_runs("acme", ANY, cursor, 3)
        pages.append([found.run_id for found in rows])
        if cursor is None:
            break
    assert [len(page) for page in pages] == [3, 3, 3, 2]
    assert list(chain.from_iterable(pages)) == await ids(store)


async def test_the_last_full_page_has_no_cursor(store: Store) -> None:
    await store.commit(listed("r1"))
    rows, cursor = await store.list_runs("acme", ANY, None, 1)
    assert (len(rows), cursor) == (1, None)


async def test_a_page_stays_where_it_was_while_runs_arrive_and_change(store: Store) -> None:
    for number in range(4):
        await store.commit(listed(f"r{number}", created_at=number))
    _, cursor = await store.list_runs("acme", ANY, None, 2)
    await store.commit(listed("r9", created_at=9))
    await store.commit(batch(append("r1", 1, row=row("r1", created_at=1, status="completed"))))
    rows, _ = await store.list_runs("acme", ANY, cursor, 2)
    assert [found.run_id for found in rows] == ["r1", "r0"]


async def test_threads_are_listed_as_they_were_used_last(store: Store) -> None:
    """What changes moves to the front; what does not comes once, on whatever page."""
    used, rex = RunFilter(used=True), {"workflow_id": "moot.thread"}
    for number in range(7):
        await store.commit(listed(f"th{number}", created_at=number, updated_at=number // 2, **rex))
    await store.commit(listed("other", created_at=9, updated_at=9))
    await store.commit(batch(append("th0", 1, row=row("th0", created_at=0, updated_at=50, **rex))))
    assert await ids(store, used) == ["th0", "th6", "th5", "th4", "th3", "th2", "th1"]
    assert await ids(store, RunFilter(used=True, prefix="th1")) == ["th1"]
    record = Record(tenant="acme", kind="away", name="th5", version="1", body=b"{}", created_at=1,
                    by="key")  # fmt: skip
    await store.put_record(record)
    away = RunFilter(used=True, mark="away", marked=False, workflow_id="moot.thread")
    first, cursor = await store.list_runs("acme", away, None, 2)
    await store.commit(batch(append("th3", 1, row=row("th3", created_at=3, updated_at=60, **rex))))
    rest, end = await store.list_runs("acme", away, cursor, 9)
    assert [found.run_id for found in first] == ["th0", "th6"]
    assert ([found.run_id for found in rest], end) == (["th4", "th2", "th1"], None)
    assert await ids(store, RunFilter(used=True, mark="away")) == ["th5"]
    assert (await ids(store, away))[0] == "th3"


@pytest.mark.parametrize("cursor", ["", "nonsense", "!!!!", "é", "AAAA", "A" * 23])
async def test_a_bad_cursor_is_a_bad_request(store: Store, cursor: str) -> None:
    with pytest.raises(BadRequest):
        await store.list_runs("acme", ANY, cursor, 10)


async def test_runs_are_filtered_by_each_field_and_by_all_together(store: Store) -> None:
    await store.commit(listed("aa1", status="running", workflow_id="w1", agent_id="ada"))
    await store.commit(listed("aa2", status="failed", workflow_id="w1", parent_run="aa1"))
    await store.commit(listed("ab1", status="completed", workflow_id="w2", agent_id="ada"))
    fork = {"fork_of": "aa1", "fork_seq": 3, "fork_mode": "branch", "fork_note": "why not"}
    await store.commit(listed("AA3", status="failed", workflow_id="w2", parent_run="aa1", **fork))
    assert await ids(store, RunFilter(statuses=("failed",))) == ["AA3", "aa2"]
    assert await ids(store, RunFilter(statuses=("failed", "running"))) == ["AA3", "aa2", "aa1"]
    assert await ids(store, RunFilter(statuses=("failed", "running")), limit=2) == ["AA3", "aa2"]
    assert await ids(store, RunFilter(workflow_id="w1")) == ["aa2", "aa1"]
    assert await ids(store, RunFilter(agent_id="ada")) == ["ab1", "aa1"]
    assert await ids(store, RunFilter(parent_run="aa1")) == ["AA3", "aa2"]
    assert await ids(store, RunFilter(fork_of="aa1")) == ["AA3"]
    assert await ids(store, RunFilter(fork_of="aa1", statuses=("running",))) == []
    [found], _ = await store.list_runs("acme", RunFilter(fork_of="aa1"), None, 9)
    assert {name: getattr(found, name) for name in fork} == fork
    assert (await store.list_runs("other", RunFilter(fork_of="aa1"), None, 9))[0] == []
    assert await ids(store, RunFilter(prefix="aa")) == ["aa2", "aa1"]
    assert await ids(store, RunFilter(prefix="")) == ["AA3", "ab1", "aa2", "aa1"]
    assert await ids(store, RunFilter(prefix="a", statuses=("running", "completed"))) == [
        "ab1",
        "aa1",
    ]
    every = RunFilter(
        prefix="aa", statuses=("failed",), workflow_id="w1", parent_run="aa1", agent_id=None
    )
    assert await ids(store, every) == ["aa2"]
    assert await ids(store, replace(every, agent_id="ada")) == []


async def test_the_active_run_of_a_scope_is_the_newest_that_has_not_ended(store: Store) -> None:
    for run_id, at in [("r1", 1), ("r2", 3), ("r3", 2)]:
        await store.commit(listed(run_id, created_at=at, scope_id="s"))
    assert await store.active_run("acme", "s") == "r2"
    ended = row("r2", created_at=3, scope_id="s", status="completed", ended_at=4)
    await store.commit(batch(append("r2", 1, row=ended)))
    assert await store.active_run("acme", "s") == "r3"
    assert await store.active_run("acme", "other") is None


async def test_work_is_found_when_due_oldest_first_for_every_tenant(store: Store) -> None:
    assert await store.next_work() is None
    await store.commit(batch(append("r1", work=30), append("r2", work=0, tenant="other")))
    await store.commit(batch(append("r3", work=20), append("r4", work=None)))
    assert await store.next_work() == 0
    due = [WorkRow("other", "r2", 0), WorkRow("acme", "r3", 20), WorkRow("acme", "r1", 30)]
    assert await store.work(30, 10) == due
    assert await store.work(29, 10) == due[:2]
    assert await store.work(30, 1) == due[:1]


async def test_a_work_row_stays_until_it_is_changed_or_cleared(store: Store) -> None:
    await store.commit(batch(append("r1", 0, work=5)))
    await store.commit(batch(append("r1", 1)))
    assert await store.work(9, 9) == [WorkRow("acme", "r1", 5)]
    await store.commit(batch(append("r1", 2, work=7)))
    assert await store.work(9, 9) == [WorkRow("acme", "r1", 7)]
    await store.commit(batch(append("r1", 3, work=None)))
    assert (await store.work(9, 9), await store.next_work()) == ([], None)


async def test_a_work_row_is_cleared_without_a_word_in_the_log(store: Store) -> None:
    await store.commit(batch(append("r1", 0, work=0)))
    before = await store.read("acme", "r1")
    cleared = Append(tenant="acme", run_id="r1", first=1, events=[], work=None)
    await store.commit(batch(cleared))
    assert await store.work(9, 9) == [] and await store.read("acme", "r1") == before
    assert await store.head("acme", "r1") == 1 and await store.verify() == []
    await store.commit(batch(append("r1", 1, work=3)))
    assert await store.work(9, 9) == [WorkRow("acme", "r1", 3)]


async def test_a_snapshot_is_found_by_its_fold_version_only(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 3, snapshot=b"three", fold_version=2)))
    assert await store.snapshot("acme", "r1", 2) == FoldSnapshot(3, b"three")
    assert await store.snapshot("acme", "r1", 1) is None
    await store.commit(batch(append("r1", 3, 1, snapshot=b"four", fold_version=2)))
    await store.commit(batch(append("r1", 4, 1)))
    assert await store.snapshot("acme", "r1", 2) == FoldSnapshot(4, b"four")


async def rebuilt(
    *pairs: tuple[Append, list[EffectRow]],
) -> AsyncIterator[tuple[Append, list[EffectRow]]]:
    for pair in pairs:
        yield pair


async def test_rebuilding_replaces_every_derived_row_and_no_event(store: Store) -> None:
    stale = append("r1", row=row("r1"), work=1, snapshot=b"old")
    await store.commit(batch(stale, append("r2", row=row("r2"), work=2), effects=[effect("i", 0)]))
    fresh = append("r1", 1, 0, row=row("r1", status="completed"), snapshot=b"new", fold_version=3)
    await store.rebuild(rebuilt((fresh, [effect("j", 0, finished=True)])))
    assert await ids(store) == ["r1"]
    assert (await store.find_run("acme", "r1")) == fresh.row
    assert await store.snapshot("acme", "r1", 3) == FoldSnapshot(1, b"new")
    assert await store.work(9, 9) == []
    assert await store.effect("acme", "r1", "i") is None
    assert await store.effect("acme", "r1", "j") == effect("j", 0, finished=True)
    assert await store.runs() == [("acme", "r1"), ("acme", "r2")]
    assert await store.read("acme", "r2") == events("r2", 0, 1)


async def test_work_changes_as_usual_after_rebuilding(store: Store) -> None:
    await store.commit(batch(append("r1", work=1), append("r2", work=2)))
    await store.rebuild(rebuilt((append("r2", 1, 0, work=5), [])))
    await store.commit(batch(append("r1", 1, work=1), append("r2", 1, work=None)))
    assert await store.work(9, 9) == [WorkRow("acme", "r1", 1)]


async def test_rebuilding_may_read_the_store_it_rebuilds(store: Store) -> None:
    await store.commit(batch(append("r1", 0, 2), append("r2", 0, 3)))

    async def rows() -> AsyncIterator[tuple[Append, list[EffectRow]]]:
        for tenant, run_id in await store.runs():
            length = len(await store.read(tenant, run_id))
            yield append(run_id, length, 0, row=row(run_id, next_sequence=length)), []

    await store.rebuild(rows())
    found, _ = await store.list_runs("acme", ANY, None, 9)
    assert [(one.run_id, one.next_sequence) for one in found] == [("r2", 3), ("r1", 2)]


async def test_a_rebuild_that_breaks_off_changes_nothing(store: Store) -> None:
    await store.commit(listed("r1"))

    async def rows() -> AsyncIterator[tuple[Append, list[EffectRow]]]:
        yield append("r1", 1, 0, row=row("r1", status="failed")), []
        raise LookupError("the fold could not go on")

    with pytest.raises(LookupError):
        await store.rebuild(rows())
    with pytest.raises(RunNotFound):
        await store.rebuild(rebuilt((append("r9", 0, 0, row=row("r9")), [])))
    assert await store.find_run("acme", "r1") == row("r1")
    await store.commit(batch(append("r1", 1)))


# primary tables


async def test_the_newest_definition_wins_and_older_ones_stay_readable(store: Store) -> None:
    one, two = definition("brief", b"1"), definition("brief", b"2")
    await store.put_definition(one)
    await store.put_definition(two)
    assert await store.definition("acme", "brief") == two
    assert await store.definition_by_digest("acme", one.digest) == one
    await store.put_definition(one)
    assert await store.definition("acme", "brief") == one
    assert await store.definition_by_digest("acme", two.digest) == two


async def test_definitions_are_listed_once_by_id_for_their_tenant_only(store: Store) -> None:
    z, a, new = definition("z", b"1"), definition("a", b"2"), definition("z", b"3")
    for put in (z, a, new, definition("z", b"4", tenant="other")):
        await store.put_definition(put)
    assert await store.definitions("acme") == [a, new]
    assert await store.definition("nobody", "z") is None
    assert await store.definition_by_digest("other", z.digest) is None


async def test_a_key_is_found_by_its_hash_as_it_was_put(store: Store) -> None:
    put = key("k1", admin=True, test=True, expires_at=9)
    await store.put_key(put)
    assert await store.key_by_hash(put.hash) == put
    assert await store.key_by_hash("another") is None
    renamed = replace(put, name="renamed", speaks_as=[])
    await store.put_key(renamed)
    assert await store.key_by_hash(put.hash) == renamed


async def test_two_keys_cannot_have_one_secret(store: Store) -> None:
    await store.put_key(key("k1"))
    with pytest.raises(Conflict):
        await store.put_key(replace(key("k2"), hash=key("k1").hash))
    assert await store.keys(None) == [key("k1")]


async def test_keys_are_listed_oldest_first_for_one_tenant_or_for_all(store: Store) -> None:
    old, new, other = key("b"), key("a", created_at=2), key("c", tenant="other")
    for put in (new, other, old):
        await store.put_key(put)
    assert await store.keys("acme") == [old, new]
    assert await store.keys(None) == [old, other, new]


async def test_a_key_is_revoked_once_and_by_its_tenant_only(store: Store) -> None:
    await store.put_key(key("k1"))
    assert not await store.revoke_key("evil", "k1", 5)
    assert not await store.revoke_key("acme", "unknown", 5)
    assert await store.revoke_key("acme", "k1", 5)
    assert await store.revoke_key(None, "k1", 6)
    assert await store.keys("acme") == [key("k1", revoked_at=5)]


# the whole


async def test_a_sound_store_has_no_problems(store: Store) -> None:
    assert await store.verify() == []
    await store.commit(batch(append("r1", 0, 3), append("r2", 0, 1, tenant="other")))
    await store.commit(batch(append("r1", 3, 2), append("r3", 0, 0)))
    await store.put_definition(definition("brief", b"{}"))
    assert await store.verify() == []


async def test_an_event_in_the_wrong_place_is_a_problem(store: Store) -> None:
    bodies = [event("r1", 0), event("r2", 1), event("r1", 2)]
    await store.commit(batch(Append(tenant="acme", run_id="r1", first=0, events=bodies)))
    await store.commit(batch(Append(tenant="acme", run_id="r2", first=0, events=[b"no json"])))
    found = {(problem.run_id, problem.sequence) for problem in await store.verify()}
    assert found == {("r1", 1), ("r2", 0)}


async def test_one_log_is_verified_by_itself(store: Store) -> None:
    bodies = [event("r1", 0), event("r2", 1)]
    await store.commit(batch(Append(tenant="acme", run_id="r1", first=0, events=bodies)))
    await store.commit(batch(append("r3", 0, 3)))
    [problem] = await store.verify_log("acme", "r1")
    assert (problem.run_id, problem.sequence) == ("r1", 1)
    for place in (("acme", "r3"), ("other", "r1"), ("acme", "nobody")):
        assert await store.verify_log(*place) == []


async def test_a_definition_that_does_not_match_its_digest_is_a_problem(store: Store) -> None:
    await store.put_definition(replace(definition("brief", b"{}"), body=b"{} "))
    (problem,) = await store.verify()
    assert problem.tenant == "acme"
    assert "brief" in problem.what


async def test_stats_count_runs_events_and_statuses(store: Store) -> None:
    for run_id, status in [("r1", "running"), ("r2", "failed"), ("r3", "failed")]:
        await store.commit(batch(append(run_id, 0, 2, row=row(run_id, status=status))))
    figures = await store.stats()
    assert (figures["runs"], figures["events"]) == (3, 6)
    assert figures["statuses"] == {"running": 1, "failed": 2}


async def test_closing_twice_is_safe(store: Store) -> None:
    await store.commit(batch(append("r1")))
    await store.aclose()
    await store.aclose()


async def test_every_refusal_of_a_commit_is_a_moot_error(store: Store) -> None:
    with pytest.raises(MootError):
        await store.commit(batch(append("r1", 4)))


async def test_a_thread_is_listed_with_its_name_and_its_turns(store: Store) -> None:
    await store.commit(listed("th1", workflow_id="talk", title="Ours", turns=3))
    await store.commit(listed("th2", workflow_id="talk"))
    found, _ = await store.list_runs("acme", RunFilter(workflow_id="talk"), None, 9)
    assert [(row.title, row.turns) for row in found] == [(None, None), ("Ours", 3)]
    assert await store.find_run("acme", "th1") == found[1]
