"""What every store promises of its search and its marks, one sentence each."""

import re
from collections.abc import AsyncIterator
from itertools import chain
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.core.errors import BadRequest
from moot.core.events import iso
from moot.core.search.indexed_text import texts_from_bytes
from moot.core.search.query import parse_query
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Append, EffectRow, Store
from moot.store.search import ReadMark, SearchRow, TextRow
from moot.store.sqlite import SqliteStore
from moot.store.sqlite.read import search
from moot.store.sqlite.write.search_index import CHUNK
from tests.support.store.rows import append, batch, row
from tests.support.store.sqlite_access import meddling


def turn(run_id: str, sequence: int, content: Any, by: str = "host:ada", at: int = 0) -> bytes:
    said = {"from": by, "role": "agent", "content": content, "turnIndex": sequence}
    return msgspec.json.encode({
        "eventId": f"{run_id}.{sequence}", "runId": run_id, "sequence": sequence,
        "type": "conversation.exchanged", "timestamp": iso(at * 1000), "nodeId": "talk",
        "payload": {"conversationId": f"{run_id}:talk:1", "turnIndex": 1, "turn": said},
    })  # fmt: skip


def said(
    run_id: str, *contents: Any, first: int = 0, at: int = 1000, tenant: str = "acme",
    by: str = "host:ada", source: str | None = None,
) -> Append:  # fmt: skip
    """Turns of one run, a millisecond after one another."""
    places = range(first, first + len(contents))
    bodies = [turn(run_id, n, text, by, at + n) for n, text in zip(places, contents, strict=True)]
    texts = [TextRow(n, at + n, source) for n in places]
    return Append(
        tenant=tenant, run_id=run_id, first=first, events=bodies, texts=texts,
        row=row(run_id, tenant, workflow_id="moot.thread"),
    )  # fmt: skip


def text_of(found: SearchRow) -> str:
    return texts_from_bytes(found.body)[found.part].text


async def finds(store: Store, asked: str, tenant: str = "acme", limit: int = 100) -> list[str]:
    page = await store.search(tenant, parse_query(asked), None, limit)
    return [text_of(each) for each in page.found]


async def test_what_was_committed_is_found_at_once_newest_first(store: Store) -> None:
    await store.commit(batch(said("r1", "the first pilot", "a price", "the second pilot")))
    assert await finds(store, "pilot") == ["the second pilot", "the first pilot"]
    page = await store.search("acme", parse_query("price"), None, 10)
    [found] = page.found
    assert (found.run_id, found.workflow_id, found.sequence) == ("r1", "moot.thread", 1)
    assert (found.part, page.following) == (0, None)


async def test_the_time_counts_and_not_the_arrival(store: Store) -> None:
    await store.commit(batch(said("r1", "late pilot", at=9000)))
    assert await finds(store, "pilot") == ["late pilot"]
    await store.commit(batch(said("r2", "early pilot", at=100)))
    await store.commit(batch(said("r3", "twin pilot", at=9000)))
    found = await finds(store, "pilot")
    assert found[-1] == "early pilot" and set(found[:2]) == {"late pilot", "twin pilot"}


async def test_nobody_finds_what_another_tenant_said(store: Store) -> None:
    await store.commit(batch(said("r1", "our secret"), said("r2", "their secret", tenant="evil")))
    assert await finds(store, "secret") == ["our secret"]
    assert await finds(store, "secret", "evil") == ["their secret"]
    for asked in ("thread:r2", "thread:r2 secret", "kind:turn", "from:ada"):
        assert "their secret" not in await finds(store, asked)
    assert await finds(store, "secret", "nobody") == []


async def test_filters_narrow_it_down(store: Store) -> None:
    await store.commit(batch(said("r1", "the pilot"), said("r2", "my pilot", by="user:eve")))
    assert await finds(store, "pilot from:eve") == ["my pilot"]
    assert await finds(store, "from:user:eve") == ["my pilot"]
    assert await finds(store, "from:host:eve") == []
    assert sorted(await finds(store, "from:eve from:ada")) == ["my pilot", "the pilot"]
    assert await finds(store, "pilot thread:r1") == ["the pilot"]
    assert await finds(store, "thread:r1~talk~1") == ["the pilot"]
    assert await finds(store, "thread:r1~talk~2") == []
    assert await finds(store, "thread:nowhere pilot") == []
    assert await finds(store, "pilot kind:run") == []
    assert await finds(store, "") == []


