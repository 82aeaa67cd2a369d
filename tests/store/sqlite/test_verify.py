"""Whatever is changed behind the store's back, verify finds it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from moot.store.protocol import IntegrityProblem
from moot.store.sqlite import SqliteStore
from moot.store.sqlite.verify import verify_file
from tests.support.store.rows import append, batch, definition, event, row
from tests.support.store.sqlite_access import meddling


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """Three logs: two of acme's, one of another tenant's."""
    file = tmp_path / "moot.db"
    store = await SqliteStore.open(file)
    await store.commit(batch(append("run1", 0, 3, row=row("run1"))))
    await store.commit(batch(append("run2", 0, 2, row=row("run2"), tenant="other")))
    await store.commit(batch(append("run3", 0, 4, row=row("run3"))))
    await store.put_definition(definition("brief", b'{"id":"brief"}'))
    await store.aclose()
    return file


def problems(path: Path) -> list[IntegrityProblem]:
    with meddling(path) as db:
        return verify_file(db)


def places(path: Path) -> set[tuple[str, int]]:
    return {(problem.run_id, problem.sequence) for problem in problems(path)}


#: what was done -> (the statements, where verify must point)
MEDDLING: dict[str, tuple[str, set[tuple[str, int]]]] = {
    "a row was deleted in the middle": (
        "DELETE FROM events WHERE n = 1 AND sequence = 1",
        {("run1", 1)},
    ),
    "the first row was deleted": (
        "DELETE FROM events WHERE n = 1 AND sequence = 0",
        {("run1", 0)},
    ),
    "the tail was cut": ("DELETE FROM events WHERE n = 3 AND sequence > 1", {("run3", -1)}),
    "the whole log was deleted, the head was left": (
        "DELETE FROM events WHERE n = 1",
        {("run1", -1)},
    ),
    "the head was deleted, the log was left": (
        "DELETE FROM heads WHERE n = 2",
        {("", -1), ("run2", -1)},
    ),
    "the last head was deleted, the log was left": (
        "DELETE FROM heads WHERE n = 3",
        {("", -1), ("run3", -1)},
    ),
    "a log was deleted with its head": (
        "DELETE FROM events WHERE n = 2; DELETE FROM heads WHERE n = 2",
        {("", -1), ("run2", -1)},
    ),
    "the newest log was deleted with its head": (
        "DELETE FROM events WHERE n = 3; DELETE FROM heads WHERE n = 3",
        {("run3", -1)},
    ),
    "a row was added at the end": (
        "INSERT INTO events SELECT n, 3, hash, body FROM events WHERE n = 1 AND sequence = 2",
        {("run1", 3)},
    ),
    "a row was added before the first": (
        "INSERT INTO events SELECT n, -1, hash, body FROM events WHERE n = 1 AND sequence = 0",
        {("run1", 0)},
    ),
    "a log without a head was added": (
        "INSERT INTO events SELECT 9, sequence, hash, body FROM events WHERE n = 1",
        {("", -1)},
    ),
    "two rows were swapped": (
        """UPDATE events SET sequence = 9 WHERE n = 3 AND sequence = 1;
           UPDATE events SET sequence = 1 WHERE n = 3 AND sequence = 2;
           UPDATE events SET sequence = 2 WHERE n = 3 AND sequence = 9""",
        {("run3", 1)},
    ),
    "two logs were swapped": (
        """UPDATE events SET n = 9 WHERE n = 1; UPDATE events SET n = 1 WHERE n = 3;
           UPDATE events SET n = 3 WHERE n = 9""",
        {("run1", 0), ("run3", 0)},
    ),
    "the log was given to another tenant": (
        "UPDATE heads SET tenant = 'evil' WHERE n = 1",
        {("run1", 0)},
    ),
    "the log was renamed": ("UPDATE heads SET run_id = 'run9' WHERE n = 1", {("run9", 0)}),
    "the head was moved back": ("UPDATE heads SET next_sequence = 2 WHERE n = 1", {("run1", -1)}),
    "the tail was cut and the head moved back": (
        """DELETE FROM events WHERE n = 1 AND sequence = 2;
           UPDATE heads SET next_sequence = 2 WHERE n = 1""",
        {("run1", -1)},
    ),
    "the head has another hash": ("UPDATE heads SET hash = x'00' WHERE n = 1", {("run1", -1)}),
    "an event has another hash": (
        "UPDATE events SET hash = zeroblob(16) WHERE n = 1 AND sequence = 1",
        {("run1", 1)},
    ),
    "the body of an event was emptied": (
        "UPDATE events SET body = x'' WHERE n = 1 AND sequence = 1",
        {("run1", 1)},
    ),
    "a definition was edited": ("UPDATE definitions SET body = x'7b7d'", {("", -1)}),
    "a definition has another digest": ("UPDATE definitions SET digest = 'abc'", {("", -1)}),
}


async def test_an_untouched_file_is_sound(path: Path) -> None:
    assert problems(path) == []


@pytest.mark.parametrize("done", MEDDLING)
async def test_verify_finds_that(path: Path, done: str) -> None:
    statements, expected = MEDDLING[done]
    with meddling(path) as db:
        db.execute(statements).fetchall()
    assert places(path) == expected
    store = await SqliteStore.open(path, readonly=True)
    assert await store.verify() == problems(path)
    await store.aclose()


BLOBS = [("events", "body"), ("events", "hash"), ("heads", "hash")]


def flips(raw: bytes) -> Iterator[bytes]:
    for position in range(len(raw)):
        yield raw[:position] + bytes([raw[position] ^ 0x01]) + raw[position + 1 :]


@pytest.mark.parametrize(("table", "column"), BLOBS)
async def test_verify_finds_every_flipped_byte(path: Path, table: str, column: str) -> None:
    order = "n, sequence" if table == "events" else "n"
    find = f"SELECT {column} FROM {table} WHERE n = 1 ORDER BY {order} LIMIT 1"
    put = (
        f"UPDATE {table} SET {column} = ? WHERE ({order}) IN (SELECT {order} FROM {table} LIMIT 1)"
    )
    with meddling(path) as db:
        (whole,) = db.execute(find).fetchall()[0]
        for flipped in flips(whole):
            db.execute(put, (flipped,))
            assert verify_file(db), f"{flipped!r} was not found"
        db.execute(put, (whole,))
        assert verify_file(db) == []


@pytest.mark.parametrize("column", ["tenant", "run_id"])
async def test_a_flipped_byte_that_is_no_text_any_more_is_found(path: Path, column: str) -> None:
    with meddling(path) as db:
        db.execute(f"UPDATE heads SET {column} = CAST(x'72ff' AS TEXT) WHERE n = 1")
    assert len(problems(path)) == 1


@pytest.mark.parametrize("column", ["n", "sequence"])
@pytest.mark.parametrize("value", [-1, 0, 7, 2**40])
async def test_a_changed_place_of_an_event_is_found(path: Path, column: str, value: int) -> None:
    with meddling(path) as db:
        db.execute("DELETE FROM events WHERE (n, sequence) IN (VALUES (0, 3), (3, 0))")
        db.execute(f"UPDATE events SET {column} = ? WHERE n = 3 AND sequence = 3", (value,))
    assert problems(path)


async def test_a_byte_flipped_in_the_file_itself_is_found(path: Path) -> None:
    raw = path.read_bytes()
    body = event("run3", 2)
    assert raw.count(body) == 1
    position = raw.index(body) + len(body) - 2
    path.write_bytes(raw[:position] + b"\xff" + raw[position + 1 :])
    assert places(path) == {("run3", 2)}


async def test_a_broken_page_is_a_finding_not_a_crash(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    page = raw.index(event("run3", 2)) // 4096 * 4096
    raw[page : page + 4096] = b"\xaa" * 4096
    path.write_bytes(bytes(raw))
    found = problems(path)
    assert found
    assert all(problem.what for problem in found)
