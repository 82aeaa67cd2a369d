"""Records, ledgers and deliveries in memory. Other stores must return the same."""

from collections import Counter

from msgspec.structs import replace

from moot.core.errors.triggers import Overtaken
from moot.store import cursor
from moot.store.protocol import Batch
from moot.store.records import Delivery, DeliveryFilter, Lane, LedgerRow, Record


class InMemoryRecords:
    """Part of the store in memory; it keeps the promises of ``DeliveryStore``."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[Record] = []
        self._ledgers: dict[tuple[str, str, str], LedgerRow] = {}
        self._deliveries: dict[tuple[str, str, str], Delivery] = {}
        #: numbers deliveries in the order of their arrival
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._count = 0

    def _check_revisions(self, batch: Batch) -> None:
        for guard in batch.guards:
            if self._revision(guard.tenant, guard.kind, guard.name) != guard.revision:
                raise Overtaken(guard.name)
        for ledger in batch.ledgers:
            stored_ledger = self._ledgers.get((ledger.tenant, ledger.kind, ledger.name))
            if ledger.revision != (stored_ledger.revision if stored_ledger else 0) + 1:
                raise Overtaken(ledger.name)
        for delivery in batch.deliveries:
            stored = self._deliveries.get(_place(delivery))
            if delivery.revision != (stored.revision if stored else 0) + 1:
                raise Overtaken(delivery.delivery_id)

    def _write_records(self, batch: Batch) -> None:
        for record in batch.records:
            self._records.append(replace(record, revision=len(self._records) + 1))
        for ledger in batch.ledgers:
            place = ledger.tenant, ledger.kind, ledger.name
            if ledger.gone:
                self._ledgers.pop(place, None)
            else:
                self._ledgers[place] = ledger
        for delivery in batch.deliveries:
            if delivery.gone:
                self._deliveries.pop(_place(delivery), None)
            else:
                if _place(delivery) not in self._deliveries:
                    self._count += 1
                    self._numbers[_place(delivery)] = self._count
                self._deliveries[_place(delivery)] = delivery

    def _revision(self, tenant: str, kind: str, name: str) -> int:
        history = self._history(tenant, kind, name)
        return history[0].revision if history else 0

    # records

    async def put_record(self, record: Record) -> None:
        self._write_records(Batch(records=[record]))

    async def record(self, tenant: str, kind: str, name: str) -> Record | None:
        history = self._history(tenant, kind, name)
        return history[0] if history and not history[0].gone else None

    async def records(self, tenant: str, kind: str) -> list[Record]:
        place = tenant, kind
        newest = {r.name: r for r in self._records if (r.tenant, r.kind) == place}
        return [newest[name] for name in sorted(newest) if not newest[name].gone]

    async def record_page(
        self, tenant: str, kind: str, after: str, limit: int
    ) -> tuple[list[Record], int]:
        records = await self.records(tenant, kind)
        return [record for record in records if record.name > after][:limit], len(records)

    async def record_history(self, tenant: str, kind: str, name: str) -> list[Record]:
        return self._history(tenant, kind, name)

    def _history(self, tenant: str, kind: str, name: str) -> list[Record]:
        place = tenant, kind, name
        return [r for r in reversed(self._records) if (r.tenant, r.kind, r.name) == place]

    async def record_tenants(self, kind: str) -> list[str]:
        return sorted({record.tenant for record in self._records if record.kind == kind})

    # ledgers

    async def ledger(self, tenant: str, kind: str, name: str) -> LedgerRow | None:
        return self._ledgers.get((tenant, kind, name))

    async def due_ledgers(self, kind: str, until: int, limit: int) -> list[LedgerRow]:
        due = [
            (ledger.due_at, number, ledger)
            for number, ledger in enumerate(self._ledgers.values())
            if ledger.kind == kind and ledger.due_at is not None and ledger.due_at <= until
        ]
        return [ledger for _, _, ledger in sorted(due, key=lambda each: each[:2])[:limit]]

    async def next_ledger(self, kind: str) -> int | None:
        dues = (ledger.due_at for ledger in self._ledgers.values() if ledger.kind == kind)
        return min((due for due in dues if due is not None), default=None)

    # deliveries

    async def delivery(self, tenant: str, subscription: str, key: str) -> Delivery | None:
        return self._deliveries.get((tenant, subscription, key))

    async def delivery_by_id(self, tenant: str, delivery_id: str) -> Delivery | None:
        matches = (d for d in self._deliveries.values() if d.delivery_id == delivery_id)
        return next((d for d in matches if d.tenant == tenant), None)

    async def deliveries(
        self, tenant: str, where: DeliveryFilter, before: str | None, limit: int
    ) -> tuple[list[Delivery], str | None]:
        list_name = tenant, repr(where)
        position = cursor.decode_position(cursor.unbind_cursor(before, *list_name))
        matches = [
            delivery
            for delivery in sorted(self._deliveries.values(), key=self._order, reverse=True)
            if delivery.tenant == tenant
            and self._order(delivery) < position
            and matches_filter(delivery, where)
        ]
        page = matches[:limit]
        more = len(matches) > limit > 0
        following = cursor.encode_position(self._order(page[-1])) if more else None
        return page, cursor.bind_cursor(following, *list_name)

    def _lane(self, tenant: str, subscription: str) -> list[Delivery]:
        place = tenant, subscription
        return [d for d in self._deliveries.values() if (d.tenant, d.subscription) == place]

    def _order(self, delivery: Delivery) -> cursor.Position:
        return delivery.received_at, self._numbers[_place(delivery)]

    async def waiting_deliveries(
        self, tenant: str, subscription: str, limit: int
    ) -> list[Delivery]:
        lane = sorted(self._lane(tenant, subscription), key=self._order)
        return [delivery for delivery in lane if delivery.state == "waiting"][:limit]

    async def delivery_counts(self, tenant: str, subscription: str) -> dict[str, int]:
        lane = self._lane(tenant, subscription)
        return dict(Counter(delivery.state for delivery in lane))

    async def lanes(self) -> list[Lane]:
        lanes: dict[tuple[str, str], Lane] = {}
        for each in self._deliveries.values():
            place = each.tenant, each.subscription
            if each.due_at is not None and (
                place not in lanes or each.due_at < lanes[place].due_at
            ):
                lanes[place] = Lane(
                    tenant=place[0], subscription=place[1], source=each.source, due_at=each.due_at
                )
        return [lanes[place] for place in sorted(lanes)]

    async def due_deliveries(
        self, tenant: str, subscription: str, until: int, limit: int
    ) -> list[Delivery]:
        due = [
            (delivery.due_at, self._numbers[_place(delivery)], delivery)
            for delivery in self._lane(tenant, subscription)
            if delivery.due_at is not None and delivery.due_at <= until
        ]
        return [delivery for _, _, delivery in sorted(due, key=lambda entry: entry[:2])[:limit]]

    async def forget_deliveries(self, before: int) -> int:
        finished = [each for each in self._deliveries.values() if each.due_at is None]
        old = [delivery for delivery in finished if delivery.updated_at < before]
        for delivery in old:
            del self._deliveries[_place(delivery)]
        return len(old)


def matches_filter(delivery: Delivery, where: DeliveryFilter) -> bool:
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
