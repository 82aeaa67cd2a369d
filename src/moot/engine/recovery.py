"""Find runs that are owed effects and take them up, at a start or after a failure."""

import asyncio
import logging
from typing import TYPE_CHECKING

from moot.core.errors import RunNotFound, Unavailable
from moot.store.protocol import WorkRow

if TYPE_CHECKING:
    from moot.engine.host import Host

log = logging.getLogger("moot.engine")

LANES = 8


class Recovery:
    """Takes up runs. A run that cannot be read now is tried again a little later."""

    pause_s = 1.0

    def __init__(self, host: "Host") -> None:
        self._host = host
        self.waiting: set[tuple[str, str]] = set()

    async def all(self) -> int:
        """Take up every run in the store's work queue, and set timers for the later ones."""
        host = self._host
        await host.store.settled()
        rows = await host.store.work(2**62, 2**31)
        now = host.clock.millis()
        ready = [row for row in rows if row.due_at <= now]
        for row in rows:
            if row.due_at > now:
                host.timers.set(row.tenant, row.run_id, row.due_at)
        for lane in range(LANES):
            host.tasks.start(self._take_up(ready[lane::LANES]))
        return len(rows)

    def later(self, tenant: str, run_id: str) -> None:
        """Schedule one more check of the run, once for all callers."""
        if (tenant, run_id) not in self.waiting and not self._host.stopping:
            self.waiting.add((tenant, run_id))
            loop = asyncio.get_running_loop()
            loop.call_later(self.pause_s, self.look, tenant, run_id)

    def look(self, tenant: str, run_id: str) -> None:
        self.waiting.discard((tenant, run_id))
        if not self._host.stopping:
            self._host.tasks.start(self._take_up([WorkRow(tenant, run_id, 0)]))

    async def _take_up(self, rows: list[WorkRow]) -> None:
        for row in rows:
            try:
                await self._host.take_up(row.tenant, row.run_id)
            except Unavailable:
                self.later(row.tenant, row.run_id)
            except RunNotFound:
                continue  # its first commit never happened
            except Exception:  # one unreadable run must not stop the others
                log.exception("A run cannot be taken up", extra={"run_id": row.run_id})