async def test_a_phrase_is_words_in_their_order_and_a_star_lets_a_word_go_on(store: Store) -> None:
    await store.commit(batch(said("r1", "raise the price", "the price we raise", "pricing")))
    assert await finds(store, '"raise the"') == ["raise the price"]
    assert await finds(store, "pric*") == ["pricing", "the price we raise", "raise the price"]
    assert await finds(store, '"the pri*"') == ["the price we raise", "raise the price"]
    assert await finds(store, "pric") == []


async def test_pages_of_what_was_found_join_without_gap_or_repeat(store: Store) -> None:
    for number in range(11):
        await store.commit(batch(said(f"r{number}", f"pilot {number}", at=number * 10)))
    pages, cursor = [], None
    while True:
        page = await store.search("acme", parse_query("pilot"), cursor, 4)
        pages.append([text_of(each) for each in page.found])
        await store.commit(batch(said(f"new{len(pages)}", "pilot later", at=10_000)))
        assert await store.search("acme", parse_query("pilot"), page.again, 4) == page
        if (cursor := page.following) is None:
            break
    assert [len(page) for page in pages] == [4, 4, 3]
    assert list(chain(*pages)) == [f"pilot {number}" for number in reversed(range(11))]


async def test_a_cursor_of_something_else_is_refused(store: Store) -> None:
    for bad in ("x", "AAAA", "é"):
        with pytest.raises(BadRequest):
            await store.search("acme", parse_query("pilot"), bad, 10)


async def test_what_a_fork_says_again_is_found_where_it_was_said_first(store: Store) -> None:
    await store.commit(batch(said("r1", "the pilot")))
    await store.commit(batch(said("r2", "the pilot", at=2000, source="r1")))
    page = await store.search("acme", parse_query("pilot"), None, 10)
    assert [each.run_id for each in page.found] == ["r1"]
    assert await finds(store, "pilot thread:r2") == ["the pilot"]


async def test_a_fork_whose_source_is_not_here_is_found_itself(store: Store) -> None:
    await store.commit(batch(said("r1", "the pilot", tenant="evil")))
    await store.commit(batch(said("r2", "the pilot", source="r1")))
    assert await finds(store, "pilot") == ["the pilot"]


async def test_a_rebuild_finds_what_was_found(store: Store) -> None:
    first = [said("r1", "one pilot", "two"), said("r2", "three pilot", at=500)]
    await store.commit(batch(*first))
    await store.commit(batch(said("r1", "four pilot", first=2)))
    before = await finds(store, "pilot")

    async def rows() -> AsyncIterator[tuple[Append, list[EffectRow]]]:
        texts = {"r1": [TextRow(n, 1000 + n) for n in range(3)], "r2": [TextRow(0, 500)]}
        for run_id, found in texts.items():
            again = append(run_id, 9, 0, texts=found, row=row(run_id))
            yield again, []

    await store.rebuild(rows())
    assert await finds(store, "pilot") == before == ["four pilot", "one pilot", "three pilot"]
    await store.commit(batch(said("r2", "five pilot", first=1, at=5000)))
    assert (await finds(store, "pilot"))[0] == "five pilot"


async def test_an_event_that_is_none_has_nothing_to_be_found(store: Store) -> None:
    await store.commit(batch(append("r1", texts=[TextRow(0, 1)])))
    assert await finds(store, "kind:turn") == []


