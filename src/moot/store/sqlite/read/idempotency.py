"""Batch queries for requests that may be repeats: receipts and message ids."""

from typing import Any

import apsw
import msgspec

from moot.store.protocol import Receipt
from moot.store.sqlite.read.batching import LookupKey
from moot.store.sqlite.write.bulk import BulkStatement

#: by tenant, operation and key
RECEIPTS = BulkStatement(
    """
    SELECT r.tenant, r.operation, r.key, r.digest, r.status, r.headers, r.body, r.created_at
    FROM (VALUES {rows}) AS asked CROSS JOIN receipts AS r
    ON r.tenant = asked.column1 AND r.operation = asked.column2 AND r.key = asked.column3
    """,
    3,
)
#: by tenant, run and message id
MESSAGES = BulkStatement(
    """
    SELECT h.tenant, h.run_id, m.message_id, m.sequence
    FROM (VALUES {rows}) AS asked
    CROSS JOIN heads AS h ON h.run_id = asked.column2 AND h.tenant = asked.column1
    CROSS JOIN messages AS m ON m.n = h.n AND m.message_id = asked.column3
    """,
    3,
)

_decode_headers = msgspec.json.Decoder(dict[str, str]).decode


def find_receipts(db: apsw.Connection, keys: list[LookupKey]) -> dict[LookupKey, Receipt]:
    return {row[:3]: _receipt(*row) for row in RECEIPTS.rows(db, _flatten(keys))}


def find_messages(db: apsw.Connection, keys: list[LookupKey]) -> dict[LookupKey, int]:
    return {row[:3]: row[3] for row in MESSAGES.rows(db, _flatten(keys))}


def _flatten(keys: list[LookupKey]) -> list[str]:
    return [part for key in keys for part in key]


def _receipt(tenant: str, operation: str, key: str, *columns: Any) -> Receipt:
    digest, status, headers, body, created_at = columns
    return Receipt(
        tenant=tenant,
        operation=operation,
        key=key,
        digest=digest,
        status=status,
        headers=_decode_headers(headers),
        body=body,
        created_at=created_at,
    )
