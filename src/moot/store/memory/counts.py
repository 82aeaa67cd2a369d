"""Tallies of standing agents in memory; every other store must return the same."""

from moot.store.counts import DAY_MS, Tally
from moot.store.protocol import InboxRow, IndexStore, RunFilter, RunIndexRow


async def count_member_runs(
    store: IndexStore, tenant: str, member: str, since: int, most: int
) -> list[Tally]:
    counts: dict[tuple[str, int, str], int] = {}
    for row in await _own_runs(store, tenant, member, most):
        if row.created_at >= since:
            place = row.workflow_id, row.created_at // DAY_MS, row.status
            counts[place] = counts.get(place, 0) + 1
    return [Tally(*place, counts[place]) for place in sorted(counts)]


async def list_newest_runs(
    store: IndexStore, tenant: str, member: str, most: int
) -> list[RunIndexRow]:
    newest: dict[str, RunIndexRow] = {}
    for row in await _own_runs(store, tenant, member, most):
        newest.setdefault(row.workflow_id, row)
    return [newest[name] for name in sorted(newest)]


async def _own_runs(store: IndexStore, tenant: str, member: str, most: int) -> list[RunIndexRow]:
    rows, _ = await store.list_runs(tenant, RunFilter(member=member), None, most)
    return [row for row in rows if row.parent_run is None]


async def list_member_questions(
    store: IndexStore, tenant: str, member: str, most: int
) -> list[tuple[int, InboxRow]]:
    questions = []
    for number, item in enumerate((await store.inbox(tenant, most))[0], 1):
        row = await store.find_run(tenant, item.run_id)
        if row is not None and row.member == member:
            questions.append((number, item))
    return questions
