"""What standing agents have done, counted in memory: the specification of how every store does."""

from moot.store.protocol import InboxRow, IndexStore, RunFilter, RunRow
from moot.store.tallies import DAY_MS, Tally


async def tally(store: IndexStore, tenant: str, member: str, since: int, most: int) -> list[Tally]:
    counts: dict[tuple[str, int, str], int] = {}
    for row in await _own(store, tenant, member, most):
        if row.created_at >= since:
            place = row.workflow_id, row.created_at // DAY_MS, row.status
            counts[place] = counts.get(place, 0) + 1
    return [Tally(*place, counts[place]) for place in sorted(counts)]


async def newest_runs(store: IndexStore, tenant: str, member: str, most: int) -> list[RunRow]:
    found: dict[str, RunRow] = {}
    for row in await _own(store, tenant, member, most):
        found.setdefault(row.workflow_id, row)
    return [found[name] for name in sorted(found)]


async def _own(store: IndexStore, tenant: str, member: str, most: int) -> list[RunRow]:
    rows, _ = await store.list_runs(tenant, RunFilter(member=member), None, most)
    return [row for row in rows if row.parent_run is None]


async def asked_by(
    store: IndexStore, tenant: str, member: str, most: int
) -> list[tuple[int, InboxRow]]:
    found = []
    for number, item in enumerate((await store.inbox(tenant, most))[0], 1):
        row = await store.find_run(tenant, item.run_id)
        if row is not None and row.member == member:
            found.append((number, item))
    return found
