"""Rows to put into stores: small, valid, and told apart at a glance."""

import hashlib
from typing import Any

import msgspec

from moot.store.protocol import Append, Batch, Definition, EffectRow, Key, Receipt, RunIndexRow


def event(run_id: str, sequence: int, text: str = "") -> bytes:
    return msgspec.json.encode({"runId": run_id, "sequence": sequence, "text": text})


def events(run_id: str, first: int, count: int) -> list[bytes]:
    return [event(run_id, first + offset) for offset in range(count)]


def append(
    run_id: str, first: int = 0, count: int = 1, tenant: str = "acme", **fields: Any
) -> Append:
    rows = events(run_id, first, count)
    return Append(tenant=tenant, run_id=run_id, first=first, events=rows, **fields)


def batch(*appends: Append, **fields: Any) -> Batch:
    return Batch(appends=list(appends), **fields)


def row(run_id: str, tenant: str = "acme", **fields: Any) -> RunIndexRow:
    given = {"workflow_id": "brief", "status": "running", "created_at": 1, "updated_at": 1}
    return RunIndexRow(tenant=tenant, run_id=run_id, **(given | fields))


def listed(run_id: str, tenant: str = "acme", **fields: Any) -> Batch:
    """A new run of one event with a row in the list."""
    return batch(append(run_id, tenant=tenant, row=row(run_id, tenant, **fields)))


def receipt(key: str, tenant: str = "acme", operation: str = "POST /runs", at: int = 1) -> Receipt:
    return Receipt(
        tenant=tenant,
        operation=operation,
        key=key,
        digest="d",
        status=201,
        headers={"location": f"/runs/{key}"},
        body=b'{"ok":true}',
        created_at=at,
    )


def effect(
    invocation_id: str, sequence: int, finished: bool = False, tenant: str = "acme"
) -> EffectRow:
    return EffectRow(
        tenant=tenant,
        invocation_id=invocation_id,
        run_id="r1",
        sequence=sequence,
        finished=finished,
    )


def definition(workflow_id: str, body: bytes, tenant: str = "acme", at: int = 1) -> Definition:
    return Definition(
        tenant=tenant,
        workflow_id=workflow_id,
        version="1",
        digest=hashlib.sha256(body).hexdigest(),
        body=body,
        created_at=at,
    )


def key(id_: str, tenant: str = "acme", **fields: Any) -> Key:
    given = {"hash": f"hash of {id_}", "scopes": ["runs:write"], "speaks_as": ["ada"]}
    return Key(id=id_, tenant=tenant, name=id_, **(given | {"created_at": 1} | fields))
