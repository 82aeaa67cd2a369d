"""Search and read marks in memory; every other store must return the same."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from moot.core.search.indexed_text import IndexedText, texts_from_bytes
from moot.core.search.query import Query, is_match
from moot.store import cursor
from moot.store.search import ReadMark, SearchPage, SearchRow, TextRow

PassagePosition = tuple[int, int, int, int]


class IndexedPassage(NamedTuple):
    """One searchable text. Passages sort by time, then by log and place in the log."""

    position: PassagePosition
    run_id: str
    workflow_id: str
    source: str | None
    text: IndexedText
    body: bytes

    @property
    def hit(self) -> SearchRow:
        _, _, sequence, part = self.position
        return SearchRow(
            run_id=self.run_id, workflow_id=self.workflow_id, sequence=sequence, part=part,
            body=self.body,
        )  # fmt: skip


class InMemorySearch(ABC):
    """Part of the store in memory; keeps the promises of ``SearchStore``."""

    def __init__(self) -> None:
        self._marks: dict[tuple[str, str, str], ReadMark] = {}
        self._forget_texts()

    def _forget_texts(self) -> None:
        #: tenant -> its passages
        self._passages: dict[str, list[IndexedPassage]] = {}

    def _index_texts(
        self, tenant: str, run: tuple[str, str, int], row: TextRow, body: bytes
    ) -> None:
        run_id, workflow_id, number = run
        passages = self._passages.setdefault(tenant, [])
        for part, text in enumerate(texts_from_bytes(body)):
            position = (row.at, number, row.sequence, part)
            passages.append(IndexedPassage(position, run_id, workflow_id, row.source, text, body))

    @abstractmethod
    def _runs_of(self, tenant: str) -> set[str]:
        """Return the ids of the tenant's runs."""

    async def search(self, tenant: str, query: Query, before: str | None, limit: int) -> SearchPage:
        start = cursor.unpack_numbers(before, 4) if before is not None else (cursor.FIRST,) * 4
        passages = self._passages.get(tenant, [])
        run_ids = self._runs_of(tenant)
        matches = sorted(
            passage
            for passage in ([] if query.empty else passages)
            if passage.position < start
            and _is_in_places(query, passage, run_ids)
            and is_match(query, passage.text)
        )  # fmt: skip
        page = matches[::-1][:limit]
        if not page:
            return SearchPage([])
        *place, part = page[0].position
        more = cursor.pack_numbers(*page[-1].position) if len(matches) > limit else None
        again = cursor.pack_numbers(*place, part + 1)
        return SearchPage([passage.hit for passage in page], more, again)

    async def mark_read(self, mark: ReadMark) -> ReadMark:
        place = mark.tenant, mark.reader, mark.thread_id
        stored = self._marks.get(place)
        if stored is None or stored.sequence < mark.sequence:
            self._marks[place] = mark
        return self._marks[place]

    async def read_marks(self, tenant: str, reader: str, threads: list[str]) -> list[ReadMark]:
        places = ((tenant, reader, thread_id) for thread_id in dict.fromkeys(threads))
        return [self._marks[place] for place in places if place in self._marks]


def _is_in_places(query: Query, passage: IndexedPassage, run_ids: set[str]) -> bool:
    """Without places, a fork's passage counts only if the original run is not in the store."""
    if not query.places:
        return passage.source is None or passage.source not in run_ids
    return any(
        place.run_id == passage.run_id and place.talk in ("", passage.text.talk)
        for place in query.places
    )  # fmt: skip