@given(
    texts=st.lists(st.text(alphabet='aAbBéß東"*:- ', max_size=12), min_size=1, max_size=6),
    asked=st.text(alphabet='aAbBéß東"*:- ', max_size=10),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
async def test_both_stores_find_the_same_for_any_text(
    sqlite: SqliteStore, texts: list[str], asked: str
) -> None:
    memory = MemoryStore()
    name = f"r{len(await sqlite.runs())}"
    for store in (memory, sqlite):
        await store.commit(batch(said(name, *texts, tenant=name)))
    for query in (asked, f'"{asked}"', f"{asked}*", f"{asked} from:ada", f"thread:{name} {asked}"):
        assert await finds(sqlite, query, name) == await finds(memory, query, name), query


# what is particular to the index on disk


async def test_more_than_a_piece_is_indexed_before_it_is_searched(sqlite: SqliteStore) -> None:
    many = CHUNK * 2 + 10
    await sqlite.commit(batch(said("r1", *(f"pilot {n}" for n in range(many)))))
    assert len(await finds(sqlite, "pilot", limit=10_000)) == many


async def test_many_texts_of_one_millisecond_all_have_a_place(sqlite: SqliteStore) -> None:
    for number in range(3):
        run = f"r{number}"
        bodies = [turn(run, n, f"pilot {number}") for n in range(300)]
        texts = [TextRow(n, 7) for n in range(300)]
        await sqlite.commit(batch(Append(
            tenant="acme", run_id=run, first=0, events=bodies, texts=texts)))  # fmt: skip
        assert len(await finds(sqlite, f'"pilot {number}"', limit=10_000)) == 300


async def test_what_a_crash_left_unindexed_is_found_after_it(tmp_path: Any) -> None:
    store = await SqliteStore.open(tmp_path / "moot.db")
    store._writer._index = lambda: False  # type: ignore[method-assign]
    await store.commit(batch(said("r1", "the pilot")))
    assert await finds(store, "pilot") == []
    await store.aclose()
    again = await SqliteStore.open(tmp_path / "moot.db")
    assert await finds(again, "pilot") == ["the pilot"]
    await again.aclose()


async def test_a_file_that_was_closed_is_searched_without_writing(tmp_path: Any) -> None:
    store = await SqliteStore.open(tmp_path / "moot.db")
    await store.commit(batch(said("r1", "the pilot")))
    await store.aclose()
    reader = await SqliteStore.open(tmp_path / "moot.db", readonly=True)
    assert await finds(reader, "pilot") == ["the pilot"]
    await reader.aclose()


async def test_the_newest_come_first_without_sorting_and_by_index(tmp_path: Any) -> None:
    await (await SqliteStore.open(tmp_path / "moot.db")).aclose()
    statements = ("SEARCH", "READ_MARKS", "NUMBER", "NEXT", "DONE", "TAKEN", "LAST")
    queries = [search.SQL[name] for name in statements]
    with meddling(tmp_path / "moot.db") as db:
        for sql in queries:
            names = re.findall(r":(\w+)", sql)
            values: Any = dict.fromkeys(names, "1") if names else ["[]"] * sql.count("?")
            steps = [str(step[3]) for step in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
            assert not [step for step in steps if "ORDER BY" in step], sql
            walks = [step for step in steps if step.startswith("SCAN")]
            # the index of words, what was handed in, and the first few of the queue
            allowed = ("SCAN t VIRTUAL TABLE", "SCAN asked", "SCAN q")
            assert [step for step in walks if not step.startswith(allowed)] == [], sql


# marks


def mark(sequence: int, reader: str = "user", thread_id: str = "th_1", **more: Any) -> ReadMark:
    given = {"tenant": "acme", "turn": sequence, "at": sequence}
    return ReadMark(reader=reader, thread_id=thread_id, sequence=sequence, **(given | more))


async def test_a_mark_only_goes_on(store: Store) -> None:
    assert await store.mark_read(mark(5)) == mark(5)
    assert await store.mark_read(mark(3)) == mark(5)
    assert await store.mark_read(mark(9)) == mark(9)
    assert await store.read_marks("acme", "user", ["th_1"]) == [mark(9)]


async def test_marks_are_of_one_reader_one_thread_and_one_tenant(store: Store) -> None:
    await store.mark_read(mark(5))
    for other in ("user:eve", "th_2"):
        assert await store.read_marks("acme", other, ["th_1"]) == []
    assert await store.read_marks("acme", "user", ["th_2", "th_3"]) == []
    assert await store.read_marks("evil", "user", ["th_1"]) == []
    await store.mark_read(mark(1, thread_id="th_2"))
    found = await store.read_marks("acme", "user", ["th_2", "th_1", "th_1", 'odd"'])
    assert sorted(each.sequence for each in found) == [1, 5]
