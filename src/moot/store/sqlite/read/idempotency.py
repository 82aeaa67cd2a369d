"""What has been said before, by names: answers that are kept, and turns that brought an id."""

from typing import Any

import apsw
import msgspec

from moot.store.protocol import Receipt
from moot.store.sqlite.read.batching import Name
from moot.store.sqlite.write.bulk import Bulk

#: of a tenant, an operation and a key
RECEIPTS = Bulk(
    """
    SELECT r.tenant, r.operation, r.key, r.digest, r.status, r.headers, r.body, r.created_at
    FROM (VALUES {rows}) AS asked CROSS JOIN receipts AS r
    ON r.tenant = asked.column1 AND r.operation = asked.column2 AND r.key = asked.column3
    """,
    3,
)
#: of a tenant, a run and an id
MESSAGES = Bulk(
    """
    SELECT h.tenant, h.run_id, m.message_id, m.sequence
    FROM (VALUES {rows}) AS asked
    CROSS JOIN heads AS h ON h.run_id = asked.column2 AND h.tenant = asked.column1
    CROSS JOIN messages AS m ON m.n = h.n AND m.message_id = asked.column3
    """,
    3,
)

_headers = msgspec.json.Decoder(dict[str, str]).decode


def receipts(db: apsw.Connection, names: list[Name]) -> dict[Name, Receipt]:
    return {row[:3]: _receipt(*row) for row in RECEIPTS.rows(db, _flat(names))}


def messages(db: apsw.Connection, names: list[Name]) -> dict[Name, int]:
    return {row[:3]: row[3] for row in MESSAGES.rows(db, _flat(names))}


def _flat(names: list[Name]) -> list[str]:
    return [part for name in names for part in name]


def _receipt(tenant: str, operation: str, key: str, *kept: Any) -> Receipt:
    digest, status, headers, body, created_at = kept
    return Receipt(
        tenant=tenant,
        operation=operation,
        key=key,
        digest=digest,
        status=status,
        headers=_headers(headers),
        body=body,
        created_at=created_at,
    )
