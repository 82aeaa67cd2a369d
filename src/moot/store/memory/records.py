"""Records, ledgers and deliveries in memory: the specification of how every store keeps them."""

from msgspec.structs import replace

from moot.core.errors.triggers import Overtaken
from moot.store import cursor
from moot.store.protocol import Batch
from moot.store.records import Delivery, DeliveryFilter, Lane, Ledger, Record


class Shelf:
    def __init__(self) -> None:
        super().__init__()
        self._records: list[Record] = []
        self._ledgers: dict[tuple[str, str, str], Ledger] = {}
        self._deliveries: dict[tuple[str, str, str], Delivery] = {}
        #: in the order in which they came
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._count = 0

    def _check_standing(self, batch: Batch) -> None:
        for guard in batch.guards:
            if self._revision(guard.tenant, guard.kind, guard.name) != guard.revision:
                raise Overtaken(guard.name)
        for ledger in batch.ledgers:
            known = self._ledgers.get((ledger.tenant, ledger.kind, ledger.name))
            if ledger.revision != (known.revision if known else 0) + 1:
                raise Overtaken(ledger.name)
        for delivery in batch.deliveries:
            held = self._deliveries.get(_place(delivery))
            if delivery.revision != (held.revision if held else 0) + 1:
                raise Overtaken(delivery.delivery_id)

    def _keep_standing(self, batch: Batch) -> None:
        for record in batch.records:
            self._records.append(replace(record, revision=len(self._records) + 1))
        for ledger in batch.ledgers:
            where = ledger.tenant, ledger.kind, ledger.name
            if ledger.gone:
                self._ledgers.pop(where, None)
            else:
                self._ledgers[where] = ledger
        for delivery in batch.deliveries:
            if delivery.gone:
                self._deliveries.pop(_place(delivery), None)
            else:
                if _place(delivery) not in self._deliveries:
                    self._count += 1
                    self._numbers[_place(delivery)] = self._count
                self._deliveries[_place(delivery)] = delivery

    def _revision(self, tenant: str, kind: str, name: str) -> int:
        newest_first = reversed(self._records)
        wanted = (tenant, kind, name)
        of_it = (r for r in newest_first if (r.tenant, r.kind, r.name) == wanted)
        newest = next(of_it, None)
        return newest.revision if newest else 0

    # records

    async def put_record(self, record: Record) -> None:
        self._keep_standing(Batch(records=[record]))

    async def record(self, tenant: str, kind: str, name: str) -> Record | None:
        newest = next(iter(await self.record_history(tenant, kind, name)), None)
        return None if newest is None or newest.gone else newest

    async def records(self, tenant: str, kind: str) -> list[Record]:
        newest = {
            known.name: known
            for known in self._records
            if (known.tenant, known.kind) == (tenant, kind)
        }
        return [newest[name] for name in sorted(newest) if not newest[name].gone]

    async def record_page(
        self, tenant: str, kind: str, after: str, limit: int
    ) -> tuple[list[Record], int]:
        found = await self.records(tenant, kind)
        return [record for record in found if record.name > after][:limit], len(found)

    async def record_history(self, tenant: str, kind: str, name: str) -> list[Record]:
        wanted = (tenant, kind, name)
        return [
            known
            for known in reversed(self._records)
            if (known.tenant, known.kind, known.name) == wanted
        ]

    async def record_tenants(self, kind: str) -> list[str]:
        return sorted({known.tenant for known in self._records if known.kind == kind})

    # ledgers

    async def ledger(self, tenant: str, kind: str, name: str) -> Ledger | None:
        return self._ledgers.get((tenant, kind, name))

    async def due_ledgers(self, kind: str, until: int, limit: int) -> list[Ledger]:
        due = [
            (ledger.due_at, number, ledger)
            for number, ledger in enumerate(self._ledgers.values())
            if ledger.kind == kind and ledger.due_at is not None and ledger.due_at <= until
        ]
        return [ledger for _, _, ledger in sorted(due, key=lambda each: each[:2])[:limit]]

    async def next_ledger(self, kind: str) -> int | None:
        dues = (known.due_at for known in self._ledgers.values() if known.kind == kind)
        return min((due for due in dues if due is not None), default=None)

    # deliveries

    async def delivery(self, tenant: str, subscription: str, key: str) -> Delivery | None:
        return self._deliveries.get((tenant, subscription, key))

    async def delivery_by_id(self, tenant: str, delivery_id: str) -> Delivery | None:
        named = (d for d in self._deliveries.values() if d.delivery_id == delivery_id)
        return next((d for d in named if d.tenant == tenant), None)

    async def deliveries(
        self, tenant: str, where: DeliveryFilter, before: str | None, limit: int
    ) -> tuple[list[Delivery], str | None]:
        name = tenant, repr(where)
        position = cursor.decode(cursor.unbound(before, *name))
        found = [
            each
            for each in sorted(self._deliveries.values(), key=self._order, reverse=True)
            if each.tenant == tenant and self._order(each) < position and fits(each, where)
        ]
        page = found[:limit]
        more = len(found) > limit > 0
        following = cursor.encode(self._order(page[-1])) if more else None
        return page, cursor.bound(following, *name)

    def _order(self, delivery: Delivery) -> cursor.Position:
        return delivery.received_at, self._numbers[_place(delivery)]

    async def waiting_deliveries(
        self, tenant: str, subscription: str, limit: int
    ) -> list[Delivery]:
        found = [
            each
            for each in sorted(self._deliveries.values(), key=self._order)
            if (each.tenant, each.subscription, each.state) == (tenant, subscription, "waiting")
        ]
        return found[:limit]

    async def delivery_counts(self, tenant: str, subscription: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for each in self._deliveries.values():
            if (each.tenant, each.subscription) == (tenant, subscription):
                counts[each.state] = counts.get(each.state, 0) + 1
        return counts

    async def lanes(self) -> list[Lane]:
        first: dict[tuple[str, str], Lane] = {}
        for each in self._deliveries.values():
            place = each.tenant, each.subscription
            if each.due_at is None or (place in first and first[place].due_at <= each.due_at):
                continue
            first[place] = Lane(
                tenant=each.tenant,
                subscription=each.subscription,
                source=each.source,
                due_at=each.due_at,
            )
        return [first[place] for place in sorted(first)]

    async def due_deliveries(
        self, tenant: str, subscription: str, until: int, limit: int
    ) -> list[Delivery]:
        due = [
            (each.due_at, self._numbers[_place(each)], each)
            for each in self._deliveries.values()
            if (each.tenant, each.subscription) == (tenant, subscription)
            and each.due_at is not None
            and each.due_at <= until
        ]
        return [each for _, _, each in sorted(due, key=lambda found: found[:2])[:limit]]

    async def forget_deliveries(self, before: int) -> int:
        old = [
            place
            for place, each in self._deliveries.items()
            if each.due_at is None and each.updated_at < before
        ]
        for place in old:
            del self._deliveries[place]
        return len(old)


def fits(delivery: Delivery, where: DeliveryFilter) -> bool:
    return (
        where.subscription in (None, delivery.subscription)
        and (not where.sources or delivery.source in where.sources)
        and (not where.states or delivery.state in where.states)
        and where.member in (None, delivery.member)
        and where.run_id in (None, delivery.run_id)
        and (where.prefix is None or delivery.delivery_id.startswith(where.prefix))
    )


def _place(delivery: Delivery) -> tuple[str, str, str]:
    return delivery.tenant, delivery.subscription, delivery.key
