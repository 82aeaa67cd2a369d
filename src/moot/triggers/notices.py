"""Notices of an inbox come and go with what they are about: in its transaction, told at once."""

from collections.abc import Callable, Iterable

from moot.store.protocol import Batch, Delivery, Store

#: states in which a delivery is a matter for people
ASKING = ("missed", "dead", "notice")


class News:
    def __init__(self, store: Store, ring: Callable[[str], None] = lambda _: None) -> None:
        self._store, self._ring = store, ring

    async def commit(self, batch: Batch, was: Iterable[Delivery] = ()) -> None:
        """``was``: what the batch may take out of the sight of people, as it is on disk."""
        asking = (each.tenant for each in (*batch.deliveries, *was) if each.state in ASKING)
        batch.inboxes = list(dict.fromkeys((*batch.inboxes, *asking)))
        await self._store.commit(batch)
        for tenant in batch.inboxes:
            self._ring(tenant)
