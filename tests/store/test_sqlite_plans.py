"""No query of the hot paths walks a whole table, and no list has to be sorted."""

import re
from pathlib import Path

import apsw
import pytest

from moot.store.sqlite import SqliteStore, memory_entries
from moot.store.sqlite.read import counts, deliveries, idempotency, queries
from moot.store.sqlite.read.runs import LISTS
from moot.store.sqlite.write import heads, statements
from moot.store.sqlite.write.bulk import BulkStatement
from sqlite_doors import meddling

READS = {
    name: getattr(queries, name)
    for name in [
        "READ", "HEAD", "SNAPSHOT", "SEALED", "ARTIFACT", "EFFECT", "FIND_RUN",
        "ACTIVE_RUN", "WORK", "NEXT_WORK", "DEFINITION", "DEFINITION_BY_DIGEST", "KEY_BY_HASH",
    ]
}  # fmt: skip
BULKS = {
    f"{name} of {rows} rows": bulk.sql[rows]
    for name, bulk in {**vars(statements), **vars(idempotency)}.items()
    if isinstance(bulk, BulkStatement)
    for rows in (1, 4)
}
WRITES = {
    "FIND heads": heads.FIND,
    "LAST_NUMBER": heads.LAST_NUMBER,
    "TAKEN_RECEIPTS": statements.TAKEN_RECEIPTS,
    "REVOKE_KEY": statements.REVOKE_KEY,
    "FORGET_RECEIPTS": statements.FORGET_RECEIPTS,
}
MEMORY = {
    f"memory {name}": sql
    for name, sql in vars(memory_entries).items()
    if name.isupper() and isinstance(sql, str) and re.match(r"\s*(SELECT|UPDATE|DELETE)", sql)
    and not name.startswith("_")
}  # fmt: skip
LISTS_OF_MEMORY = ("CURRENT", "THEN", "CURRENT_TAGGED", "THEN_TAGGED", "VERSION")
TALLIES = {name: getattr(counts, name) for name in ("TALLY", "NEWEST_RUNS", "ASKED_BY")}
HOT = (
    TALLIES
    | MEMORY
    | READS
    | BULKS
    | WRITES
    | {f"list by {name}": sql for name, sql in LISTS.items()}
    | {f"deliveries by {name}": sql for name, sql in deliveries.LISTS.items()}
    | {"COUNTS": deliveries.COUNTS}
)

#: walks over what the caller handed in, not over a table
HANDED_IN = re.compile(
    r"SCAN (asked|json_each|CONSTANT ROW|\(subquery-\d+\)|\d+-ROW VALUES CLAUSE)"
)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    store = await SqliteStore.open(tmp_path / "moot.db")
    await store.aclose()
    return tmp_path / "moot.db"


def plan(db: apsw.Connection, sql: str) -> list[str]:
    names = re.findall(r":(\w+)", sql)
    values = dict.fromkeys(names, "x") if names else ["[]"] * sql.count("?")
    return [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize("name", HOT)
async def test_the_query_finds_its_rows_by_an_index(path: Path, name: str) -> None:
    with meddling(path) as db:
        steps = plan(db, HOT[name])
    walks = [step for step in steps if step.startswith("SCAN") and not HANDED_IN.match(step)]
    assert walks == []


@pytest.mark.parametrize("name", [name for name in LISTS if name not in ("prefix", "mark")])
async def test_the_list_comes_in_the_order_of_its_index(path: Path, name: str) -> None:
    with meddling(path) as db:
        steps = plan(db, LISTS[name])
    assert not [step for step in steps if "ORDER BY" in step]
    assert any(f"INDEX runs_{name}" in step and "created_at" in step for step in steps)


@pytest.mark.parametrize("name", ["within", "subscription", "state", "newest"])
async def test_deliveries_come_in_the_order_of_their_index(path: Path, name: str) -> None:
    with meddling(path) as db:
        steps = plan(db, deliveries.LISTS[name])
    assert not [step for step in steps if "ORDER BY" in step]
    with meddling(path) as db:
        assert any("COVERING INDEX" in step for step in plan(db, deliveries.COUNTS))


@pytest.mark.parametrize("name", LISTS_OF_MEMORY)
async def test_what_is_remembered_comes_in_the_order_of_an_index(path: Path, name: str) -> None:
    with meddling(path) as db:
        steps = plan(db, getattr(memory_entries, name))
    assert not [step for step in steps if "ORDER BY" in step]


@pytest.mark.parametrize("table", ["events", "runs", "memory"])
async def test_the_check_itself_would_see_a_walk(path: Path, table: str) -> None:
    with meddling(path) as db:
        (step,) = plan(db, f"SELECT * FROM {table}")
    assert step.startswith("SCAN")
    assert not HANDED_IN.match(step)
