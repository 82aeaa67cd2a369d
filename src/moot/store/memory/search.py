"""What readers look up, in memory: the specification of the search and the marks on disk."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from moot.core.search.indexed_text import Text, texts_of
from moot.core.search.query import Query, fits
from moot.store import cursor
from moot.store.search import Found, Page, ReadMark, TextRow

Position = tuple[int, int, int, int]


class Shelved(NamedTuple):
    """Sorted by time, then by log and place in it."""

    position: Position
    run_id: str
    workflow_id: str
    source: str | None
    text: Text
    body: bytes

    @property
    def found(self) -> Found:
        _, _, sequence, part = self.position
        return Found(
            run_id=self.run_id,
            workflow_id=self.workflow_id,
            sequence=sequence,
            part=part,
            body=self.body,
        )


class Library(ABC):
    """Part of the store in memory; its promises are those of ``SearchStore`` and ``MarkStore``."""

    def __init__(self) -> None:
        self._marks: dict[tuple[str, str, str], ReadMark] = {}
        self._forget_texts()

    def _forget_texts(self) -> None:
        #: tenant -> its texts
        self._shelves: dict[str, list[Shelved]] = {}

    def _shelve(self, tenant: str, run: tuple[str, str, int], row: TextRow, body: bytes) -> None:
        run_id, workflow_id, number = run
        shelf = self._shelves.setdefault(tenant, [])
        for part, text in enumerate(texts_of(body)):
            position = (row.at, number, row.sequence, part)
            shelf.append(Shelved(position, run_id, workflow_id, row.source, text, body))

    @abstractmethod
    def _runs_of(self, tenant: str) -> set[str]:
        """The runs that are here."""

    async def search(self, tenant: str, query: Query, before: str | None, limit: int) -> Page:
        start = cursor.unpacked(before, 4) if before is not None else (cursor.FIRST,) * 4
        shelf = self._shelves.get(tenant, [])
        here = self._runs_of(tenant)
        found = sorted(
            each
            for each in ([] if query.empty else shelf)
            if each.position < start
            and _meant(query, each, here)
            and fits(query, each.text)
        )  # fmt: skip
        page = found[::-1][:limit]
        if not page:
            return Page([])
        *place, part = page[0].position
        more = cursor.packed(*page[-1].position) if len(found) > limit else None
        return Page([each.found for each in page], more, cursor.packed(*place, part + 1))

    async def mark_read(self, mark: ReadMark) -> ReadMark:
        place = mark.tenant, mark.reader, mark.thread_id
        known = self._marks.get(place)
        if known is None or known.sequence < mark.sequence:
            self._marks[place] = mark
        return self._marks[place]

    async def read_marks(self, tenant: str, reader: str, threads: list[str]) -> list[ReadMark]:
        places = ((tenant, reader, thread_id) for thread_id in dict.fromkeys(threads))
        return [self._marks[place] for place in places if place in self._marks]


def _meant(query: Query, each: Shelved, here: set[str]) -> bool:
    if not query.places:
        return each.source is None or each.source not in here
    return any(
        place.run_id == each.run_id and place.talk in ("", each.text.talk)
        for place in query.places
    )  # fmt: skip
