"""Look-ups of records in all their versions, of ledgers and of deliveries."""

from typing import Any

import apsw
import msgspec

from moot.store import cursor
from moot.store.records import Delivery, DeliveryFilter, Lane, LedgerRow, Record
from moot.store.sqlite.read.readers import ReadSide, first_column
from moot.store.sqlite.statements import load_statements, row_decoder

SQL = load_statements("records")

_decode_record = row_decoder(Record)
_decode_ledger = row_decoder(LedgerRow)
_decode_delivery = row_decoder(Delivery)


class RecordQueries(ReadSide):
    """Reads of everything that belongs to no run."""

    async def record(self, tenant: str, kind: str, name: str) -> Record | None:
        newest = await self._first(_decode_record, SQL["NEWEST"], (tenant, kind, name))
        return None if newest is None or newest.gone else newest

    async def records(self, tenant: str, kind: str) -> list[Record]:
        return await self._all(_decode_record, SQL["ALL_NEWEST"], (tenant, kind))

    async def record_page(
        self, tenant: str, kind: str, after: str, limit: int
    ) -> tuple[list[Record], int]:
        return await self._readers.run(_read_record_page, tenant, kind, after, limit)

    async def record_history(self, tenant: str, kind: str, name: str) -> list[Record]:
        return await self._all(_decode_record, SQL["HISTORY"], (tenant, kind, name))

    async def record_tenants(self, kind: str) -> list[str]:
        return await self._all(first_column, SQL["TENANTS"], (kind,))

    async def ledger(self, tenant: str, kind: str, name: str) -> LedgerRow | None:
        return await self._first(_decode_ledger, SQL["LEDGER"], (tenant, kind, name))

    async def due_ledgers(self, kind: str, until: int, limit: int) -> list[LedgerRow]:
        return await self._all(_decode_ledger, SQL["DUE_LEDGERS"], (kind, until, limit))

    async def next_ledger(self, kind: str) -> int | None:
        return await self._first(first_column, SQL["NEXT_LEDGER"], (kind,))

    async def delivery(self, tenant: str, subscription: str, key: str) -> Delivery | None:
        return await self._first(_decode_delivery, SQL["DELIVERY"], (tenant, subscription, key))

    async def delivery_by_id(self, tenant: str, delivery_id: str) -> Delivery | None:
        return await self._first(_decode_delivery, SQL["DELIVERY_BY_ID"], (delivery_id, tenant))

    async def deliveries(
        self, tenant: str, where: DeliveryFilter, before: str | None, limit: int
    ) -> tuple[list[Delivery], str | None]:
        list_name = tenant, repr(where)
        position = cursor.decode_position(cursor.unbind_cursor(before, *list_name))
        page, more = await self._readers.run(_list_deliveries, tenant, where, position, limit)
        return page, cursor.bind_cursor(more, *list_name)

    async def delivery_counts(self, tenant: str, subscription: str) -> dict[str, int]:
        values = tenant, subscription
        return dict(await self._all(lambda row: (row[0], row[1]), SQL["COUNTS"], values))

    async def waiting_deliveries(
        self, tenant: str, subscription: str, limit: int
    ) -> list[Delivery]:
        return await self._all(_decode_delivery, SQL["WAITING"], (tenant, subscription, limit))

    async def lanes(self) -> list[Lane]:
        return await self._all(row_decoder(Lane), SQL["LANES"])

    async def due_deliveries(
        self, tenant: str, subscription: str, until: int, limit: int
    ) -> list[Delivery]:
        return await self._all(_decode_delivery, SQL["DUE"], (tenant, subscription, until, limit))


def _read_record_page(
    db: apsw.Connection, tenant: str, kind: str, after: str, limit: int
) -> tuple[list[Record], int]:
    rows = db.execute(SQL["PAGE"], (tenant, kind, after, limit)).fetchall()
    total: Any = db.execute(SQL["COUNT"], (tenant, kind, "")).get
    return [_decode_record(row) for row in rows], int(total)


def _list_deliveries(
    db: apsw.Connection, tenant: str, where: DeliveryFilter, before: cursor.Position, limit: int
) -> tuple[list[Delivery], str | None]:
    sql, rows = SQL[f"LIST_{_choose_index(where)}"], []
    for state in dict.fromkeys(where.states) or (None,):
        rows += db.execute(sql, _values(tenant, where, state, before, limit + 1)).fetchall()
    rows.sort(key=_row_position, reverse=True)
    page = rows[:limit]
    more = cursor.encode_position(_row_position(page[-1])) if len(rows) > limit > 0 else None
    return [_decode_delivery(row[1:]) for row in page], more


def _choose_index(where: DeliveryFilter) -> str:
    if where.run_id is not None:
        return "RUN"
    if where.prefix:
        return "PREFIX"
    if where.subscription is not None:
        return "WITHIN" if where.states else "SUBSCRIPTION"
    return "STATE" if where.states else "NEWEST"


def _values(
    tenant: str, where: DeliveryFilter, state: str | None, before: cursor.Position, limit: int
) -> dict[str, object]:
    return {
        "tenant": tenant,
        "received_at": before[0],
        "id": before[1],
        "subscription": where.subscription,
        "sources": msgspec.json.encode(where.sources).decode() if where.sources else None,
        "member": where.member,
        "run": where.run_id,
        "state": state,
        "prefix": where.prefix or None,
        "prefix_end": f"{where.prefix}\U0010ffff" if where.prefix else None,
        "limit": limit,
    }


def _row_position(row: tuple[Any, ...]) -> cursor.Position:
    return row[7], row[0]
