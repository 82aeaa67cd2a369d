"""Write batches that create or remove notices of an inbox."""

from collections.abc import Callable, Iterable

from moot.store.protocol import Batch, Store
from moot.store.records import Delivery

#: states in which a delivery is a notice in the inbox
ASKING = ("missed", "dead", "notice")


class NoticeWriter:
    """Commits batches, and rings the inboxes whose notices they change."""

    def __init__(self, store: Store, ring: Callable[[str], None] = lambda _: None) -> None:
        self._store, self._ring = store, ring

    async def commit(self, batch: Batch, before: Iterable[Delivery] = ()) -> None:
        """Commit the batch with the inboxes that it changes. ``before`` holds the rows on disk
        whose notices the batch may remove."""
        tenants = (each.tenant for each in (*batch.deliveries, *before) if each.state in ASKING)
        batch.inboxes = list(dict.fromkeys((*batch.inboxes, *tenants)))
        await self._store.commit(batch)
        for tenant in batch.inboxes:
            self._ring(tenant)
