"""Derived rows of the store in memory; every other store must return the same."""

from collections import Counter

from msgspec import Struct

from moot.store import cursor
from moot.store.memory.records import InMemoryRecords
from moot.store.protocol import DAY_MS, InboxRow, RunFilter, RunIndexRow, Tally, WorkRow


class InMemoryLog(Struct):
    """The events of one run. ``number`` counts logs in the order of their creation."""

    tenant: str
    number: int
    events: list[bytes] = []


class InMemoryIndex(InMemoryRecords):
    """Part of the store in memory; it keeps the promises of ``IndexStore``."""

    def __init__(self) -> None:
        super().__init__()
        self._logs: dict[str, InMemoryLog] = {}
        self._inbox_revisions: dict[str, int] = {}
        self._forget_index()

    def _forget_index(self) -> None:
        self._rows: dict[str, RunIndexRow] = {}
        self._work: dict[str, int] = {}
        self._inbox: dict[str, list[InboxRow]] = {}
        self._messages: dict[tuple[str, str], int] = {}

    def _log(self, tenant: str, run_id: str) -> InMemoryLog | None:
        log = self._logs.get(run_id)
        return log if log is not None and log.tenant == tenant else None

    async def find_run(self, tenant: str, run_id: str) -> RunIndexRow | None:
        return self._rows.get(run_id) if self._log(tenant, run_id) else None

    async def list_runs(
        self, tenant: str, where: RunFilter, before: str | None, limit: int
    ) -> tuple[list[RunIndexRow], str | None]:
        position = cursor.decode_position(before)
        order = self._use_order if where.used else self._creation_order
        rows = [row for row in self._rows.values() if row.tenant == tenant and where.admits(row)]
        matches = sorted((row for row in rows if order(row) < position), key=order, reverse=True)
        if where.mark is not None:
            names = {record.name for record in await self.records(tenant, where.mark)}
            matches = [row for row in matches if (row.run_id in names) == where.marked]
        page = matches[:limit]
        more = len(matches) > limit > 0
        return page, cursor.encode_position(order(page[-1])) if more else None

    def _use_order(self, row: RunIndexRow) -> cursor.Position:
        return row.updated_at, self._logs[row.run_id].number

    def _creation_order(self, row: RunIndexRow) -> cursor.Position:
        return row.created_at, self._logs[row.run_id].number

    async def active_run(self, tenant: str, scope_id: str) -> str | None:
        place, rows = (tenant, scope_id, None), self._rows.values()
        active = [row for row in rows if (row.tenant, row.scope_id, row.ended_at) == place]
        return max(active, key=self._creation_order).run_id if active else None

    async def work(self, until: int, limit: int) -> list[WorkRow]:
        due = ((at, self._logs[run].number, run) for run, at in self._work.items() if at <= until)
        return [WorkRow(self._logs[run].tenant, run, at) for at, _, run in sorted(due)[:limit]]

    async def next_work(self) -> int | None:
        return min(self._work.values(), default=None)

    async def message(self, tenant: str, run_id: str, message_id: str) -> int | None:
        return self._messages.get((run_id, message_id)) if self._log(tenant, run_id) else None

    async def inbox(self, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
        of_runs = self._inbox.values()
        rows = [row for inbox in of_runs for row in inbox if row.tenant == tenant]
        rows.sort(key=lambda row: row.since)
        return rows[:limit], self._inbox_revisions.get(tenant, 0)

    async def tally(self, tenant: str, member: str, since: int, most: int) -> list[Tally]:
        counts = Counter(
            (row.workflow_id, row.created_at // DAY_MS, row.status)
            for row in await self._member_runs(tenant, member, most)
            if row.created_at >= since
        )
        return [Tally(*place, counts[place]) for place in sorted(counts)]

    async def newest_runs(self, tenant: str, member: str, most: int) -> list[RunIndexRow]:
        rows = await self._member_runs(tenant, member, most)
        newest = {row.workflow_id: row for row in reversed(rows)}
        return [newest[name] for name in sorted(newest)]

    async def _member_runs(self, tenant: str, member: str, most: int) -> list[RunIndexRow]:
        rows, _ = await self.list_runs(tenant, RunFilter(member=member), None, most)
        return [row for row in rows if row.parent_run is None]

    async def asked_by(self, tenant: str, member: str, most: int) -> list[tuple[int, InboxRow]]:
        rows, _ = await self.inbox(tenant, most)
        members = {run_id for run_id, row in self._rows.items() if row.member == member}
        return [(number, row) for number, row in enumerate(rows, 1) if row.run_id in members]
