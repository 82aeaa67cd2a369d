"""Queries for logs, runs, definitions and keys. Each finds its rows by an index."""

from typing import Any

import apsw
import msgspec
from msgspec.structs import asdict

from moot.store.protocol import (
    Definition,
    EffectRow,
    FoldSnapshot,
    InboxRow,
    Key,
    RunIndexRow,
    WorkRow,
)

READ = """
SELECT body FROM events
WHERE n = (SELECT n FROM heads WHERE run_id = ? AND tenant = ?) AND sequence > ?
ORDER BY sequence LIMIT ?
"""
HEAD = "SELECT next_sequence FROM heads WHERE run_id = ? AND tenant = ?"
SNAPSHOT = """
SELECT s.next_sequence, s.state FROM heads AS h CROSS JOIN snapshots AS s ON s.n = h.n
WHERE h.run_id = ? AND h.tenant = ? AND s.fold_version = ?
"""
SEALED = "SELECT name, value FROM sealed WHERE tenant = ? AND run_id = ?"
ARTIFACT = "SELECT body FROM artifacts WHERE tenant = ? AND run_id = ? AND artifact_id = ?"
EFFECT = """
SELECT sequence, finished, day, tokens, money, member FROM effects
WHERE tenant = ? AND run_id = ? AND invocation_id = ?
"""
# '0' is the character after '/', which separates a room from its tenant
SPENT = """
SELECT coalesce(sum(tokens), 0), coalesce(sum(money), 0) FROM (
  SELECT tokens, money FROM effects WHERE tenant = :tenant AND day = :day AND day > 0
  UNION ALL
  SELECT tokens, money FROM effects
  WHERE tenant > :tenant || '/' AND tenant < :tenant || '0' AND day = :day AND day > 0
)
"""
SPENT_BY = """
SELECT coalesce(sum(tokens), 0), coalesce(sum(money), 0)
FROM effects INDEXED BY effects_by_member
WHERE tenant = ? AND member = ? AND day BETWEEN ? AND ? AND day > 0 AND member IS NOT NULL
"""
FIND_RUN = """
SELECT r.tenant, r.run_id, r.workflow_id, r.status, r.created_at, r.updated_at, r.ended_at,
       r.parent_run, r.scope_id, r.agent_id, r.error_code, r.next_sequence,
       r.fork_of, r.fork_seq, r.fork_mode, r.fork_note, r.member, r.title, r.turns,
       r.dead_after
FROM heads AS h CROSS JOIN runs AS r ON r.n = h.n WHERE h.run_id = ? AND h.tenant = ?
"""
ACTIVE_RUN = """
SELECT run_id FROM runs WHERE tenant = ? AND scope_id = ? AND ended_at IS NULL
ORDER BY created_at DESC, n DESC LIMIT 1
"""
WORK = """
SELECT h.tenant, h.run_id, w.due_at FROM work AS w CROSS JOIN heads AS h ON h.n = w.n
WHERE w.due_at <= ? ORDER BY w.due_at, w.n LIMIT ?
"""
INBOX = """
SELECT tenant, item_id, run_id, node_id, kind, question, actions, asked_by, since, deadline
FROM inbox WHERE tenant = ? ORDER BY since, n, item_id LIMIT ?
"""
INBOX_REVISION = "SELECT revision FROM inbox_revisions WHERE tenant = ?"
NEXT_WORK = "SELECT min(due_at) FROM work"
RUNS = "SELECT tenant, run_id FROM heads ORDER BY n"
DEFINITION = """
SELECT tenant, workflow_id, version, digest, body, created_at, source FROM definitions
WHERE tenant = ? AND workflow_id = ? AND source <> 'import' ORDER BY id DESC LIMIT 1
"""
DEFINITION_BY_DIGEST = """
SELECT tenant, workflow_id, version, digest, body, created_at, source FROM definitions
WHERE tenant = ? AND digest = ? ORDER BY id DESC LIMIT 1
"""
DEFINED_ELSEWHERE = """
SELECT 1 FROM definitions WHERE workflow_id = ? AND tenant != ? AND source != 'import' LIMIT 1
"""
DEFINITIONS = """
SELECT tenant, workflow_id, version, digest, body, created_at, source FROM definitions
WHERE id IN (
  SELECT max(id) FROM definitions WHERE tenant = ? AND source <> 'import' GROUP BY workflow_id
)
ORDER BY workflow_id
"""
KEY_BY_HASH = """
SELECT id, hash, tenant, name, scopes, speaks_as, created_at, admin, test, revoked_at, expires_at,
  thread
FROM keys WHERE hash = ?
"""
KEYS = """
SELECT id, hash, tenant, name, scopes, speaks_as, created_at, admin, test, revoked_at, expires_at,
  thread
FROM keys WHERE :tenant IS NULL OR tenant = :tenant ORDER BY created_at, id
"""

_decode_texts = msgspec.json.Decoder(list[str]).decode


def _all(db: apsw.Connection, sql: str, *values: str | int) -> list[tuple[Any, ...]]:
    return db.execute(sql, values).fetchall()


def _first(db: apsw.Connection, sql: str, *values: str | int) -> tuple[Any, ...] | None:
    rows = _all(db, sql, *values)
    return rows[0] if rows else None


def read_events(
    db: apsw.Connection, tenant: str, run_id: str, after: int, limit: int
) -> list[bytes]:
    return [row[0] for row in _all(db, READ, run_id, tenant, after, limit)]


