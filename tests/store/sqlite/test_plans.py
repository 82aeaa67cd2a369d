"""No query of the hot paths walks a whole table, and no list has to be sorted."""

import re
from pathlib import Path

import apsw
import pytest

from moot.store.sqlite import SqliteStore, memory_entries
from moot.store.sqlite.read import batching, queries, records, runs
from moot.store.sqlite.statements import BulkStatement
from moot.store.sqlite.write import statements
from tests.support.store.sqlite_access import meddling

READS = {
    name: queries.SQL[name]
    for name in [
        "READ", "HEAD", "SNAPSHOT", "SEALED", "ARTIFACT", "EFFECT", "FIND_RUN",
        "ACTIVE_RUN", "WORK", "NEXT_WORK", "DEFINITION", "DEFINITION_BY_DIGEST", "KEY_BY_HASH",
    ]
}  # fmt: skip
BULKS = {
    f"{name} of {rows} rows": bulk.sql[rows]
    for name, bulk in {**vars(statements), **vars(batching)}.items()
    if isinstance(bulk, BulkStatement)
    for rows in (1, 4)
}
WRITES = {
    name: statements.SQL[name]
    for name in ("FIND_HEADS", "LAST_NUMBER", "TAKEN_RECEIPTS", "REVOKE_KEY", "FORGET_RECEIPTS")
}
MEMORY = {
    f"memory {name}": sql
    for name, sql in memory_entries.SQL.items()
    if name.isupper() and re.match(r"SELECT|UPDATE|DELETE", sql)
}
LISTS_OF_MEMORY = ("CURRENT", "THEN", "CURRENT_TAGGED", "THEN_TAGGED", "VERSION")
TALLIES = {name: queries.SQL[name] for name in ("TALLY", "NEWEST_RUNS", "ASKED_BY")}
HOT = (
    TALLIES
    | MEMORY
    | READS
    | BULKS
    | WRITES
    | {f"runs {name}": sql for name, sql in runs.SQL.items() if name.startswith("LIST_")}
    | {f"deliveries {name}": sql for name, sql in records.SQL.items() if name.startswith("LIST_")}
    | {"COUNTS": records.SQL["COUNTS"]}
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


@pytest.mark.parametrize("name", [
    name.removeprefix("LIST_").lower()
    for name in runs.SQL
    if name.startswith("LIST_") and name not in ("LIST_PREFIX", "LIST_MARK")
])  # fmt: skip
async def test_the_list_comes_in_the_order_of_its_index(path: Path, name: str) -> None:
    with meddling(path) as db:
        steps = plan(db, runs.SQL[f"LIST_{name.upper()}"])
    assert not [step for step in steps if "ORDER BY" in step]
    assert any(f"INDEX runs_{name}" in step and "created_at" in step for step in steps)


@pytest.mark.parametrize("name", ["WITHIN", "SUBSCRIPTION", "STATE", "NEWEST"])
async def test_deliveries_come_in_the_order_of_their_index(path: Path, name: str) -> None:
    with meddling(path) as db:
        steps = plan(db, records.SQL[f"LIST_{name}"])
    assert not [step for step in steps if "ORDER BY" in step]
    with meddling(path) as db:
        assert any("COVERING INDEX" in step for step in plan(db, records.SQL["COUNTS"]))


@pytest.mark.parametrize("name", LISTS_OF_MEMORY)
async def test_what_is_remembered_comes_in_the_order_of_an_index(path: Path, name: str) -> None:
    with meddling(path) as db:
        steps = plan(db, memory_entries.SQL[name])
    assert not [step for step in steps if "ORDER BY" in step]


@pytest.mark.parametrize("table", ["events", "runs", "memory"])
async def test_the_check_itself_would_see_a_walk(path: Path, table: str) -> None:
    with meddling(path) as db:
        (step,) = plan(db, f"SELECT * FROM {table}")
    assert step.startswith("SCAN")
    assert not HANDED_IN.match(step)
