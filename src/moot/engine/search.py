"""What a search finds, as it is shown: the text around the words, who said it, and where."""

import asyncio
import heapq
import re

from msgspec import Struct

from moot.core import events
from moot.core.errors import BadRequest
from moot.core.events import Event
from moot.core.search.indexed_text import Text, texts
from moot.core.search.query import Place, Query, Snippet, score, snippet
from moot.core.state.conversation import THREAD
from moot.store.protocol import Store
from moot.store.search import Found

#: the newest that fit, of which the best are chosen
WINDOW = 500
#: characters in which the words are looked for once more: of one text, and of all that one search
#: shows or ranks; where it finds many long ones, each is looked at less far
LOOKED_AT = 50_000
MOST_LOOKED_AT = 2_000_000
#: a cursor of the store, and how many of the best came before
_BEST = re.compile(r"([\w-]{1,64})\.(\d{1,4})", re.ASCII)


class Finding(Struct, frozen=True, kw_only=True):
    """One text that fits."""

    text: Text
    run_id: str
    workflow_id: str
    event: Event
    snippet: Snippet

    @property
    def thread_id(self) -> str | None:
        """None for what belongs to no conversation."""
        if self.workflow_id == THREAD:
            return self.run_id
        return f"{self.run_id}~{self.text.talk}" if self.text.talk else None


class Findings(Struct, frozen=True):
    found: list[Finding]
    following: str | None = None


async def newest(
    store: Store, tenant: str, query: Query, cursor: str | None, limit: int
) -> Findings:
    page = await store.search(tenant, query, cursor, limit)
    # in a thread: long texts keep nobody else waiting
    return Findings(await asyncio.to_thread(_all_shown, query, page.found), page.following)


async def best(store: Store, tenant: str, query: Query, cursor: str | None, limit: int) -> Findings:
    """The best of the newest ``WINDOW``. Raises BadRequest on a cursor of something else."""
    start, skipped = None, 0
    if cursor is not None:
        parts = _BEST.fullmatch(cursor)
        if parts is None:
            raise BadRequest("The cursor is not one this list gave out; start without it.")
        start, skipped = parts[1], int(parts[2])
    page = await store.search(tenant, query, start, WINDOW)
    until = skipped + limit
    chosen = await asyncio.to_thread(_ranked, query, page.found, until)
    shown = await asyncio.to_thread(_all_shown, query, chosen[skipped:])
    more = until < len(page.found)
    return Findings(shown, f"{page.again}.{until}" if more else None)


#: by name, in which order what was found is shown
ORDERS = {"newest": newest, "best": best}


def _ranked(query: Query, found: list[Found], most: int) -> list[Found]:
    """The newer one first of two that are equally good."""
    far = _far(found)
    scores = [score(query, _cut(text, far)) if (text := _text(each)) else 0.0 for each in found]
    places = heapq.nsmallest(most, range(len(found)), key=lambda at: (-scores[at], at))
    return [found[at] for at in places]


def _far(found: list[Found]) -> int:
    """How far into each text is looked."""
    return min(LOOKED_AT, MOST_LOOKED_AT // max(1, len(found)))


def _cut(text: Text, far: int) -> Text:
    return Text(kind=text.kind, text=text.text[:far])


def _text(found: Found) -> Text | None:
    said = texts(events.decode(found.body))
    return said[found.part] if found.part < len(said) else None


def _all_shown(query: Query, found: list[Found]) -> list[Finding]:
    """An index of an older version may know of texts that are none any more."""
    far = _far(found)
    shown = (_shown(query, each, far) for each in found)
    return [each for each in shown if each is not None]


def _shown(query: Query, found: Found, far: int) -> Finding | None:
    text = _text(found)
    if text is None:
        return None
    return Finding(
        text=text,
        run_id=found.run_id,
        workflow_id=found.workflow_id,
        event=events.decode(found.body),
        snippet=snippet(query, text.text[:far]),
    )


async def titles(store: Store, tenant: str, found: list[Finding]) -> dict[str, str]:
    """run -> what its thread is called: by its newest title, else by its question. Other runs are
    called after their workflow."""
    called = {each.run_id: each.workflow_id for each in found}
    for run_id, workflow_id in called.items():
        if workflow_id == THREAD:
            called[run_id] = await _title(store, tenant, run_id)
    return called


async def _title(store: Store, tenant: str, run_id: str) -> str:
    named = Query(kinds=("thread",), places=(Place(run_id),))
    page = await store.search(tenant, named, None, 1)
    if page.found and (text := _text(page.found[0])) is not None:
        return text.text
    rows = await store.read(tenant, run_id, -1, 1)
    inputs = events.decode(rows[0]).payload.get("inputs", {}) if rows else {}
    return str(inputs.get("question", "")) if isinstance(inputs, dict) else ""
