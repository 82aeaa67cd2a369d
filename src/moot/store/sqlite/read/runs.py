"""List runs, newest first, with one index for each kind of filter.

Threads can also be listed by their last use.
"""

import heapq
from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from moot.store import cursor
from moot.store.protocol import RunFilter, RunIndexRow
from moot.store.sqlite.statements import load_statements, row_decoder

SQL = load_statements("runs")

decode_run = row_decoder(RunIndexRow)


def list_runs(
    db: apsw.Connection, tenant: str, where: RunFilter, before: cursor.Position, limit: int
) -> tuple[list[RunIndexRow], str | None]:
    values = _values(tenant, where, before, limit + 1)
    rows = [row for row, _ in zip(_select_rows(db, where, values), range(limit + 1), strict=False)]
    page = rows[:limit]
    more = len(rows) > limit > 0
    last = cursor.encode_position(_position(page[-1], where.used)) if more else None
    return [decode_run(row[1:]) for row in page], last


def _select_rows(
    db: apsw.Connection, where: RunFilter, values: dict[str, object]
) -> Iterable[tuple[Any, ...]]:
    index = _choose_index(where)
    if where.used:
        return db.execute(SQL.get(f"USED_{index}", SQL["USED"]), values).fetchall()
    if index != "STATUS":
        return db.execute(SQL[f"LIST_{index}"], values).fetchall()
    # one ordered walk for each status, merged: no walk has to sort
    walks = [
        db.execute(SQL["LIST_STATUS"], values | {"status": status}).fetchall()
        for status in sorted(set(where.statuses))
    ]
    return heapq.merge(*walks, key=_position, reverse=True)


def _choose_index(where: RunFilter) -> str:
    candidates = {
        "PREFIX": bool(where.prefix),
        "MARK": where.mark is not None and where.marked,
        "PARENT": where.parent_run is not None,
        "FORK": where.fork_of is not None,
        "MEMBER": where.member is not None,
        "DEAD": where.dead,
        "AGENT": where.agent_id is not None,
        "STATUS": bool(where.statuses),
        "WORKFLOW": where.workflow_id is not None,
    }
    return next((index for index, usable in candidates.items() if usable), "NEWEST")


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