def next_sequence(db: apsw.Connection, tenant: str, run_id: str) -> int | None:
    row = _first(db, HEAD, run_id, tenant)
    return row[0] if row else None


def find_snapshot(
    db: apsw.Connection, tenant: str, run_id: str, fold_version: int
) -> FoldSnapshot | None:
    row = _first(db, SNAPSHOT, run_id, tenant, fold_version)
    return FoldSnapshot(*row) if row else None


def read_sealed_values(db: apsw.Connection, tenant: str, run_id: str) -> dict[str, bytes]:
    return dict(_all(db, SEALED, tenant, run_id))


def read_artifact(db: apsw.Connection, tenant: str, run_id: str, artifact_id: str) -> bytes | None:
    row = _first(db, ARTIFACT, tenant, run_id, artifact_id)
    return row[0] if row else None


def find_effect(
    db: apsw.Connection, tenant: str, run_id: str, invocation_id: str
) -> EffectRow | None:
    row = _first(db, EFFECT, tenant, run_id, invocation_id)
    if row is None:
        return None
    sequence, finished, day, tokens, money, member = row
    return EffectRow(
        tenant=tenant,
        invocation_id=invocation_id,
        run_id=run_id,
        sequence=sequence,
        finished=bool(finished),
        day=day,
        tokens=tokens,
        money=money,
        member=member,
    )


def sum_spending(db: apsw.Connection, tenant: str, day: int) -> tuple[int, int]:
    tokens, money = db.execute(SPENT, {"tenant": tenant, "day": day}).get
    return tokens, money


def sum_member_spending(
    db: apsw.Connection, tenant: str, member: str, first: int, last: int
) -> tuple[int, int]:
    row = _first(db, SPENT_BY, tenant, member, first, last)
    return (row[0], row[1]) if row else (0, 0)


def run_index_row_from_columns(columns: tuple[Any, ...]) -> RunIndexRow:
    return RunIndexRow(**dict(zip(RunIndexRow.__struct_fields__, columns, strict=True)))


def find_run(db: apsw.Connection, tenant: str, run_id: str) -> RunIndexRow | None:
    row = _first(db, FIND_RUN, run_id, tenant)
    return run_index_row_from_columns(row) if row else None


def find_active_run(db: apsw.Connection, tenant: str, scope_id: str) -> str | None:
    row = _first(db, ACTIVE_RUN, tenant, scope_id)
    return row[0] if row else None


def list_work(db: apsw.Connection, until: int, limit: int) -> list[WorkRow]:
    return [WorkRow(*row) for row in _all(db, WORK, until, limit)]


def inbox_row_from_columns(columns: tuple[Any, ...]) -> InboxRow:
    fields = dict(zip(InboxRow.__struct_fields__, columns, strict=True))
    return InboxRow(**(fields | {"actions": msgspec.json.decode(fields["actions"])}))


def read_inbox(db: apsw.Connection, tenant: str, limit: int) -> tuple[list[InboxRow], int]:
    with db:  # rows and revision from one moment
        rows = [inbox_row_from_columns(row) for row in db.execute(INBOX, (tenant, limit))]
        revision = db.execute(INBOX_REVISION, (tenant,)).get
    return rows, revision or 0


def next_work_due(db: apsw.Connection) -> int | None:
    row = _first(db, NEXT_WORK)
    return row[0] if row else None


def list_logs(db: apsw.Connection) -> list[tuple[str, str]]:
    return [(tenant, run_id) for tenant, run_id in _all(db, RUNS)]


def _definition(columns: tuple[Any, ...]) -> Definition:
    return Definition(**dict(zip(Definition.__struct_fields__, columns, strict=True)))


def find_definition(db: apsw.Connection, tenant: str, workflow_id: str) -> Definition | None:
    row = _first(db, DEFINITION, tenant, workflow_id)
    return _definition(row) if row else None


def is_defined_elsewhere(db: apsw.Connection, tenant: str, workflow_id: str) -> bool:
    return _first(db, DEFINED_ELSEWHERE, workflow_id, tenant) is not None


def find_definition_by_digest(db: apsw.Connection, tenant: str, digest: str) -> Definition | None:
    row = _first(db, DEFINITION_BY_DIGEST, tenant, digest)
    return _definition(row) if row else None


def list_definitions(db: apsw.Connection, tenant: str) -> list[Definition]:
    return [_definition(row) for row in _all(db, DEFINITIONS, tenant)]


def _key(columns: tuple[Any, ...]) -> Key:
    fields = dict(zip(Key.__struct_fields__, columns, strict=True))
    fields |= {
        "scopes": _decode_texts(fields["scopes"]),
        "speaks_as": _decode_texts(fields["speaks_as"]),
    }
    return Key(**(fields | {"admin": bool(fields["admin"]), "test": bool(fields["test"])}))


def columns_of_key(key: Key) -> tuple[Any, ...]:
    """Return the values of a key in the order of the table's columns."""
    fields = asdict(key)
    fields |= {"scopes": msgspec.json.encode(key.scopes)}
    fields |= {"speaks_as": msgspec.json.encode(key.speaks_as)}
    return tuple(fields.values())


def find_key_by_hash(db: apsw.Connection, hash_: str) -> Key | None:
    row = _first(db, KEY_BY_HASH, hash_)
    return _key(row) if row else None


def list_keys(db: apsw.Connection, tenant: str | None) -> list[Key]:
    return [_key(row) for row in db.execute(KEYS, {"tenant": tenant}).fetchall()]
