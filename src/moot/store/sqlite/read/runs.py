"""List runs, newest first, with one index for each kind of filter.

Threads can also be listed by their last use.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import Any

import apsw
import msgspec

from moot.core.state.conversation import THREAD
from moot.store import cursor
from moot.store.protocol import RunFilter, RunIndexRow
from moot.store.sqlite.read.queries import run_index_row_from_columns

_COLUMNS = """
SELECT r.n, r.tenant, r.run_id, r.workflow_id, r.status, r.created_at, r.updated_at, r.ended_at,
       r.parent_run, r.scope_id, r.agent_id, r.error_code, r.next_sequence,
       r.fork_of, r.fork_seq, r.fork_mode, r.fork_note, r.member, r.title, r.turns,
       r.dead_after
"""
_REST = """
  AND r.tenant = :tenant AND (r.created_at, r.n) < (:at, :n)
  AND (:workflow IS NULL OR r.workflow_id = :workflow)
  AND (:agent IS NULL OR r.agent_id = :agent)
  AND (:parent IS NULL OR r.parent_run = :parent)
  AND (:fork IS NULL OR r.fork_of = :fork)
  AND (:member IS NULL OR r.member = :member)
  AND (:statuses IS NULL OR r.status IN (SELECT value FROM json_each(:statuses)))
  AND (NOT :dead OR r.dead_after IS NOT NULL)
  AND (:scope IS NULL OR r.scope_id = :scope)
  AND (:mark IS NULL OR :marked = coalesce((
    SELECT NOT gone FROM records WHERE tenant = :tenant AND kind = :mark AND name = r.run_id
    ORDER BY id DESC LIMIT 1
  ), 0))
  AND (:prefix IS NULL OR substr(r.run_id, 1, length(:prefix)) = :prefix)
ORDER BY r.created_at DESC, r.n DESC LIMIT :limit
"""
#: the filter whose index the query walks -> the query; other filters are checked row by row
LISTS = {
    "prefix": f"""{_COLUMNS} FROM heads AS h CROSS JOIN runs AS r ON r.n = h.n
                  WHERE h.run_id >= :prefix AND h.run_id < :prefix_end {_REST}""",
    "mark": f"""{_COLUMNS} FROM heads AS h CROSS JOIN runs AS r ON r.n = h.n
                WHERE h.run_id IN (SELECT name FROM records
                                   WHERE tenant = :tenant AND kind = :mark) {_REST}""",
    "parent": f"""{_COLUMNS} FROM runs AS r INDEXED BY runs_parent
                  WHERE r.parent_run = :parent {_REST}""",
    "fork": f"""{_COLUMNS} FROM runs AS r INDEXED BY runs_fork
                WHERE r.fork_of = :fork {_REST}""",
    "member": f"""{_COLUMNS} FROM runs AS r INDEXED BY runs_member
                  WHERE r.member = :member {_REST}""",
    "dead": f"""{_COLUMNS} FROM runs AS r INDEXED BY runs_dead
                WHERE r.dead_after IS NOT NULL {_REST}""",
    "agent": f"""{_COLUMNS} FROM runs AS r INDEXED BY runs_agent
                 WHERE r.agent_id = :agent {_REST}""",
    "status": f"""{_COLUMNS} FROM runs AS r INDEXED BY runs_status
                  WHERE r.status = :status {_REST}""",
    "workflow": f"""{_COLUMNS} FROM runs AS r INDEXED BY runs_workflow
                    WHERE r.workflow_id = :workflow {_REST}""",
    "newest": f"{_COLUMNS} FROM runs AS r INDEXED BY runs_newest WHERE true {_REST}",
}
#: the same for threads, by last use; the few rows chosen by prefix or mark are sorted
_USED = f"AND r.workflow_id = '{THREAD}' {_REST.replace('r.created_at', 'r.updated_at')}"
USED = {
    **{name: LISTS[name].replace(_REST, _USED) for name in ("prefix", "mark")},
    "used": f"{_COLUMNS} FROM runs AS r INDEXED BY runs_used WHERE true {_USED}",
}


def list_runs(
    db: apsw.Connection, tenant: str, where: RunFilter, before: cursor.Position, limit: int
) -> tuple[list[RunIndexRow], str | None]:
    values = _values(tenant, where, before, limit + 1)
    rows = [row for row, _ in zip(_select_rows(db, where, values), range(limit + 1), strict=False)]
    page = rows[:limit]
    more = len(rows) > limit > 0
    last = cursor.encode_position(_position(page[-1], where.used)) if more else None
    return [run_index_row_from_columns(row[1:]) for row in page], last


def _select_rows(
    db: apsw.Connection, where: RunFilter, values: Mapping[str, object]
) -> Iterable[tuple[Any, ...]]:
    index = _choose_index(where)
    if where.used:
        query = USED[index if index in USED else "used"]
        return db.execute(query, values).fetchall()
    if index != "status":
        return db.execute(LISTS[index], values).fetchall()
    # one ordered walk for each status, merged: no walk has to sort
    walks = [
        db.execute(LISTS[index], {**values, "status": status}).fetchall()
        for status in sorted(set(where.statuses))
    ]
    return heapq.merge(*walks, key=_position, reverse=True)


def _choose_index(where: RunFilter) -> str:
    if where.prefix:
        return "prefix"
    if where.mark is not None and where.marked:
        return "mark"
    if where.parent_run is not None:
        return "parent"
    if where.fork_of is not None:
        return "fork"
    if where.member is not None:
        return "member"
    if where.dead:
        return "dead"
    if where.agent_id is not None:
        return "agent"
    if where.statuses:
        return "status"
    return "newest" if where.workflow_id is None else "workflow"


def _values(
    tenant: str, where: RunFilter, before: cursor.Position, limit: int
) -> dict[str, object]:
    return {
        "tenant": tenant,
        "at": before[0],
        "n": before[1],
        "workflow": where.workflow_id,
        "agent": where.agent_id,
        "parent": where.parent_run,
        "fork": where.fork_of,
        "member": where.member,
        "statuses": msgspec.json.encode(where.statuses).decode() if where.statuses else None,
        "status": None,
        "dead": where.dead,
        "scope": where.scope_id,
        "mark": where.mark,
        "marked": where.marked,
        "prefix": where.prefix or None,
        "prefix_end": f"{where.prefix}\U0010ffff",
        "limit": limit,
    }


def _position(row: tuple[Any, ...], used: bool = False) -> cursor.Position:
    return row[6 if used else 5], row[0]
