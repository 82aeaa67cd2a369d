"""How much of what a search has found is looked at once more, however much that is."""

from typing import Any

import msgspec
import pytest

from moot.core.search.indexed_text import IndexedText
from moot.core.search.query import Query, make_snippet, parse_query, score_text
from moot.engine import search as findings
from moot.store.search import SearchPage, SearchRow


class Full:
    """A store in which everything fits."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    async def search(self, tenant: str, query: Query, cursor: Any, limit: int) -> SearchPage:
        rows = [
            SearchRow(
                run_id="th_1", workflow_id="moot.thread", sequence=number, part=0,
                body=body(number, text),
            )
            for number, text in enumerate(self._texts[:limit])
        ]  # fmt: skip
        return SearchPage(rows, None, "a")


def body(number: int, text: str) -> bytes:
    turn = {"role": "user", "from": "user", "content": text, "turnIndex": number}
    return msgspec.json.encode({
        "eventId": f"th_1.{number}", "runId": "th_1", "sequence": number,
        "type": "conversation.exchanged", "timestamp": "2030-01-01T00:00:00.000000Z",
        "payload": {"conversationId": "th_1:talk:1", "turnIndex": number, "turn": turn},
        "nodeId": "talk",
    })  # fmt: skip


@pytest.mark.parametrize("order", ["best", "newest"])
async def test_many_long_texts_are_looked_at_less_far(
    monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    looked: list[int] = []

    def scored(query: Query, text: IndexedText) -> float:
        looked.append(len(text.text))
        return score_text(query, IndexedText(kind=text.kind, text=text.text[:100]))

    def shown(query: Query, text: str) -> Any:
        looked.append(len(text))
        return make_snippet(query, text[:100])

    monkeypatch.setattr(findings, "score_text", scored)
    monkeypatch.setattr(findings, "make_snippet", shown)
    store: Any = Full(["saola " * 16_000] * findings.WINDOW)
    found = await findings.ORDERS[order](store, "t", parse_query("saola"), None, 100)
    assert len(found.found) == 100 and sum(looked) <= 2 * findings.MOST_CHARS_OF_SEARCH
    looked.clear()
    store = Full(["saola " * 16_000])
    await findings.ORDERS[order](store, "t", parse_query("saola"), None, 100)
    assert set(looked) == {findings.MOST_CHARS_OF_TEXT}, "one alone is looked at as far as any"
