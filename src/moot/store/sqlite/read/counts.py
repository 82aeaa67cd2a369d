"""Queries for the tallies of standing agents. Each reads a limited number of rows."""

from typing import Any

import apsw

from moot.store.counts import Tally
from moot.store.protocol import InboxRow, RunIndexRow
from moot.store.sqlite.read.queries import inbox_row_from_columns, run_index_row_from_columns

#: a standing agent's newest runs; child runs are left out later, but count towards ``:most``
_NEWEST = f"""
SELECT n, {", ".join(RunIndexRow.__struct_fields__)}
FROM runs INDEXED BY runs_member WHERE member = :member AND tenant = :tenant
  AND created_at >= :since
ORDER BY created_at DESC, n DESC LIMIT :most
"""
TALLY = f"""
SELECT workflow_id, created_at / 86400000, status, count(*) FROM ({_NEWEST})
WHERE parent_run IS NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
NEWEST_RUNS = f"""
SELECT * FROM (
  SELECT row_number() OVER (PARTITION BY workflow_id ORDER BY created_at DESC, n DESC) AS place, *
  FROM ({_NEWEST}) WHERE parent_run IS NULL
) WHERE place = 1 ORDER BY workflow_id
"""
ASKED_BY = """
SELECT asked.* FROM (
  SELECT row_number() OVER (ORDER BY since, n, item_id) AS number, n, tenant, item_id, run_id,
         node_id, kind, question, actions, asked_by, since, deadline
  FROM inbox WHERE tenant = :tenant ORDER BY since, n, item_id LIMIT :most
) AS asked CROSS JOIN runs AS r ON r.n = asked.n
WHERE r.member = :member ORDER BY asked.number
"""


def count_member_runs(
    db: apsw.Connection, tenant: str, member: str, since: int, most: int
) -> list[Tally]:
    values = {"tenant": tenant, "member": member, "since": since, "most": most}
    rows: list[Any] = db.execute(TALLY, values).fetchall()
    return [Tally(*row) for row in rows]


def list_newest_runs(db: apsw.Connection, tenant: str, member: str, most: int) -> list[RunIndexRow]:
    values: dict[str, object] = {"tenant": tenant, "member": member, "since": 0, "most": most}
    return [
        run_index_row_from_columns(row[2:]) for row in db.execute(NEWEST_RUNS, values).fetchall()
    ]


def list_member_questions(
    db: apsw.Connection, tenant: str, member: str, most: int
) -> list[tuple[int, InboxRow]]:
    values: dict[str, object] = {"tenant": tenant, "member": member, "most": most}
    rows: list[Any] = db.execute(ASKED_BY, values).fetchall()
    return [(row[0], inbox_row_from_columns(row[2:])) for row in rows]
